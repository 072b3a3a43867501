#include "data_spec.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "tools/common/message.h"
#include "tools/common/numbers.h"
#include "tools/common/text.h"

const char data_spec_help[] =
    "  digits                                 8x8 hand-written digits, 10 classes, built in\n"
    "  idx:DIR[,stream=0|1]                   MNIST's files train-*-ubyte[.gz], t10k-*-ubyte[.gz];\n"
    "                                         stream=1 as of npy, for files that are no .gz\n"
    "  cifar10:DIR                            data_batch_1.bin ... data_batch_5.bin, test_batch.bin;\n"
    "                                         the first of the batches will do, without a gap\n"
    "  cifar100:DIR                           train.bin, test.bin: the 100 classes\n"
    "  folder:DIR[,size=N][,resize=N][,augment=0|1][,jitter=X][,erase=P]\n"
    "                                         images .jpg and .png in a folder for each class, or so in\n"
    "                                         DIR/train and DIR/val; N pixels on a side (default 224);\n"
    "                                         training parts are cut out at random and mirrored, with\n"
    "                                         jitter= of colours and erase= of boxes; resize=: the\n"
    "                                         shorter side of test images before the centre is cut out\n"
    "  tar:FILE.tar[,test=FILE.tar][,size=N]...\n"
    "                                         archives of images, as WebDataset has them: NAME.jpg and\n"
    "                                         NAME.cls; shards-{000..099}.tar names a hundred\n"
    "  csv:FILE[,label=C][,group=C][,drop=C,C,...][,texts=C,C,...]\n"
    "      [,missing=refuse|drop|mean][,skip=N][,header=0|1][,regression=0|1]\n"
    "      [,separator=S][,stream=0|1]\n"
    "                                         a table after N lines; C is the label's column, by name\n"
    "                                         or index from 0 (default: the last), or one that is\n"
    "                                         left out; labels are texts, or whole numbers from 0;\n"
    "                                         group=: lines with the same field there, such as those\n"
    "                                         of a patient, are held out together, or not;\n"
    "                                         features that are texts become 0 and 1; texts= takes\n"
    "                                         columns of numbers so, such as codes; lines that lack\n"
    "                                         a value are refused, dropped, or get the column's mean;\n"
    "                                         S is a character or 'tab'; stream=1 keeps values in a\n"
    "                                         file in $TMPDIR, else /var/tmp (default: what is larger\n"
    "                                         than a quarter of the memory)\n"
    "  npy:X.npy,Y.npy[,layout=nchw|nhwc][,stream=0|1]\n"
    "                                         whole numbers in Y are classes, others are targets;\n"
    "                                         images are [samples, channels, height, width]; nhwc:\n"
    "                                         [samples, height, width, channels] (PIL, OpenCV, Keras);\n"
    "                                         stream=1 leaves them in their files (default: what is\n"
    "                                         larger than a quarter of the memory)\n"
    "  text:FILE[,tokenizer=bytes|chars|gpt2|TOKENIZER.json][,context=N]\n"
    "                                         a language model's text, its last tenth for validation;\n"
    "                                         gpt2: a file of tokens as llm.c writes them; N tokens a\n"
    "                                         sample (default 256)\n"
    "  synthetic:SHAPE[,classes=K][,n=N]      noisy prototypes; SHAPE such as 3x32x32\n"
    "  synthetic-regression:NxD[,noise=S]     N samples of D features, a linear target\n";

/* One form of a SPEC. `rest` is what follows the colon, to be cut up at will. */
typedef struct source_form {
    const char *name;
    data_source source;
    const char *expected;
    bool (*parse)(data_spec *spec, char *rest);
} source_form;

static bool copy_text(char *to, size_t capacity, const char *from) {
    size_t length = strlen(from);
    if (length == 0 || length >= capacity) return false;
    memcpy(to, from, length + 1);
    return true;
}

/* Cuts the text at the next comma; NULL at its end. */
static char *next_part(char **rest) {
    char *part = *rest;
    if (!part) return NULL;
    char *comma = strchr(part, ',');
    if (comma) *comma = '\0';
    *rest = comma ? comma + 1 : NULL;
    return part;
}

/* The value of "key=value" if the part has that key. */
static const char *value_of(const char *part, const char *key) {
    size_t length = strlen(key);
    return strncmp(part, key, length) == 0 && part[length] == '=' ? part + length + 1 : NULL;
}

static bool parse_switch(const char *value, bool *on) {
    *on = value[0] == '1';
    return (value[0] == '0' || value[0] == '1') && value[1] == '\0';
}

static bool parse_nothing(data_spec *spec, char *rest) {
    (void)spec;
    return rest == NULL;
}

static bool parse_folder(data_spec *spec, char *rest) {
    return rest && copy_text(spec->path, sizeof spec->path, rest);
}

/* A comma may be part of a folder's name. */
static bool parse_idx(data_spec *spec, char *rest) {
    char *last = rest ? strrchr(rest, ',') : NULL;
    const char *value = last ? value_of(last + 1, "stream") : NULL;
    bool on;
    if (value && !parse_switch(value, &on)) return false;
    if (value) {
        spec->stream = on;
        *last = 0;
    }
    return parse_folder(spec, rest);
}

static bool parse_separator(data_spec *spec, const char *value) {
    bool tab = strcmp(value, "tab") == 0;
    spec->csv.separator = tab ? '\t' : value[0];
    return tab || (value[0] && !value[1]);
}

static bool parse_missing(data_spec *spec, const char *value) {
    static const char *const words[] = {[CLT_MISSING_REFUSE] = "refuse", [CLT_MISSING_DROP] = "drop", [CLT_MISSING_MEAN] = "mean"};
    for (int i = CLT_MISSING_REFUSE; i <= CLT_MISSING_MEAN; i++)
        if (strcmp(value, words[i]) == 0) return spec->csv.missing = (clt_missing)i, true;
    return false;
}

static bool parse_csv_option(data_spec *spec, const char *part) {
    const char *value;
    bool on;
    int64_t number;
    if ((value = value_of(part, "label"))) {
        spec->csv.label = spec->label;
        return copy_text(spec->label, sizeof spec->label, value);
    }
    if ((value = value_of(part, "group"))) {
        spec->csv.group = spec->group;
        return copy_text(spec->group, sizeof spec->group, value);
    }
    if ((value = value_of(part, "skip"))) {
        if (!number_whole(value, 0, INT_MAX, &number)) return false;
        spec->csv.skip_lines = (int)number;
        return true;
    }
    if ((value = value_of(part, "header"))) {
        if (!parse_switch(value, &on)) return false;
        spec->csv.header = on;
        spec->csv.no_header = !on;
        return true;
    }
    if ((value = value_of(part, "regression"))) {
        if (!parse_switch(value, &on)) return false;
        spec->task = on;
        return true;
    }
    if ((value = value_of(part, "missing"))) return parse_missing(spec, value);
    if ((value = value_of(part, "stream"))) {
        if (!parse_switch(value, &on)) return false;
        spec->stream = on;
        return true;
    }
    return (value = value_of(part, "separator")) && parse_separator(spec, value);
}

enum { COLUMNS = sizeof((data_spec *)0)->drop };
static bool add_column(char list[COLUMNS], const char *name) {
    size_t used = strlen(list);
    if (used && used + 1 < COLUMNS) list[used++] = ',';
    return copy_text(list + used, COLUMNS - used, name);
}

/* Behind drop= and texts=, what is no option is one column more. */
static bool parse_csv(data_spec *spec, char *rest) {
    const char *value;
    char *list = NULL;
    char *part = next_part(&rest);
    if (!part || !copy_text(spec->path, sizeof spec->path, part)) return false;
    while ((part = next_part(&rest))) {
        const char *dropped = value_of(part, "drop"), *texts = value_of(part, "texts");
        value = dropped ? dropped : texts;
        if (value) list = dropped ? spec->drop : spec->texts;
        else if (strchr(part, '=')) list = NULL;
        if (list ? !add_column(list, value ? value : part) : !parse_csv_option(spec, part)) return false;
    }
    if (spec->drop[0]) spec->csv.drop = spec->drop;
    if (spec->texts[0]) spec->csv.texts = spec->texts;
    return true;
}

/* Without Y there are no labels, which --predict does not need. */
static bool parse_npy(data_spec *spec, char *rest) {
    const char *layout = NULL;
    char *part = next_part(&rest);
    if (!part || !copy_text(spec->path, sizeof spec->path, part)) return false;
    while ((part = next_part(&rest))) {
        if ((layout = value_of(part, "layout"))) {
            if (strcmp(layout, "nchw") != 0 && strcmp(layout, "nhwc") != 0) return false;
            spec->layout = layout[1] == 'c' ? LAYOUT_NCHW : LAYOUT_NHWC;
        } else if ((layout = value_of(part, "stream"))) {
            bool on;
            if (!parse_switch(layout, &on)) return false;
            spec->stream = on;
        } else if (spec->path_y[0] || !copy_text(spec->path_y, sizeof spec->path_y, part)) {
            return false;
        }
    }
    return true;
}

static bool parse_images(data_spec *spec, char *rest) {
    const char *value;
    int64_t number;
    double real;
    clt_image_folder_options *o = &spec->images;
    char *part = next_part(&rest);
    if (!part || !copy_text(spec->path, sizeof spec->path, part)) return false;
    o->augment = true;
    while ((part = next_part(&rest))) {
        if (spec->source == DATA_TAR && (value = value_of(part, "test"))) {
            if (!copy_text(spec->path_y, sizeof spec->path_y, value)) return false;
        } else if ((value = value_of(part, "size")) || (value = value_of(part, "resize"))) {
            if (!number_whole(value, 1, part[0] == 's' ? 4096 : 16384, &number)) return false;
            *(part[0] == 's' ? &o->size : &o->resize) = (int)number;
        } else if ((value = value_of(part, "augment"))) {
            if (!parse_switch(value, &o->augment)) return false;
        } else if ((value = value_of(part, "jitter")) || (value = value_of(part, "erase"))) {
            if (!number_real(value, &real) || real < 0 || real > 1) return false;
            *(part[0] == 'j' ? &o->jitter : &o->erase) = (float)real;
        } else return false;
    }
    return !o->resize || o->resize >= (o->size ? o->size : 224);
}

static bool parse_text(data_spec *spec, char *rest) {
    const char *value;
    char *part = next_part(&rest);
    spec->context = 256;
    strcpy(spec->tokenizer, "bytes");
    if (!part || !copy_text(spec->path, sizeof spec->path, part)) return false;
    while ((part = next_part(&rest))) {
        bool fits = (value = value_of(part, "tokenizer")) ? copy_text(spec->tokenizer, sizeof spec->tokenizer, value)
                                                          : (value = value_of(part, "context")) && number_whole(value, 1, 1 << 24, &spec->context);
        if (!fits) return false;
    }
    return true;
}

static bool parse_synthetic(data_spec *spec, char *rest) {
    const char *value;
    char *part = next_part(&rest);
    spec->classes = 10;
    spec->samples = 4096;
    /* One dimension is left for the batch. */
    spec->shape.rank = part ? number_sizes(part, 'x', spec->shape.dims, CLT_MAX_RANK - 1) : 0;
    if (!spec->shape.rank) return false;
    while ((part = next_part(&rest))) {
        if ((value = value_of(part, "classes"))) {
            if (!number_whole(value, 2, INT_MAX, &spec->classes)) return false;
        } else if (!(value = value_of(part, "n")) ||
                   !number_whole(value, 1, INT64_MAX, &spec->samples)) {
            return false;
        }
    }
    return true;
}

static bool parse_synthetic_regression(data_spec *spec, char *rest) {
    const char *value;
    int64_t sizes[2];
    char *part = next_part(&rest);
    if (!part || number_sizes(part, 'x', sizes, 2) != 2) return false;
    spec->samples = sizes[0];
    spec->features = sizes[1];
    while ((part = next_part(&rest)))
        if (!(value = value_of(part, "noise")) || !number_real(value, &spec->noise) ||
            spec->noise < 0)
            return false;
    return true;
}

static const source_form forms[] = {
    {"digits", DATA_DIGITS, "digits and nothing after it", parse_nothing},
    {"idx", DATA_IDX, "idx:DIR[,stream=0|1] with a folder of MNIST's files", parse_idx},
    {"cifar10", DATA_CIFAR10, "cifar10:DIR with a folder of data_batch_1.bin and so on",
     parse_folder},
    {"cifar100", DATA_CIFAR100, "cifar100:DIR with a folder of train.bin and test.bin", parse_folder},
    {"folder", DATA_FOLDER,
     "folder:DIR[,size=N][,resize=N][,augment=0|1][,jitter=X][,erase=P], such as folder:flowers,size=160 "
     "(sizes up to 4096, resize no smaller than size, X and P from 0 to 1)",
     parse_images},
    {"tar", DATA_TAR, "tar:FILE.tar[,test=FILE.tar][,size=N][,resize=N][,augment=0|1][,jitter=X][,erase=P], such as tar:train-{00..09}.tar,test=val.tar,size=160",
     parse_images},
    {"csv", DATA_CSV,
     "csv:FILE[,label=C][,group=C][,drop=C,C,...][,texts=C,C,...][,missing=refuse|drop|mean][,skip=N][,header=0|1][,regression=0|1][,separator=S][,stream=0|1], "
     "such as csv:iris.csv,skip=1,label=4",
     parse_csv},
    {"npy", DATA_NPY, "npy:X.npy,Y.npy[,layout=nchw|nhwc][,stream=0|1]", parse_npy},
    {"text", DATA_TEXT,
     "text:FILE[,tokenizer=bytes|chars|gpt2|TOKENIZER.json][,context=N], such as text:book.txt,tokenizer=chars,context=64", parse_text},
    {"synthetic", DATA_SYNTHETIC,
     "synthetic:SHAPE[,classes=K][,n=N], such as synthetic:3x32x32,classes=10,n=4096 "
     "(K is 2 at least, N and SHAPE's 1 to 7 sizes 1 at least)",
     parse_synthetic},
    {"synthetic-regression", DATA_SYNTHETIC_REGRESSION,
     "synthetic-regression:NxD[,noise=S], such as synthetic-regression:10000x10,noise=0.1",
     parse_synthetic_regression},
};

/* What a file's name says it is. */
static const char *likely_source(const char *text) {
    static const struct {
        const char *suffix, *source;
    } kinds[] = {{".csv", "csv"}, {".csv.gz", "csv"}, {".tsv", "csv"}, {".npy", "npy"}, {".tar", "tar"}, {".txt", "text"}};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (!strchr(text, ':') && text_has_suffix(text, kinds[i].suffix)) return kinds[i].source;
    return NULL;
}

static int refuse_source(const char *text) {
    const char *likely = likely_source(text);
    if (likely) return usage_error("--data '%s': did you mean %s:%s?", text, likely, text);
    return usage_error(
        "--data '%s': expected digits, idx:DIR, cifar10:DIR, cifar100:DIR, folder:DIR, tar:FILE.tar, csv:FILE, npy:X.npy,Y.npy, text:FILE, "
        "synthetic:SHAPE or synthetic-regression:NxD",
        text);
}

int data_spec_parse(data_spec *spec, const char *text) {
    char copy[2 * DATA_PATH_BYTES];
    *spec = (data_spec){.text = text, .task = -1, .stream = -1};
    if (strlen(text) >= sizeof copy)
        return usage_error("--data: more than %zu characters", sizeof copy - 1);
    memcpy(copy, text, strlen(text) + 1);
    char *rest = strchr(copy, ':');
    if (rest) *rest++ = '\0';
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        if (strcmp(copy, forms[i].name) != 0) continue;
        spec->source = forms[i].source;
        if (forms[i].parse(spec, rest)) return 0;
        return usage_error("--data '%s': expected %s", text, forms[i].expected);
    }
    return refuse_source(text);
}

int data_spec_parse_new(data_spec *spec, const char *text) {
    static const char *const tables[] = {".csv", ".csv.gz", ".tsv", ".txt", NULL};
    static char whole[DATA_PATH_BYTES + 32]; /* the spec borrows it */
    const char *source = text_has_suffix(text, ".npy") ? "npy" : NULL;
    for (int i = 0; tables[i]; i++)
        if (text_has_suffix(text, tables[i])) source = "csv";
    if (source && !strchr(text, ':') && strlen(text) < DATA_PATH_BYTES) {
        snprintf(whole, sizeof whole, "%s:%s%s", source, text, text_has_suffix(text, ".tsv") ? ",separator=tab" : "");
        return data_spec_parse(spec, whole);
    }
    int code = data_spec_parse(spec, text);
    if (code || spec->source == DATA_CSV || spec->source == DATA_NPY || spec->source == DATA_FOLDER || spec->source == DATA_TAR) return code;
    return usage_error("'%s': expected FILE.csv, FILE.npy, csv:FILE, npy:FILE, folder:DIR or tar:FILE.tar", text);
}
