/* SPDX-License-Identifier: Apache-2.0 */
/* Two processes bind workers to one core, as two ranks of MPI with one mask do: the second is
 * warned. Other tests may have the core meanwhile, too, so that absence of the warning is asserted
 * only where nothing is bound; unit.cpu_claim has the rest. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "behave.h"

#define CLAIMS "/sys/devices/system/cpu/possible"

typedef struct heard {
    int shared, twin, other;
} heard;

static void hear(filch_log_level level, const char *text, void *user)
{
    heard *all = user;
    CHECK(level == FILCH_LOG_WARNING);
    if (strstr(text, "workers of another runtime of this process are bound to") != NULL) {
        ++all->twin;
    } else if (strstr(text, "workers of process ") != NULL ||
               strstr(text, "workers of another process ") != NULL) { /* of another container */
        ++all->shared;
    } else {
        fprintf(stderr, "%s\n", text);
        ++all->other;
    }
}

static heard count_warnings(const char *devices, filch_drive drive, filch_bind bind)
{
    filch_runtime_desc config = FILCH_RUNTIME_DESC_INIT;
    filch_error error = FILCH_ERROR_INIT;
    filch_runtime *runtime = NULL;
    heard all = {0};
    config.devices = devices;
    config.drive = drive;
    config.bind = bind;
    config.log = hear;
    config.log_user = &all;
    CHECK(filch_runtime_create(&config, &error, &runtime) == FILCH_OK);
    CHECK(filch_runtime_destroy(runtime) == FILCH_OK);
    CHECK(all.other == 0);
    return all;
}

/* The other process: says that it is there, and stays until it is killed. */
static void stay(int ready)
{
    filch_runtime *runtime = behave_create("host:1", FILCH_DRIVE_THREADS);
    CHECK(write(ready, "r", 1) == 1);
    for (;;) {
        pause();
    }
    (void)runtime;
}

int main(void)
{
    int ready[2], file = open(CLAIMS, O_RDONLY);
    struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET, .l_len = 1};
    char byte;
    unsetenv("FILCH_BIND");
    if (file < 0 || fcntl(file, F_OFD_SETLK, &lock) != 0) {
        printf("%s cannot be locked here: skipped\n", CLAIMS);
        return 77;
    }
    close(file);
    CHECK(pipe(ready) == 0);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        close(ready[0]);
        stay(ready[1]);
    }
    close(ready[1]);
    CHECK(read(ready[0], &byte, 1) == 1);
    CHECK(count_warnings("host:1", FILCH_DRIVE_THREADS, FILCH_BIND_CORES).shared == 1);
    CHECK(count_warnings("host:3,host:1x2", FILCH_DRIVE_THREADS, FILCH_BIND_DEFAULT).shared == 1);
    CHECK(count_warnings("host:1", FILCH_DRIVE_THREADS, FILCH_BIND_NONE).shared == 0);
    CHECK(count_warnings("host:1@any", FILCH_DRIVE_THREADS, FILCH_BIND_CORES).shared == 0);
    CHECK(count_warnings("host:1", FILCH_DRIVE_POLL, FILCH_BIND_CORES).shared == 0);
    CHECK(kill(child, SIGKILL) == 0);
    CHECK(waitpid(child, NULL, 0) == child);

    /* Two runtimes of one process get the same warning. */
    filch_runtime *first = behave_create("host:1", FILCH_DRIVE_THREADS);
    CHECK(count_warnings("host:1", FILCH_DRIVE_THREADS, FILCH_BIND_CORES).twin == 1);
    CHECK(filch_runtime_destroy(first) == FILCH_OK);
    CHECK(count_warnings("host:1", FILCH_DRIVE_THREADS, FILCH_BIND_CORES).twin == 0);
    printf("who shares cores is warned\n");
    return 0;
}
