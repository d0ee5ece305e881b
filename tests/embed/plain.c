/* SPDX-License-Identifier: Apache-2.0 */
/* A plain program that loads filch at run time: plain LIBRARY. Exits 3 where it cannot be loaded,
 * 1 where it is loaded and does not work. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "filch/runtime.h"

/* POSIX promises that dlsym's result can be a function; ISO C knows no such conversion. */
static int find(void *library, const char *name, void *function, size_t size)
{
    void *symbol = dlsym(library, name);

    memcpy(function, &symbol, size);
    return symbol != NULL;
}

static int use(void *library)
{
    filch_status (*create)(const filch_runtime_desc *, filch_error *, filch_runtime **);
    filch_status (*destroy)(filch_runtime *);
    filch_runtime_desc config = FILCH_RUNTIME_DESC_INIT;
    filch_error error = FILCH_ERROR_INIT;
    filch_runtime *runtime = NULL;

    if (!find(library, "filch_runtime_create", &create, sizeof create) ||
        !find(library, "filch_runtime_destroy", &destroy, sizeof destroy)) {
        printf("a function is missing\n");
        return 1;
    }
    config.devices = "host:1";
    if (create(&config, &error, &runtime) != FILCH_OK) {
        printf("create: %s\n", error.text);
        return 1;
    }
    return destroy(runtime) == FILCH_OK ? 0 : 1;
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        return 2;
    }
    /* Twice: the second time the library is loaded after its first instance was let go. */
    for (int i = 0; i < 2; i++) {
        void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
        if (library == NULL) {
            printf("%s\n", dlerror());
            return 3;
        }
        if (use(library) != 0) {
            return 1;
        }
        dlclose(library);
    }
    printf("loaded and used twice\n");
    return 0;
}
