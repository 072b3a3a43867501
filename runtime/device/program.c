/*
 * Programs: modules gathered into few of them, built in parallel, their binaries
 * cached as files.
 *
 * A cache file is a header (magic, key, length and hash of what follows) and the
 * driver's binary. The key is the hash of format, device, driver, platform,
 * options and source, and is the file's name. Files are written to a temporary
 * and renamed; one that does not fit or does not load is rebuilt in silence.
 */
#include <stdio.h>
#include <string.h>

#include "runtime/base/file.h"
#include "runtime/device/bundle.h"
#include "runtime/device/catalog.h"
#include "runtime/device/cl.h"
#include "runtime/device/kernel_source.h"
#include "runtime/device/settings.h"

/* Subnormal numbers are zero: processors take some hundred cycles for each of them, and gradients that vanish, as through many places of a recurrent
 * network, are nothing else. */
const char clt_build_options[] = "-cl-std=CL1.2 " CLT_DENORMS_ARE_ZERO;
static const char cache_magic[8] = "CLTBIN1";

/* What a driver says that it has, and nobody believes. */
enum { MOST_LOG = 1 << 24 };

typedef struct cache_header {
    char magic[8];
    char key[CLT_HASH_TEXT];
    char payload_hash[CLT_HASH_TEXT];
    uint64_t payload_bytes;
} cache_header;

/* ---- the cache on disk ---- */

/* What becomes a bundle has a kernel more, and all of it is to be compiled. */
static bool cache_is_off(const clt_device *device) {
    return device->keeps_sources || !strcmp(device->settings.program_cache, "off");
}

/* PoCL keeps what it compiles, and compiles every kernel once more for a binary, while launches wait. */
static bool saves_programs(const clt_device *device) {
    const char *setting = device->settings.program_cache;
    return !cache_is_off(device) && (!strcmp(setting, "on") || (!setting[0] && !clt_settings_driver_caches(device->info.platform)));
}

/* Where neither the cache nor the driver has binaries, a program that has more than what is wanted costs more. */
static bool keeps_catalog(const clt_device *device) {
    return !cache_is_off(device) && !device->for_trials && (saves_programs(device) || clt_settings_driver_caches(device->info.platform));
}

static clt_status cache_path(const clt_device *device, const char *key, clt_text *path) {
    CLT_TRY(clt_file_cache_folder(device->settings.cache_folder, "programs", path));
    clt_text_add(path, "/%s.clbin", key);
    return path->status;
}

/* The binary inside a cache file, or NULL if the file is none or not whole. */
static const unsigned char *cache_payload(const void *bytes, size_t length, const char *key, size_t *payload) {
    cache_header header;
    char hash[CLT_HASH_TEXT];
    if (length < sizeof header) return NULL;
    memcpy(&header, bytes, sizeof header);
    if (memcmp(header.magic, cache_magic, sizeof cache_magic) || memcmp(header.key, key, CLT_HASH_TEXT)) return NULL;
    if (header.payload_bytes != length - sizeof header || header.payload_bytes == 0) return NULL;
    const unsigned char *start = (const unsigned char *)bytes + sizeof header;
    clt_hash_text(start, (size_t)header.payload_bytes, hash);
    if (memcmp(hash, header.payload_hash, CLT_HASH_TEXT)) return NULL;
    *payload = (size_t)header.payload_bytes;
    return start;
}

/* False where a driver says that it built a program, and has lost the kernels: PoCL does when it cannot read what its own
 * compiler left in its cache. */
bool clt_program_has_kernels(cl_program program) {
    size_t kernels = 0;
    return clGetProgramInfo(program, CL_PROGRAM_NUM_KERNELS, sizeof kernels, &kernels, NULL) != CL_SUCCESS || kernels > 0;
}

cl_program clt_program_from_binary(clt_device *device, const unsigned char *binary, size_t bytes) {
    cl_int status = CL_SUCCESS, error;
    cl_program program =
        clCreateProgramWithBinary(device->context, 1, &device->id, &bytes, &binary, &status, &error);
    if (error != CL_SUCCESS) return NULL;
    if (status == CL_SUCCESS &&
        clBuildProgram(program, 1, &device->id, clt_build_options, NULL, NULL) == CL_SUCCESS && clt_program_has_kernels(program))
        return program;
    clReleaseProgram(program);
    return NULL;
}

static cl_program cache_load(clt_device *device, const char *key) {
    clt_text path = {0};
    void *bytes = NULL;
    size_t length, payload;
    cl_program program = NULL;
    if (cache_is_off(device)) return NULL;
    if (cache_path(device, key, &path) == CLT_OK && clt_file_read(path.data, sizeof(cache_header) + CLT_MOST_BINARY, &bytes, &length) == CLT_OK) {
        const unsigned char *binary = cache_payload(bytes, length, key, &payload);
        if (binary) program = clt_program_from_binary(device, binary, payload);
        if (!program) clt_log_message(CLT_LOG_DEBUG, "cache file %s does not load; building anew", path.data);
    }
    clt_free(bytes);
    clt_text_free(&path);
    return program;
}

static clt_status cache_store(const clt_device *device, const char *key, const unsigned char *binary, size_t bytes) {
    cache_header header = {.payload_bytes = bytes};
    memcpy(header.magic, cache_magic, sizeof cache_magic);
    memcpy(header.key, key, CLT_HASH_TEXT);
    clt_hash_text(binary, bytes, header.payload_hash);
    clt_text path = {0};
    clt_file_writer *writer = NULL;
    clt_status status;
    CLT_TRY_GOTO(cache_path(device, key, &path));
    CLT_TRY_GOTO(clt_file_writer_open(&writer, path.data));
    CLT_TRY_GOTO(clt_file_writer_write(writer, &header, sizeof header));
    CLT_TRY_GOTO(clt_file_writer_write(writer, binary, bytes));
    clt_text_free(&path);
    return clt_file_writer_commit(writer);
fail:
    clt_file_writer_abort(writer);
    clt_text_free(&path);
    return status;
}

clt_status clt_program_binary(const clt_device *device, cl_program program, unsigned char **binary, size_t *bytes) {
    *bytes = 0;
    if (clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof *bytes, bytes, NULL) != CL_SUCCESS || *bytes == 0 || *bytes > CLT_MOST_BINARY)
        return clt_fail(CLT_E_UNSUPPORTED, "%s (driver %s) gives no binaries of programs", device->info.name, device->info.driver);
    *binary = clt_calloc(*bytes, 1);
    if (!*binary) return clt_fail_memory(*bytes);
    cl_int error = clGetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof *binary, binary, NULL);
    return error == CL_SUCCESS ? CLT_OK : clt_cl_fail_build(device, "asking for a program's binary", error);
}

static void save_program(const clt_device *device, clt_program *program) {
    size_t bytes;
    unsigned char *binary = NULL;
    clt_status status = clt_program_binary(device, program->program, &binary, &bytes);
    if (status == CLT_OK) status = cache_store(device, program->key, binary, bytes);
    if (status < 0) clt_log_message(CLT_LOG_DEBUG, "a program's binary is not cached: %s", clt_error_detail());
    clt_free(binary);
}

static clt_program *next_unsaved(clt_device *device) {
    clt_program *found = NULL;
    clt_mutex_lock(&device->mutex);
    for (size_t i = 0; i < device->n_programs && !found; i++)
        if (!device->programs[i]->saved) found = device->programs[i];
    if (found) found->saved = true;
    clt_mutex_unlock(&device->mutex);
    return found;
}

static void *save_all(void *argument) {
    clt_device *device = argument;
    for (clt_program *program; (program = next_unsaved(device));) save_program(device, program);
    return NULL;
}

static void join_saver(clt_device *device) {
    if (device->saver_running) clt_thread_join(device->saver);
    device->saver_running = false;
}

void clt_device_save_programs(clt_device *device) {
    bool any = false;
    if (device->for_trials) return;
    clt_mutex_lock(&device->mutex);
    for (size_t i = 0; i < device->n_programs; i++) any |= !device->programs[i]->saved;
    clt_mutex_unlock(&device->mutex);
    if (!any) return;
    join_saver(device);
    device->saver_running = clt_thread_start(&device->saver, save_all, device) == CLT_OK;
}

void clt_device_settle_programs(clt_device *device) {
    clt_device_save_programs(device);
    join_saver(device);
}

/* ---- building ---- */

void clt_program_free(clt_device *device, clt_program *program) {
    if (!program) return;
    if (program->program) CLT_RELEASE(device, clReleaseProgram(program->program));
    clt_text_free(&program->source);
    clt_free(program->parts);
    clt_free(program);
}

void clt_device_free_programs(clt_device *device) {
    join_saver(device);
    if (!device->for_trials && !device->lost) save_all(device);
    for (size_t i = 0; i < device->n_programs; i++) clt_program_free(device, device->programs[i]);
    clt_free(device->programs);
    clt_catalog_free(&device->catalog);
}

char *clt_program_log(const clt_device *device, cl_program program) {
    size_t bytes = 0;
    clGetProgramBuildInfo(program, device->id, CL_PROGRAM_BUILD_LOG, 0, NULL, &bytes);
    bytes = CLT_MIN(bytes, MOST_LOG);
    char *log = clt_calloc(bytes + 1, 1);
    if (log) clGetProgramBuildInfo(program, device->id, CL_PROGRAM_BUILD_LOG, bytes, log, NULL);
    return log;
}

static clt_status fail_build(clt_device *device, cl_program program, const char *label) {
    enum { TAIL = 2500 };
    char *log = clt_program_log(device, program);
    size_t length = log ? strlen(log) : 0;
    clt_status status =
        clt_fail(CLT_E_BUILD, "%s (driver %s) does not build %s with %s; build log%s:\n%s", device->info.name,
                 device->info.driver, label, clt_build_options, length > TAIL ? " (its end)" : "",
                 length ? log + (length > TAIL ? length - TAIL : 0) : "(empty)");
    clt_free(log);
    return status;
}

static clt_status fail_hollow(clt_device *device, const char *label) {
    return clt_fail(CLT_E_BUILD, "%s (driver %s) builds %s with %s, and no kernel is in it; if the driver has a cache of its own, empty that",
                    device->info.name, device->info.driver, label, clt_build_options);
}

clt_status clt_program_build(clt_device *device, const char *source, const char *label, cl_program *program) {
    cl_int error;
    cl_program p = clCreateProgramWithSource(device->context, 1, &source, NULL, &error);
    if (error != CL_SUCCESS) return clt_cl_fail_build(device, "making a program", error);
    error = clBuildProgram(p, 1, &device->id, clt_build_options, NULL, NULL);
    if (error == CL_SUCCESS && clt_program_has_kernels(p)) {
        *program = p;
        return CLT_OK;
    }
    clt_status status = error == CL_SUCCESS ? fail_hollow(device, label)
                        : error == CL_BUILD_PROGRAM_FAILURE || error == CL_INVALID_BUILD_OPTIONS
                            ? fail_build(device, p, label)
                            : clt_cl_fail_build(device, "building a program", error);
    clReleaseProgram(p);
    return status;
}

/* What one thread makes: the source of several modules into one program. */
typedef struct build_job {
    clt_device *device;
    clt_text source;
    const char *label;
    clt_program *program;
    bool loaded, known; /* known: of the catalog */
    clt_status status;
    char error[4096];
} build_job;

void clt_program_key(const clt_device *device, const char *source, size_t length, char key[CLT_HASH_TEXT]) {
    key[0] = 0;
    clt_hash_add(key, cache_magic, sizeof cache_magic);
    clt_hash_add(key, device->identity, CLT_HASH_TEXT);
    clt_hash_add(key, clt_build_options, sizeof clt_build_options);
    clt_hash_add(key, source, length);
}

static void run_job(void *argument, int i) {
    build_job *job = &((build_job *)argument)[i];
    clt_program *program = job->program;
    if (job->device->keeps_sources) clt_bundle_add_check(&job->source, program->key);
    program->program = cache_load(job->device, program->key);
    job->loaded = program->program != NULL;
    if (!job->loaded) job->status = clt_program_build(job->device, job->source.data, job->label, &program->program);
    program->saved = job->loaded || !saves_programs(job->device);
    if (job->status == CLT_OK && !job->known && keeps_catalog(job->device)) clt_catalog_add(job->device, program, &job->source);
    if (job->device->keeps_sources) {
        program->source = job->source;
        job->source = (clt_text){0};
    }
    if (job->status < 0) snprintf(job->error, sizeof job->error, "%s", clt_error_detail());
}

bool clt_part_serves(const clt_program_part *part, const char *module_hash, const char *kernel) {
    return !strcmp(part->module, module_hash) && (!part->kernel[0] || !strcmp(part->kernel, kernel));
}

static bool holds(const clt_program *program, const char *module_hash, const char *kernel) {
    for (size_t k = 0; k < program->n_parts; k++)
        if (clt_part_serves(&program->parts[k], module_hash, kernel)) return true;
    return false;
}

const clt_program *clt_device_find_program(const clt_device *device, const char *module_hash, const char *kernel) {
    for (size_t i = 0; i < device->n_programs; i++)
        if (holds(device->programs[i], module_hash, kernel)) return device->programs[i];
    return NULL;
}

clt_status clt_program_add_part(clt_program *program, const char *module_hash, const char *kernel) {
    CLT_TRY(clt_grow(&program->parts, &program->parts_capacity, program->n_parts, sizeof *program->parts));
    clt_program_part *part = &program->parts[program->n_parts++];
    memcpy(part->module, module_hash, sizeof part->module);
    snprintf(part->kernel, sizeof part->kernel, "%s", kernel);
    return CLT_OK;
}

/* What is to be built of one module: kernels that no program holds yet. */
typedef struct portion {
    const clt_module *module;
    char hash[CLT_HASH_TEXT];
    const clt_wanted *wanted;
    int n_wanted, index; /* of the module in `wanted`; there are none if all of it is */
} portion;

static clt_status job_add(build_job *job, const portion *p) {
    const clt_module *module = p->module;
    clt_program *program = job->program;
    if (!program) {
        program = job->program = clt_calloc(1, sizeof *program);
        const char *prelude = clt_kernel_source_find(job->device, CLT_PRELUDE);
        if (!program) return clt_fail_memory(sizeof *program);
        clt_text_add(&job->source, "%s\n", prelude && !module->isolated ? prelude : "");
        job->label = module->label;
    } else {
        job->label = "several modules";
    }
    bool cut = p->n_wanted && module->separable;
    if (!cut) CLT_TRY(clt_program_add_part(program, p->hash, ""));
    for (int i = 0; i < p->n_wanted && cut; i++)
        if (p->wanted[i].module == p->index) CLT_TRY(clt_program_add_part(program, p->hash, p->wanted[i].kernel));
    if (cut) clt_module_cut(module->text, p->wanted, p->n_wanted, p->index, &job->source);
    else clt_text_add_bytes(&job->source, module->text, strlen(module->text));
    clt_text_add_bytes(&job->source, "\n", 1);
    return job->source.status;
}

/* Few programs, of which several can be built at once; the number must not depend on the machine's
 * load, for it decides the keys of the cache. */
enum { PROGRAMS_PER_REQUEST = 4, MOST_KNOWN = 8 };

/* Drivers that build one program after the other. PoCL's compiler holds a lock, and each program costs it another reading
 * of OpenCL's own header; but it loads several at once. */
static bool builds_serially(const clt_device *device) {
    return clt_text_contains(device->info.platform, "Portable Computing Language");
}

/* Drivers whose compiler crashes when two threads build at once, against OpenCL's word. */
static int build_threads(const clt_device *device) {
    static const char *const serial[] = {"Oclgrind"};
    for (size_t i = 0; i < CLT_COUNT_OF(serial); i++)
        if (clt_text_contains(device->info.platform, serial[i])) return 1;
    return clt_processor_count();
}

/* The one that is shortest so far. */
static int choose_job(const clt_device *device, const build_job *jobs) {
    int target = 0;
    for (int j = 1; j < PROGRAMS_PER_REQUEST && !builds_serially(device); j++)
        if (jobs[j].source.length < jobs[target].source.length) target = j;
    return target;
}

/* One request: the modules, and what is wanted of them that is not there, in an array of its own. */
typedef struct request {
    const clt_module *modules;
    int n, n_wanted;
    clt_wanted *wanted;
    bool whole; /* all of each */
} request;

/* In a program of the device, or one of the request's. */
static bool is_held(const clt_device *device, const build_job *jobs, int n, const char *hash, const char *kernel) {
    if (clt_device_find_program(device, hash, kernel)) return true;
    for (int j = 0; j < n; j++)
        if (jobs[j].program && holds(jobs[j].program, hash, kernel)) return true;
    return false;
}

/* Whether anything of the portion is still to be built; what is not is taken out of it. */
static bool is_missing(const clt_device *device, const build_job *jobs, int n, const request *r, portion *p) {
    if (r->whole || !p->module->separable) return !is_held(device, jobs, n, p->hash, "");
    bool any = false;
    for (int i = 0; i < r->n_wanted; i++) {
        clt_wanted *w = &r->wanted[i];
        if (w->module != p->index) continue;
        if (is_held(device, jobs, n, p->hash, w->kernel)) w->module = -1;
        else any = true;
    }
    return any;
}

/* ---- what was built before ---- */

typedef struct missing {
    clt_program_part *parts; /* NULL: they are only counted, and named */
    bool *found; /* of each part: whether a job has it */
    clt_text *names; /* NULL: none are wanted */
    size_t n;
} missing;

/* Kernels of one name may be of several modules, and are named once. */
static void add_name(clt_text *names, const char *kernel, const char *label) {
    char name[160];
    snprintf(name, sizeof name, "%s%s%s", kernel, *kernel ? " of " : "", label);
    if (!strstr(clt_text_data(names), name)) clt_text_add(names, "%s%s", names->length ? ", " : "", name);
}

/* All of a module is missing, of which these kernels are wanted; none: all are. */
static void add_names(clt_text *names, const request *r, int module) {
    bool any = false;
    for (int k = 0; k < r->n_wanted; k++)
        if (r->wanted[k].module == module) any = true, add_name(names, r->wanted[k].kernel, r->modules[module].label);
    if (!any) add_name(names, "", r->modules[module].label);
}

static void add_missing(missing *m, const char *hash, const char *kernel) {
    if (m->parts) {
        clt_program_part *part = &m->parts[m->n];
        memcpy(part->module, hash, sizeof part->module);
        snprintf(part->kernel, sizeof part->kernel, "%s", kernel);
    }
    m->n++;
}

static void find_missing(const clt_device *device, const request *r, missing *m) {
    for (int i = 0; i < r->n; i++) {
        char hash[CLT_HASH_TEXT];
        const clt_module *module = &r->modules[i];
        bool whole = r->whole || !module->separable;
        clt_hash_text(module->text, strlen(module->text), hash);
        if (whole && !clt_device_find_program(device, hash, "")) {
            add_missing(m, hash, "");
            if (m->names) add_names(m->names, r, i);
        }
        for (int k = 0; !whole && k < r->n_wanted; k++) {
            const char *kernel = r->wanted[k].kernel;
            if (r->wanted[k].module != i || clt_device_find_program(device, hash, kernel)) continue;
            add_missing(m, hash, kernel);
            if (m->names) add_name(m->names, kernel, module->label);
        }
    }
}

static clt_status take_program(build_job *job, clt_catalog_choice choice) {
    job->known = true;
    job->label = "several modules";
    job->program = clt_calloc(1, sizeof *job->program);
    if (!job->program) return clt_fail_memory(sizeof *job->program);
    for (size_t i = 0; i < choice.n; i++) CLT_TRY(clt_program_add_part(job->program, choice.parts[i].part.module, choice.parts[i].part.kernel));
    return CLT_OK;
}

/* Jobs of programs that have some of what is missing, from jobs[*n] on. */
static clt_status take_known(clt_device *device, missing *m, build_job *jobs, int *n) {
    clt_catalog_choice choice = {0};
    clt_catalog_read(device);
    for (int taken = 0; taken < MOST_KNOWN && clt_catalog_choose(&device->catalog, m->parts, m->found, m->n, &choice);) {
        build_job *job = &jobs[*n];
        if (!clt_catalog_source(device, choice, &job->source)) {
            clt_text_free(&job->source);
            continue;
        }
        ++*n, taken++;
        job->device = device;
        CLT_TRY(take_program(job, choice));
        for (size_t i = 0; i < m->n; i++) m->found[i] |= holds(job->program, m->parts[i].module, m->parts[i].kernel);
    }
    return CLT_OK;
}

static clt_status gather_known(clt_device *device, const request *r, build_job *jobs, int *n) {
    size_t most = (size_t)r->n + (size_t)r->n_wanted;
    missing m = {.parts = clt_alloc(most * sizeof *m.parts), .found = clt_calloc(most, sizeof *m.found)};
    clt_status status = m.parts && m.found ? CLT_OK : clt_fail_memory(most * sizeof *m.parts);
    if (status == CLT_OK) find_missing(device, r, &m);
    if (status == CLT_OK && m.n) status = take_known(device, &m, jobs, n);
    clt_free(m.parts);
    clt_free(m.found);
    return status;
}

static clt_status gather(clt_device *device, const request *r, build_job *jobs, int *n_jobs) {
    int isolated = PROGRAMS_PER_REQUEST;
    if (keeps_catalog(device)) CLT_TRY(gather_known(device, r, jobs, &isolated));
    for (int i = 0; i < r->n; i++) {
        portion p = {.module = &r->modules[i], .wanted = r->wanted, .n_wanted = r->n_wanted, .index = i};
        clt_hash_text(p.module->text, strlen(p.module->text), p.hash);
        if (!is_missing(device, jobs, isolated, r, &p)) continue;
        int target = p.module->isolated ? isolated++ : choose_job(device, jobs);
        jobs[target].device = device;
        CLT_TRY(job_add(&jobs[target], &p));
    }
    int kept = 0;
    for (int j = 0; j < isolated; j++)
        if (jobs[j].program) {
            build_job job = jobs[j];
            jobs[j] = (build_job){0};
            jobs[kept++] = job;
        }
    *n_jobs = kept;
    return CLT_OK;
}

clt_status clt_program_adopt(clt_device *device, clt_program *program) {
    clt_mutex_lock(&device->mutex);
    clt_status status = clt_grow(&device->programs, &device->programs_capacity, device->n_programs, sizeof *device->programs);
    if (status == CLT_OK) device->programs[device->n_programs++] = program;
    clt_mutex_unlock(&device->mutex);
    if (status < 0) clt_program_free(device, program);
    return status;
}

static clt_status adopt(clt_device *device, build_job *job) {
    if (job->status < 0) return clt_fail_again(job->status, job->error);
    clt_program *program = job->program;
    job->program = NULL;
    CLT_TRY(clt_program_adopt(device, program));
    if (job->loaded) device->counts.loaded++;
    else device->counts.built++;
    return CLT_OK;
}

/* ---- without a compiler ---- */

bool clt_compiles_nothing(const clt_device *device) {
    return !strcmp(device->settings.compiler, "never");
}

/* Each kernel that is not there is named. */
static clt_status find_all(const clt_device *device, const request *r) {
    clt_text names = {0};
    missing m = {.names = &names};
    const char *bundle = device->settings.bundle;
    find_missing(device, r, &m);
    clt_status status = names.status;
    if (m.n)
        status = clt_fail(CLT_E_BUILD, "CLTRAIN_COMPILER=never, and %s%s: %s. Make a bundle by what is done here (cltrain-offline compile takes the options of cltrain-train)",
                          bundle[0] ? "kernels are missing in the bundle " : "CLTRAIN_BUNDLE names no bundle that would have these kernels", bundle, clt_text_data(&names));
    clt_text_free(&names);
    return status;
}

/* Of what was not built before, as far as is known, a second process compiles a part. */
static void share_work(clt_device *device, const build_job *jobs, int n) {
    size_t kernels = 0;
    if (!keeps_catalog(device)) return;
    for (int i = 0; i < n; i++) kernels += jobs[i].known ? 0 : jobs[i].program->n_parts;
    clt_helper_start(device, kernels);
    for (int i = 0; i < n; i++)
        if (!jobs[i].known) clt_helper_add_program(device, jobs[i].program->key, &jobs[i].source);
    clt_device_compile_beside(device);
}

static clt_status build(clt_device *device, const request *r) {
    int most = r->n + PROGRAMS_PER_REQUEST + MOST_KNOWN, n_jobs = 0;
    if (clt_compiles_nothing(device)) return find_all(device, r);
    build_job *jobs = clt_calloc((size_t)most, sizeof *jobs);
    if (!jobs) return clt_fail_memory((size_t)most * sizeof *jobs);
    double start = clt_seconds();
    clt_status status = gather(device, r, jobs, &n_jobs);
    if (status == CLT_OK) {
        for (int i = 0; i < n_jobs; i++) clt_program_key(device, jobs[i].source.data, jobs[i].source.length, jobs[i].program->key);
        share_work(device, jobs, n_jobs);
        clt_parallel_for(n_jobs, build_threads(device), run_job, jobs);
        for (int i = 0; i < n_jobs && status == CLT_OK; i++) status = adopt(device, &jobs[i]);
        if (n_jobs > 0)
            clt_log_message(CLT_LOG_DEBUG, "%d programs ready in %.3f s (so far %d built, %d from the cache)",
                            n_jobs, clt_seconds() - start, device->counts.built, device->counts.loaded);
    }
    for (int i = 0; i < most; i++) {
        clt_program_free(device, jobs[i].program);
        clt_text_free(&jobs[i].source);
    }
    clt_free(jobs);
    return status;
}

clt_status clt_device_build(clt_device *device, const clt_module *modules, int n) {
    return build(device, &(request){.modules = modules, .n = n, .whole = true});
}

static bool is_repeated(const clt_wanted *wanted, int i) {
    for (int k = 0; k < i; k++)
        if (wanted[k].module == wanted[i].module && !strcmp(wanted[k].kernel, wanted[i].kernel)) return true;
    return false;
}

clt_status clt_device_build_kernels(clt_device *device, const clt_module *modules, int n, const clt_wanted *wanted,
                                    int n_wanted) {
    clt_wanted *once = clt_alloc((size_t)n_wanted * sizeof *once + 1);
    request r = {.modules = modules, .n = n, .wanted = once};
    if (!once) return clt_fail_memory((size_t)n_wanted * sizeof *once);
    for (int i = 0; i < n_wanted; i++)
        if (wanted[i].module >= 0 && !is_repeated(wanted, i)) once[r.n_wanted++] = wanted[i];
    clt_status status = build(device, &r);
    clt_free(once);
    return status;
}

clt_build_counts clt_device_build_counts(const clt_device *device) {
    return device->counts;
}
