/* SPDX-License-Identifier: Apache-2.0 */
/* Outputs: what they replace, what they refuse, and what they leave behind. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/output.h"

static char folder[64], target[96], other[96];
static fl_output output;

static int begin(void **state)
{
    (void)state;
    (void)snprintf(folder, sizeof folder, "/tmp/filch-output-XXXXXX");
    if (mkdtemp(folder) == NULL)
        return 1;
    (void)snprintf(target, sizeof target, "%s/target", folder);
    (void)snprintf(other, sizeof other, "%s/other", folder);
    return 0;
}

/* The name of a file in the folder that is neither the target nor the other one; counts all. */
static uint32_t look(char aside[160])
{
    DIR *all = opendir(folder);
    const struct dirent *entry;
    uint32_t count = 0;

    assert_non_null(all);
    aside[0] = '\0';
    while ((entry = readdir(all)) != NULL) {
        if (entry->d_name[0] == '.' && strlen(entry->d_name) < 3)
            continue;
        count++;
        if (strcmp(entry->d_name, "target") != 0 && strcmp(entry->d_name, "other") != 0)
            (void)snprintf(aside, 160, "%s/%.60s", folder, entry->d_name);
    }
    (void)closedir(all);
    return count;
}

static uint32_t count_files(void)
{
    char aside[160];

    return look(aside);
}

static int end(void **state)
{
    (void)state;
    (void)remove(target);
    (void)remove(other);
    return rmdir(folder);
}

static void put_text(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void check_text(const char *path, const char *wanted)
{
    char text[64] = "";
    FILE *file = fopen(path, "r");

    assert_non_null(file);
    (void)fread(text, 1, sizeof text - 1, file);
    assert_int_equal(fclose(file), 0);
    assert_string_equal(text, wanted);
}

static mode_t rights_of(const char *path)
{
    struct stat found;

    assert_int_equal(lstat(path, &found), 0);
    return found.st_mode & 07777;
}

static bool open_target(fl_output_rights rights)
{
    return fl_output_open(&output, AT_FDCWD, target, "mine-", rights);
}

static void the_target_is_as_it_was_until_all_is_written(void **state)
{
    (void)state;
    assert_true(open_target(FL_OUTPUT_SHARED));
    assert_int_not_equal(access(target, F_OK), 0);
    assert_true(fl_output_write(&output, "new", 3));
    assert_true(fl_output_commit(&output));
    check_text(target, "new");
    assert_true(open_target(FL_OUTPUT_SHARED));
    assert_true(fprintf(fl_output_stream(&output), "%s", "newer") > 0);
    check_text(target, "new");
    assert_true(fl_output_commit(&output));
    check_text(target, "newer");
    assert_true(open_target(FL_OUTPUT_SHARED));
    assert_true(fl_output_write(&output, "dropped", 7));
    fl_output_abandon(&output);
    fl_output_abandon(&output);
    check_text(target, "newer");
    assert_int_equal(count_files(), 1);
}

static void rights_are_the_umasks_or_kept(void **state)
{
    mode_t usual = umask(027);

    (void)state;
    assert_true(open_target(FL_OUTPUT_SHARED));
    assert_true(fl_output_commit(&output));
    assert_int_equal(rights_of(target), 0640);
    assert_int_equal(chmod(target, 0606), 0);
    assert_true(open_target(FL_OUTPUT_SHARED));
    assert_true(fl_output_commit(&output));
    assert_int_equal(rights_of(target), 0606);
    assert_int_equal(chmod(target, 06755), 0);
    assert_true(open_target(FL_OUTPUT_SHARED));
    assert_true(fl_output_commit(&output));
    assert_int_equal(rights_of(target), 0755);
    (void)umask(0);
    assert_true(open_target(FL_OUTPUT_PRIVATE));
    assert_true(fl_output_commit(&output));
    assert_int_equal(rights_of(target), 0600);
    (void)umask(usual);
}

static void check_refused(int code, const char *reason)
{
    struct stat before, after;
    char why[FL_OUTPUT_WHY];

    assert_int_equal(lstat(target, &before), 0);
    assert_false(fl_output_can(&output, target));
    assert_int_equal(output.code, code);
    assert_false(open_target(FL_OUTPUT_SHARED));
    assert_int_equal(output.code, code);
    assert_non_null(strstr(fl_output_why(&output, why), reason));
    assert_int_equal(lstat(target, &after), 0);
    assert_int_equal(before.st_ino, after.st_ino);
    assert_int_equal(count_files(), 1);
    assert_int_equal(remove(target), 0);
}

static void only_regular_files_are_replaced(void **state)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int plug = socket(AF_UNIX, SOCK_STREAM, 0);

    (void)state;
    assert_int_equal(symlink("/dev/null", target), 0);
    check_refused(ELOOP, "symbolic link");
    assert_int_equal(mkdir(target, 0700), 0);
    check_refused(EISDIR, "directory");
    assert_int_equal(mkfifo(target, 0600), 0);
    check_refused(EINVAL, "FIFO");
    assert_true(plug >= 0);
    (void)snprintf(address.sun_path, sizeof address.sun_path, "%s", target);
    assert_int_equal(bind(plug, (const struct sockaddr *)&address, sizeof address), 0);
    check_refused(EINVAL, "socket");
    assert_int_equal(close(plug), 0);
}

static void devices_stay(void **state)
{
    char why[FL_OUTPUT_WHY];

    (void)state;
    assert_false(fl_output_can(&output, "/dev/null"));
    assert_int_equal(output.code, EINVAL);
    assert_non_null(strstr(fl_output_why(&output, why), "device"));
}

static void paths_that_name_no_file(void **state)
{
    char folder_of[96], name[300];

    (void)state;
    assert_false(fl_output_can(&output, ""));
    assert_int_equal(output.code, ENOENT);
    assert_false(fl_output_can(&output, "/"));
    assert_int_equal(output.code, EISDIR);
    (void)snprintf(folder_of, sizeof folder_of, "%s/", folder);
    assert_false(fl_output_can(&output, folder_of));
    assert_int_equal(output.code, EISDIR);
    (void)snprintf(folder_of, sizeof folder_of, "%s/none/file", folder);
    assert_false(fl_output_can(&output, folder_of));
    assert_int_equal(output.code, ENOENT);
    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    assert_false(fl_output_can(&output, name));
    assert_int_equal(output.code, ENAMETOOLONG);
    assert_true(fl_output_can(&output, target));
    assert_int_equal(count_files(), 0);
}

static void a_relative_path_begins_at_the_folder(void **state)
{
    int at = open(folder, O_RDONLY | O_DIRECTORY);

    (void)state;
    assert_true(at >= 0);
    assert_true(fl_output_open(&output, at, "target", ".x-", FL_OUTPUT_PRIVATE));
    assert_true(fl_output_write(&output, "here", 4));
    assert_true(fl_output_commit(&output));
    check_text(target, "here");
    assert_int_equal(close(at), 0);
}

/* Links among the folders are the caller's own. */
static void folders_may_be_links(void **state)
{
    char through[128];

    (void)state;
    assert_int_equal(symlink(folder, other), 0);
    (void)snprintf(through, sizeof through, "%s/target", other);
    assert_true(fl_output_open(&output, AT_FDCWD, through, "x", FL_OUTPUT_SHARED));
    assert_true(fl_output_commit(&output));
    check_text(target, "");
}

/* In the place of the temporary file, somebody else's file is neither removed nor renamed. */
static void only_its_own_file_is_removed(void **state)
{
    char aside[160];

    (void)state;
    put_text(target, "old");
    for (int commits = 0; commits < 2; commits++) {
        assert_true(open_target(FL_OUTPUT_SHARED));
        assert_int_equal(look(aside), 2);
        assert_non_null(strstr(aside, "/mine-"));
        assert_int_equal(rename(aside, other), 0); /* its inode stays in use */
        put_text(aside, "precious");
        if (commits == 0) {
            fl_output_abandon(&output);
        } else {
            assert_false(fl_output_commit(&output));
            assert_int_equal(output.code, ESTALE);
        }
        check_text(aside, "precious");
        check_text(target, "old");
        assert_int_equal(unlink(aside), 0);
        assert_int_equal(unlink(other), 0);
    }
}

static void a_target_that_becomes_a_link_stays(void **state)
{
    struct stat found;

    (void)state;
    assert_true(open_target(FL_OUTPUT_SHARED));
    assert_int_equal(symlink("/dev/null", target), 0);
    assert_false(fl_output_commit(&output));
    assert_int_equal(output.code, ELOOP);
    assert_int_equal(lstat(target, &found), 0);
    assert_true(S_ISLNK(found.st_mode));
    assert_int_equal(count_files(), 1);
}

static void what_does_not_fit_is_told(void **state)
{
    const struct rlimit small = {.rlim_cur = 5, .rlim_max = RLIM_INFINITY};
    struct rlimit usual;
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    bool written[3];

    (void)state;
    put_text(target, "old");
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &usual), 0);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    written[0] = open_target(FL_OUTPUT_SHARED) && fl_output_write(&output, "0123456789", 10);
    fl_output_abandon(&output);
    written[1] = output.code != EFBIG;
    /* The stream keeps all of it until it is closed. */
    written[2] = open_target(FL_OUTPUT_SHARED) &&
                 fputs("0123456789", fl_output_stream(&output)) >= 0 && fl_output_commit(&output);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &usual), 0);
    (void)signal(SIGXFSZ, handler);
    assert_false(written[0]);
    assert_false(written[1]);
    assert_false(written[2]);
    assert_int_equal(output.code, EFBIG);
    check_text(target, "old");
    assert_int_equal(count_files(), 1);
}

/* Root may write any file. */
static void a_file_that_may_not_be_written_stays(void **state)
{
    bool is_root = geteuid() == 0;

    (void)state;
    put_text(target, "old");
    assert_int_equal(chmod(target, 0444), 0);
    if (is_root)
        assert_int_equal(chmod(folder, 0755), 0);
    if (is_root && (chown(folder, 65534, 65534) != 0 || chown(target, 65534, 65534) != 0 ||
                    seteuid(65534) != 0))
        skip();
    bool opened = open_target(FL_OUTPUT_SHARED);
    int code = output.code;
    fl_output_abandon(&output);
    if (is_root)
        assert_int_equal(seteuid(0), 0);
    assert_false(opened);
    assert_int_equal(code, EACCES);
    check_text(target, "old");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_target_is_as_it_was_until_all_is_written, begin, end),
        cmocka_unit_test_setup_teardown(rights_are_the_umasks_or_kept, begin, end),
        cmocka_unit_test_setup_teardown(only_regular_files_are_replaced, begin, end),
        cmocka_unit_test_setup_teardown(devices_stay, begin, end),
        cmocka_unit_test_setup_teardown(paths_that_name_no_file, begin, end),
        cmocka_unit_test_setup_teardown(a_relative_path_begins_at_the_folder, begin, end),
        cmocka_unit_test_setup_teardown(folders_may_be_links, begin, end),
        cmocka_unit_test_setup_teardown(only_its_own_file_is_removed, begin, end),
        cmocka_unit_test_setup_teardown(a_target_that_becomes_a_link_stays, begin, end),
        cmocka_unit_test_setup_teardown(what_does_not_fit_is_told, begin, end),
        cmocka_unit_test_setup_teardown(a_file_that_may_not_be_written_stays, begin, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
