/*
 * cltrain-offline: kernels that are compiled ahead, for devices whose driver has no compiler, or is not to be waited for. Training itself is
 * cltrain-train's.
 */
#include <ctype.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <jansson.h>

#include <cltrain/cltrain.h>
#include <cltrain/experimental/bundle.h>

#include "tools/cltrain-train/job.h"
#include "tools/cltrain-train/options.h"
#include "tools/common/help.h"
#include "tools/common/message.h"
#include "tools/common/option_parser.h"
#include "tools/common/streams.h"
#include "tools/survey/look.h"

const char program_name[] = "cltrain-offline";

typedef struct offline_options {
    const char *folder, *device, *command;
    bool json, help;
} offline_options;

#define AT(field) offsetof(offline_options, field)

static const option_row compile_rows[] = {
    {OPTION_TEXT, 0, "output", "FOLDER", AT(folder), .help = "the bundle, whose files are replaced if they are there; required"},
    {OPTION_FLAG, 'h', "help", NULL, AT(help), .help = "this text"},
};
static const option_row verify_rows[] = {
    {OPTION_TEXT, 0, "device", "NAME", AT(device), .help = "as cltrain-train has it (default: $CLTRAIN_DEVICE, else the best)"},
    {OPTION_FLAG, 'h', "help", NULL, AT(help), .help = "this text"},
};
static const option_row add_rows[] = {
    {OPTION_TEXT, 0, "command", "LINE", AT(command),
     .help = "for the shell: compiles the OpenCL C of the file $INPUT into SPIR-V,\nin the file $OUTPUT (default: clang and llvm-spirv, of a version that\nis there)"},
    {OPTION_FLAG, 'h', "help", NULL, AT(help), .help = "this text"},
};
static const option_row inspect_rows[] = {
    {OPTION_FLAG, 0, "json", NULL, AT(json), .help = "the manifest as it is"},
    {OPTION_FLAG, 'h', "help", NULL, AT(help), .help = "this text"},
};
#define ROWS(rows) rows, (int)(sizeof(rows) / sizeof(rows)[0])

static int end_help(void) {
    help_print(stdout, "\nExit status: 0 done; 1 it failed; 2 usage error.\n");
    return fflush(stdout) ? run_error("stdout cannot be written") : 0;
}

/* ---- a bundle that is there ---- */

static int read_manifest(const char *folder, json_t **manifest) {
    char path[4096];
    json_error_t error;
    struct stat facts;
    if (snprintf(path, sizeof path, "%s/manifest.json", folder) >= (int)sizeof path) return run_error("%.64s...: the path is too long", folder);
    if (stat(path, &facts) || !S_ISREG(facts.st_mode)) return run_error("%s: expected a regular file, which cltrain-offline compile writes", path);
    *manifest = json_load_file(path, 0, &error);
    if (!*manifest) return run_error("%s: %s", path, error.text);
    return json_is_array(json_object_get(*manifest, "images")) ? 0 : run_error("%s: it is no manifest of a bundle", path);
}

static size_t count_kernels(const json_t *manifest) {
    size_t i, n = 0;
    json_t *image;
    json_array_foreach (json_object_get(manifest, "images"), i, image) n += json_array_size(json_object_get(image, "kernels"));
    return n;
}

static void tell(const char *folder, const json_t *manifest) {
    size_t images = json_array_size(json_object_get(manifest, "images")), kernels = count_kernels(manifest);
    printf("%s: %zu image%s, %zu kernels", folder, images, PLURAL(images), kernels);
}

/* A terminal gets no control characters of a file. */
static void print_text(const char *before, const json_t *object, const char *key, const char *after) {
    const char *text = json_string_value(json_object_get(object, key));
    fputs(before, stdout);
    for (text = text ? text : "?"; *text; text++) putchar(iscntrl((unsigned char)*text) ? '?' : *text);
    fputs(after, stdout);
}

static void print_image(const json_t *image) {
    static const char *const rows[][2] = {{"  device   ", "device"}, {"  platform ", "platform"}, {"  driver   ", "driver"}, {"  options  ", "options"}};
    const json_t *serves = json_object_get(image, "for"), *kernels = json_object_get(image, "kernels");
    size_t n = json_array_size(kernels);
    print_text("", image, "file", ", ");
    print_text("", serves, "kind", "");
    printf(", %zu kernel%s\n", n, PLURAL(n));
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) print_text(rows[i][0], serves, rows[i][1], "\n");
    print_text("  sha256   ", image, "sha256", "\n");
    if (json_object_get(image, "il")) print_text("  portable ", json_object_get(image, "il"), "file", ", SPIR-V\n");
    for (size_t i = 0; i < n; i++) {
        const json_t *kernel = json_array_get(kernels, i);
        print_text("  kernel   ", kernel, "name", "");
        printf(", %lld arguments\n", (long long)json_integer_value(json_object_get(kernel, "arguments")));
    }
}

static int inspect(const offline_options *o) {
    json_t *manifest = NULL;
    size_t i;
    json_t *image;
    int code = read_manifest(o->folder, &manifest);
    if (!code && o->json) {
        if (json_dumpf(manifest, stdout, JSON_INDENT(1)) < 0 || putchar('\n') < 0) code = run_error("stdout cannot be written");
    } else if (!code) {
        tell(o->folder, manifest);
        print_text(", of cltrain ", manifest, "library", "\n");
        json_array_foreach (json_object_get(manifest, "images"), i, image) print_image(image);
    }
    json_decref(manifest);
    return !code && fflush(stdout) ? run_error("stdout cannot be written") : code;
}

static int verify(const offline_options *o) {
    clt_device *device;
    json_t *manifest = NULL;
    clt_status status = clt_device_open_with(&device, &(clt_settings){.device = o->device, .bundle = o->folder, .compiler = "never"});
    if (status < 0) return library_error(status, "verify");
    int code = read_manifest(o->folder, &manifest);
    if (!code) tell(o->folder, manifest);
    if (!code) printf(": all load on %s and are what they should be\n", clt_device_get_info(device)->name);
    json_decref(manifest);
    clt_device_close(device);
    return !code && fflush(stdout) ? run_error("stdout cannot be written") : code;
}

/* ---- portable images ---- */

/* Of Debian's and others' packages, the newest first; 64 bits, as the pointers of all devices of today. */
static const char usual_command[] =
    "for v in -21 -20 -19 -18 -17 -16 -15 -14 ''; do "
    "if command -v clang$v >/dev/null && command -v llvm-spirv$v >/dev/null; then "
    "clang$v -x cl -cl-std=CL1.2 -cl-denorms-are-zero -target spir64-unknown-unknown -Xclang -finclude-default-header -Wno-unused-command-line-argument -O1 -Xclang -disable-llvm-passes -emit-llvm -c \"$INPUT\" -o \"$OUTPUT.bc\" && "
    "llvm-spirv$v \"$OUTPUT.bc\" -o \"$OUTPUT\"; status=$?; rm -f \"$OUTPUT.bc\"; exit $status; fi; done; "
    "echo 'neither clang with llvm-spirv of its version is installed (Debian: clang-15, llvm-spirv-15), nor --command given' >&2; exit 1";

static clt_status run_command(const char *source, const char *output, void *user) {
    const offline_options *o = user;
    if (setenv("INPUT", source, 1) || setenv("OUTPUT", output, 1)) return CLT_E_NO_MEMORY;
    int status = system(o->command ? o->command : usual_command); /* NOLINT(cert-env33-c): the user's own line */
    return status == 0 ? CLT_OK : CLT_E_BUILD;
}

static int add(const offline_options *o) {
    json_t *manifest = NULL;
    int code = read_manifest(o->folder, &manifest);
    json_decref(manifest);
    manifest = NULL;
    if (code) return code;
    clt_status status = clt_bundle_add_il(o->folder, o->command ? o->command : "clang and llvm-spirv", run_command, (void *)(uintptr_t)o);
    if (status == CLT_E_BUILD) return run_error("%s: a source was not compiled; the bundle is as it was", o->folder);
    if (status < 0) return library_error(status, "add");
    code = read_manifest(o->folder, &manifest);
    if (!code) tell(o->folder, manifest);
    if (!code) printf(": all have SPIR-V now\n");
    json_decref(manifest);
    return !code && fflush(stdout) ? run_error("stdout cannot be written") : code;
}

/* ---- compile ---- */

/* The value of --output, which is taken out of the arguments: the others are cltrain-train's. */
static int take_output(int *argc, char **argv, const char **folder) {
    int kept = 0;
    *folder = NULL;
    for (int i = 0; i < *argc; i++) {
        const char *value = !strncmp(argv[i], "--output=", 9) ? argv[i] + 9 : !strcmp(argv[i], "--output") && i + 1 < *argc ? argv[++i] : NULL;
        if (value && *folder) return usage_error("--output is given twice, '%s' and '%s': expected one folder", *folder, value);
        if (value) *folder = value;
        else argv[kept++] = argv[i];
    }
    argv[*argc = kept] = NULL;
    return 0;
}

static int print_compile_help(void) {
    help_print(stdout, "Usage: cltrain-offline compile MODEL --data SPEC --output FOLDER [options of cltrain-train]\n"
                       "\n"
                       "Trains a step and tests the model, and writes all kernels that were compiled for it, as the device's driver compiles them. The same command of "
                       "cltrain-train, with the same data, batch and other options, then finds all of them there:\n"
                       "\n"
                       "  CLTRAIN_BUNDLE=FOLDER CLTRAIN_COMPILER=never cltrain-train MODEL --data SPEC ...\n"
                       "\n");
    option_print(ROWS(compile_rows), stdout);
    return end_help();
}

/* One step and a test of the model, unless the command line says how long it is. */
static int compile_as_given(options *given, const char *folder) {
    if (given->help) return print_compile_help();
    if (!folder || !*folder) return usage_error("no --output FOLDER given, which becomes the bundle");
    if (given->devices) return usage_error("--devices: a bundle is of one device; make one for each");
    if (given->profile || given->json) return usage_error("%s: nothing is reported here; leave it out", given->profile ? "--profile" : "--json");
    if (given->predict || given->test || given->list_devices || given->summary || given->lr_find) return usage_error("expected a training: a model, --data and options of training");
    if (given->steps == OPTION_UNSET && given->epochs == OPTION_UNSET) given->steps = 1;
    given->bundle = folder;
    setenv("CLTRAIN_TUNE", "off", 1); /* as where nothing is compiled */
    unsetenv("CLTRAIN_BUNDLE");
    unsetenv("CLTRAIN_COMPILER");
    int code = job_run(given);
    json_t *manifest = NULL;
    if (!code) code = read_manifest(folder, &manifest);
    if (!code) tell(folder, manifest), putchar('\n');
    json_decref(manifest);
    return !code && fflush(stdout) ? run_error("stdout cannot be written") : code;
}

static int run_compile(int argc, char **argv) {
    options given = options_standard();
    const char *folder;
    int n = argc - 1;
    char **arguments = malloc((size_t)argc * sizeof *arguments); /* argv is kept whole: look_for_devices may start the program anew with it */
    if (!arguments) return run_error("out of memory");
    memcpy(arguments, argv + 1, (size_t)argc * sizeof *arguments);
    int code = take_output(&n, arguments, &folder);
    if (!code) code = options_parse(&given, n, arguments);
    if (!code) {
        message_start(given.quiet ? -1 : given.verbose);
        code = given.help ? 0 : look_for_devices(argv);
    }
    if (!code) code = compile_as_given(&given, folder);
    options_free(&given);
    free(arguments);
    return code;
}

/* ---- the program ---- */

static int take_folder(void *into, const char *text) {
    offline_options *o = into;
    if (o->folder) return usage_error("one FOLDER expected, but there are '%s' and '%s'", o->folder, text);
    o->folder = text;
    return 0;
}

static int run_on_folder(const option_row *rows, int n, const char *usage, int argc, char **argv, int (*act)(const offline_options *)) {
    offline_options o = {0};
    int code = option_parse(rows, n, argc - 2, argv + 2, &o, take_folder);
    if (code) return code;
    if (o.help) {
        help_print(stdout, "%s", usage);
        option_print(rows, n, stdout);
        return end_help();
    }
    if (!o.folder) return usage_error("no FOLDER given, such as cltrain-offline compile writes");
    message_start(0);
    return act(&o);
}

static int run_inspect(int argc, char **argv) {
    return run_on_folder(ROWS(inspect_rows), "Usage: cltrain-offline inspect FOLDER [options]\n\nPrints what is in a bundle: its images, what they are for, and their kernels.\n\n",
                         argc, argv, inspect);
}

static int run_add(int argc, char **argv) {
    return run_on_folder(ROWS(add_rows), "Usage: cltrain-offline add FOLDER [options]\n\nCompiles the sources of a bundle into SPIR-V, which devices of any kind load where the bundle has nothing that was "
                                         "compiled for them, if their driver has cl_khr_il_program.\n\n", argc, argv, add);
}

static int run_verify(int argc, char **argv) {
    return run_on_folder(ROWS(verify_rows), "Usage: cltrain-offline verify FOLDER [options]\n\nLoads a bundle on a device: checksums are compared, all kernels are made, and one of each "
                                            "image is run.\n\n", argc, argv, verify);
}

static const struct {
    const char *name, *summary;
    int (*run)(int argc, char **argv); /* of the whole program: argv[1] is the name */
} commands[] = {
    {"compile", "compiles all kernels of a training into a bundle", run_compile},
    {"add", "adds portable images to a bundle", run_add},
    {"inspect", "prints what is in a bundle", run_inspect},
    {"verify", "whether a device takes a bundle, and it is whole", run_verify},
};
enum { COMMANDS = sizeof commands / sizeof commands[0] };

static int print_help(void) {
    help_print(stdout, "Usage: cltrain-offline COMMAND [options]\n\nCommands:\n");
    for (int i = 0; i < COMMANDS; i++) help_print(stdout, "  %-12s%s\n", commands[i].name, commands[i].summary);
    printf("\n'cltrain-offline COMMAND --help' has the options of each.\n");
    return end_help();
}

int main(int argc, char **argv) {
    streams_keep();
    const char *word = argc > 1 ? argv[1] : "--help";
    if (!strcmp(word, "--help") || !strcmp(word, "-h")) return print_help();
    if (!strcmp(word, "--version") || !strcmp(word, "-V")) return printf("cltrain-offline %s\n", clt_version()), fflush(stdout) ? run_error("stdout cannot be written") : 0;
    for (int i = 0; i < COMMANDS; i++)
        if (!strcmp(commands[i].name, word)) {
            message_command(commands[i].name);
            return commands[i].run(argc, argv);
        }
    return usage_error("unknown command '%s': expected compile, add, inspect or verify", word);
}
