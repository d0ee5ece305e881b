/* SPDX-License-Identifier: Apache-2.0 */
/* A set-uid program that uses filch: whoever runs it cannot steer it by environment variables. The
 * test makes a copy of itself that belongs to another user, and runs it as nobody; without the
 * set-uid bit the same copy heeds the same variables. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/config.h"
#include "filch/filch.h"

enum { OWNER = 1, NOBODY = 65534, SKIPPED = 77, IGNORED = 10, HEEDED = 11, NOT_RAISED = 12 };

static int say(const char *what)
{
    fprintf(stderr, "setuid: %s\n", what);
    return EXIT_FAILURE;
}

/* The names of settings, each with a value that is refused where it is read, but for those that any
 * text will do for. */
static char *const hostile[] = {"FILCH_DEVICES=nonsense",
                                "FILCH_POLICY=nonsense",
                                "FILCH_LOG=debug",
                                "FILCH_NVRTC=/tmp/filch-setuid-evil.so",
                                "FILCH_CACHE_DIR=/tmp/filch-setuid-evil",
                                "FILCH_SPEEDS=/tmp/filch-setuid-evil.speeds",
                                "FILCH_UNKNOWN=1",
                                "XDG_CACHE_HOME=/tmp/filch-setuid-evil",
                                "HOME=/tmp/filch-setuid-evil",
                                "CUDA_VISIBLE_DEVICES=evil",
                                NULL};

/* Whether settings are as without any variable; -1: neither this nor refused. */
static int settings_ignore_it(void)
{
    fl_settings settings, defaults;
    char path[4096], quoted[32];

    memset(&settings, 0, sizeof settings);
    memset(&defaults, 0, sizeof defaults);
    fl_settings_defaults(&defaults);
    if (fl_settings_read(&settings, NULL, NULL) == FILCH_PARSE)
        return 0;
    if (memcmp(&settings, &defaults, sizeof settings) != 0 ||
        fl_settings_cache_path(&settings, path, sizeof path) != FILCH_NOT_FOUND ||
        fl_environment_quote("CUDA_VISIBLE_DEVICES", quoted, sizeof quoted))
        return -1;
    return 1;
}

/* Counts messages that speak of what the environment says. Others may name a setting: that a core
 * is another process's as well, for one, depends on which tests run beside this one. */
static void hear(filch_log_level level, const char *text, void *user)
{
    (void)level;
    *(int *)user += strstr(text, "FILCH_UNKNOWN") != NULL || strstr(text, "nonsense") != NULL ||
                    strstr(text, "evil") != NULL;
}

static int attacked(void)
{
    filch_runtime_desc config = FILCH_RUNTIME_DESC_INIT;
    filch_runtime *runtime = NULL;
    filch_error error = FILCH_ERROR_INIT;
    bool is_raised = getauxval(AT_SECURE) != 0;
    int ignores = settings_ignore_it(), said = 0;

    if (!is_raised && getuid() != geteuid())
        return say("raised, and the system does not tell");
    config.log = hear;
    config.log_user = &said;
    config.log_level = FILCH_LOG_DEBUG;
    filch_status status = filch_runtime_create(&config, &error, &runtime);
    if (status == FILCH_OK && filch_runtime_destroy(runtime) != FILCH_OK)
        return say("cannot be destroyed");
    if (ignores == 0 && status == FILCH_PARSE)
        return is_raised ? say("raised, and heeds the environment") : HEEDED;
    if (ignores != 1 || status != FILCH_OK || said != 0)
        return say("heeds some of the environment");
    return is_raised ? IGNORED : NOT_RAISED;
}

static int copy_self(const char *path)
{
    char bytes[65536];
    int from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    int to = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0700);
    ssize_t got = -1;

    while (from >= 0 && to >= 0 && (got = read(from, bytes, sizeof bytes)) > 0)
        if (write(to, bytes, (size_t)got) != got)
            return -1;
    return got == 0 && close(from) == 0 && close(to) == 0 ? 0 : -1;
}

static int run_as_nobody(const char *path)
{
    char *const arguments[] = {"setuid", "--attacked", NULL};
    int status = -1;
    pid_t child = fork();

    if (child == 0) {
        if (setgid(NOBODY) == 0 && setuid(NOBODY) == 0)
            (void)execve(path, arguments, hostile);
        _exit(SKIPPED);
    }
    if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status))
        return -1;
    return WEXITSTATUS(status);
}

static int check(const char *path)
{
    int plain, raised;

    if (copy_self(path) != 0 || chown(path, OWNER, OWNER) != 0 || chmod(path, 0755) != 0)
        return say("no copy can be made");
    plain = run_as_nobody(path);
    if (plain == SKIPPED) {
        (void)say("nobody cannot run a copy in /tmp: skipped");
        return SKIPPED;
    }
    if (plain != HEEDED)
        return say("without raised privileges the environment is not heeded");
    if (chmod(path, 04755) != 0)
        return say("no set-uid bit can be given");
    raised = run_as_nobody(path);
    if (raised == HEEDED || raised == NOT_RAISED) {
        (void)say("set-uid bits do not work in /tmp: skipped");
        return SKIPPED;
    }
    return raised == IGNORED ? EXIT_SUCCESS : say("with raised privileges something is wrong");
}

int main(int argc, char **argv)
{
    char folder[] = "/tmp/filch-setuid-XXXXXX", path[64];
    int result;

    if (argc == 2 && strcmp(argv[1], "--attacked") == 0)
        return attacked();
    if (geteuid() != 0) {
        (void)say("only root can make a program of another user's: skipped");
        return SKIPPED;
    }
    if (mkdtemp(folder) == NULL || chmod(folder, 0755) != 0)
        return say("no folder can be made");
    (void)snprintf(path, sizeof path, "%s/copy", folder);
    result = check(path);
    (void)unlink(path);
    (void)rmdir(folder);
    return result;
}
