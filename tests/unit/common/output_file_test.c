/* SPDX-License-Identifier: Apache-2.0
 *
 * Output files: complete or absent, through symbolic links, and never instead of a device or a FIFO.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/output_file.h"

static char folder[] = "/tmp/dm_output_XXXXXX";

static const char *path_in(const char *name) {
    static char paths[4][200];
    static unsigned turn;
    char *path = paths[turn++ % 4];
    snprintf(path, sizeof(paths[0]), "%s/%s", folder, name);
    return path;
}

static void file_fill(const char *path, const char *text) {
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

static void assert_holds(const char *path, const char *text) {
    char found[64] = "";
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_non_null(fgets(found, sizeof(found), file));
    fclose(file);
    assert_string_equal(found, text);
}

static mode_t type_of(const char *path) {
    struct stat status;
    return lstat(path, &status) == 0 ? status.st_mode & S_IFMT : 0;
}

static void output(const char *path, const char *text) {
    FILE *file = dm_output_open(path, NULL);
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(dm_output_close(file, path, NULL), 0);
}

static void a_file_appears_when_it_is_closed(void **state) {
    (void)state;
    const char *path = path_in("new");
    char *temporary = dm_output_temporary(path);
    FILE *file = dm_output_open(path, NULL);
    fputs("text", file);
    assert_int_equal(type_of(path), 0);
    assert_int_equal(type_of(temporary), S_IFREG);
    assert_int_equal(dm_output_close(file, path, NULL), 0);
    assert_int_equal(type_of(temporary), 0);
    assert_holds(path, "text");
    free(temporary);
}

static void an_abandoned_file_leaves_the_old_one(void **state) {
    (void)state;
    const char *path = path_in("kept");
    char *temporary = dm_output_temporary(path);
    file_fill(path, "old");
    FILE *file = dm_output_open(path, NULL);
    fputs("new", file);
    dm_output_abandon(file, path);
    assert_holds(path, "old");
    assert_int_equal(type_of(temporary), 0);
    free(temporary);
}

static void symbolic_links_are_followed_and_kept(void **state) {
    (void)state;
    assert_int_equal(mkdir(path_in("below"), 0700), 0);
    assert_int_equal(symlink("below/second", path_in("first")), 0);
    assert_int_equal(symlink("target", path_in("below/second")), 0);
    static const char *const texts[] = {"a new target", "a target that exists"};
    for (int i = 0; i < 2; i++) {
        output(path_in("first"), texts[i]);
        assert_int_equal(type_of(path_in("first")), S_IFLNK);
        assert_int_equal(type_of(path_in("below/second")), S_IFLNK);
        assert_holds(path_in("below/target"), texts[i]);
    }
}

static void a_fifo_without_a_reader_is_refused_and_kept(void **state) {
    (void)state;
    const char *path = path_in("fifo");
    struct dm_err err = {0};
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(dm_output_check(path, false, &err), 0);
    assert_int_equal(dm_output_check(path, true, &err), DM_ERR_IO);
    assert_non_null(strstr(err.text, "is no regular file"));
    assert_null(dm_output_open(path, &err));
    assert_non_null(strstr(err.text, "no process reads from it"));
    assert_null(dm_output_temporary(path));
    assert_int_equal(type_of(path), S_IFIFO);
}

static void a_full_device_is_an_error_and_kept(void **state) {
    (void)state;
    const char *path = path_in("full");
    struct dm_err err = {0};
    if (symlink("/dev/full", path) != 0 || access(path, W_OK) != 0) {
        skip();
    }
    for (int large = 0; large < 2; large++) {
        FILE *file = dm_output_open(path, &err);
        assert_non_null(file);
        for (int i = 0; i < (large ? 100000 : 1); i++) {
            fputs("text", file);
        }
        assert_int_equal(dm_output_close(file, path, &err), DM_ERR_IO);
        assert_non_null(strstr(err.text, "No space left on device"));
        assert_int_equal(type_of(path), S_IFLNK);
        assert_int_equal(type_of("/dev/full"), S_IFCHR);
    }
}

static void a_circle_of_links_and_a_folder_are_refused(void **state) {
    (void)state;
    struct dm_err err = {0};
    assert_int_equal(symlink("circle", path_in("circle")), 0);
    assert_int_equal(dm_output_check(path_in("circle"), false, &err), DM_ERR_IO);
    assert_null(dm_output_open(path_in("circle"), &err));
    assert_non_null(strstr(err.text, "Too many levels of symbolic links"));
    assert_null(dm_output_open(folder, &err));
    assert_non_null(strstr(err.text, "Is a directory"));
}

static int folder_make(void **state) {
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int folder_remove(void **state) {
    (void)state;
    static const char *const names[] = {"new",          "kept", "first", "below/second",
                                        "below/target", "fifo", "full",  "circle"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        unlink(path_in(names[i]));
    }
    rmdir(path_in("below"));
    return rmdir(folder);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_appears_when_it_is_closed),
        cmocka_unit_test(an_abandoned_file_leaves_the_old_one),
        cmocka_unit_test(symbolic_links_are_followed_and_kept),
        cmocka_unit_test(a_fifo_without_a_reader_is_refused_and_kept),
        cmocka_unit_test(a_full_device_is_an_error_and_kept),
        cmocka_unit_test(a_circle_of_links_and_a_folder_are_refused),
    };
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
