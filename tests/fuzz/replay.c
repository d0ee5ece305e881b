/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a fuzzer's function over every file of the folders and files that it is given. */
#define _GNU_SOURCE
#include "fuzz.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static size_t replay_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    uint8_t *data = malloc(1 << 20);
    size_t size;

    if (file == NULL || data == NULL) {
        fprintf(stderr, "%s: cannot be read\n", path);
        exit(EXIT_FAILURE);
    }
    size = fread(data, 1, 1 << 20, file);
    (void)fclose(file);
    /* Known before the call: a sanitizer ends the process inside it. */
    fprintf(stderr, "%s\n", path);
    (void)LLVMFuzzerTestOneInput(data, size);
    free(data);
    return 1;
}

static size_t replay(const char *path)
{
    struct dirent **names;
    char each[1024];
    size_t count = 0;
    int found = scandir(path, &names, NULL, alphasort);

    if (found < 0)
        return replay_file(path);
    for (int k = 0; k < found; k++) {
        if (names[k]->d_name[0] != '.') {
            (void)snprintf(each, sizeof each, "%s/%s", path, names[k]->d_name);
            count += replay_file(each);
        }
        free(names[k]);
    }
    free(names);
    return count;
}

int main(int argc, char **argv)
{
    size_t count = 0;

    for (int k = 1; k < argc; k++)
        count += replay(argv[k]);
    printf("%zu inputs\n", count);
    return count > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
