/* SPDX-License-Identifier: Apache-2.0 */
/* A program that links libfilch.so keeps the C library's allocator and threads. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "filch/runtime.h"

static const char *const kept[] = {
    "malloc",         "free",          "calloc",
    "realloc",        "aligned_alloc", "posix_memalign",
    "memalign",       "valloc",        "malloc_usable_size",
    "pthread_create", "thrd_create",
};
static const char *const hidden[] = {
    "mallocx", "dallocx",     "sdallocx",       "rallocx",
    "mallctl", "malloc_conf", "malloc_message", "malloc_stats_print",
};

int main(void)
{
    filch_runtime_desc config = FILCH_RUNTIME_DESC_INIT;
    filch_error error = FILCH_ERROR_INIT;
    filch_runtime *runtime = NULL;
    int failures = 0;

    /* In use, not merely linked: every first-call initialization has happened. */
    config.devices = "host:1";
    if (filch_runtime_create(&config, &error, &runtime) != FILCH_OK) {
        printf("create: %s\n", error.text);
        return 1;
    }
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) {
        Dl_info info;
        void *symbol = dlsym(RTLD_DEFAULT, kept[i]);
        if (symbol == NULL || dladdr(symbol, &info) == 0 ||
            strstr(info.dli_fname, "libc.so") == NULL) {
            printf("%s is not the C library's\n", kept[i]);
            failures++;
        }
    }
    for (size_t i = 0; i < sizeof hidden / sizeof *hidden; i++) {
        if (dlsym(RTLD_DEFAULT, hidden[i]) != NULL) {
            printf("%s is visible to the program\n", hidden[i]);
            failures++;
        }
    }
    if (filch_runtime_destroy(runtime) != FILCH_OK) {
        failures++;
    }
    return failures == 0 ? 0 : 1;
}
