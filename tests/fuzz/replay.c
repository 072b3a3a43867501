/*
 * Runs a fuzzer over the files of folders: what was found once must stay mended, with any compiler.
 *
 *     replay FOLDER...
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/fuzz.h"

enum { MOST_BYTES = 1 << 20 };

static int replay_file(const char *path) {
    FILE *file = fopen(path, "rb");
    uint8_t *bytes = malloc(MOST_BYTES);
    if (!file || !bytes) {
        fprintf(stderr, "%s cannot be read\n", path);
        free(bytes);
        return file ? fclose(file), 1 : 1;
    }
    size_t length = fread(bytes, 1, MOST_BYTES, file);
    fclose(file);
    uint8_t *own = malloc(length + !length); /* reading past its end is found */
    if (own) memcpy(own, bytes, length);
    free(bytes);
    if (own) LLVMFuzzerTestOneInput(own, length);
    free(own);
    return !own;
}

static int replay_folder(const char *folder, int *count) {
    struct dirent **entries;
    int bad = 0, n = scandir(folder, &entries, NULL, alphasort);
    if (n < 0) return fprintf(stderr, "%s cannot be read\n", folder), 1;
    for (int i = 0; i < n; i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name);
        if (entries[i]->d_name[0] != '.') bad |= replay_file(path), ++*count;
        free(entries[i]);
    }
    free(entries);
    return bad;
}

int main(int argc, char **argv) {
    int bad = 0, count = 0;
    for (int i = 1; i < argc; i++) bad |= replay_folder(argv[i], &count);
    printf("%d inputs\n", count);
    return bad || count == 0;
}
