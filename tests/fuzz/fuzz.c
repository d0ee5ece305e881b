/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "fuzz.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Files are in memory where they can be: on a disk a case waits for it most of the time. */
static const char *const places[] = {"/dev/shm", "/tmp"};
static char folder[64];
static char paths[2][192];

char *fuzz_text(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);

    fuzz_require(text != NULL);
    if (size > 0)
        memcpy(text, data, size);
    text[size] = '\0';
    return text;
}

static void remove_folder(void)
{
    DIR *all = opendir(folder);

    if (all == NULL)
        return;
    for (const struct dirent *entry; (entry = readdir(all)) != NULL;)
        (void)unlinkat(dirfd(all), entry->d_name, 0);
    (void)closedir(all);
    (void)rmdir(folder);
}

const char *fuzz_folder(void)
{
    if (folder[0] == '\0') {
        bool is_made = false;
        for (size_t i = 0; !is_made && i < sizeof places / sizeof places[0]; i++) {
            (void)snprintf(folder, sizeof folder, "%s/filch-fuzz-XXXXXX", places[i]);
            is_made = mkdtemp(folder) != NULL;
        }
        fuzz_require(is_made && atexit(remove_folder) == 0);
    }
    return folder;
}

const char *fuzz_file(unsigned slot, const char *name, const void *data, size_t size)
{
    char *path = paths[slot];
    int file;

    (void)snprintf(path, sizeof paths[0], "%s/%s", fuzz_folder(), name);
    file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    fuzz_require(file >= 0 && (size == 0 || write(file, data, size) == (ssize_t)size));
    (void)close(file);
    return path;
}

void fuzz_require_at(bool holds, const char *property, const char *file, int line)
{
    if (holds)
        return;
    fprintf(stderr, "%s:%d: does not hold: %s\n", file, line, property);
    abort();
}

void fuzz_require_error(const filch_error *error, filch_status status)
{
    fuzz_require(status != FILCH_OK && error->status == status);
    fuzz_require(memchr(error->text, '\0', sizeof error->text) != NULL && error->text[0] != '\0');
    fuzz_require(memchr(error->label, '\0', sizeof error->label) != NULL);
    fuzz_require(error->line >= 0);
}
