/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of messages: what reaches stderr, caught in a temporary file.
 */
#include "common/log.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static FILE *caught;
static int real_stderr;

static void catch_stderr(void) {
    caught = tmpfile();
    assert_non_null(caught);
    (void)fflush(stderr);
    real_stderr = dup(STDERR_FILENO);
    assert_true(real_stderr >= 0);
    assert_true(dup2(fileno(caught), STDERR_FILENO) >= 0);
}

/* Restores stderr, and copies what was written to it. */
static void release_stderr(char *text, size_t capacity) {
    (void)fflush(stderr);
    (void)dup2(real_stderr, STDERR_FILENO);
    (void)close(real_stderr);
    rewind(caught);
    size_t length = fread(text, 1, capacity - 1, caught);
    text[length] = '\0';
    (void)fclose(caught);
}

static int reset(void **state) {
    (void)state;
    dm_log_set_level(DM_LOG_WARN);
    return 0;
}

static void a_message_is_one_line_with_program_and_level(void **state) {
    (void)state;
    char text[256];
    catch_stderr();
    dm_log(DM_LOG_WARN, "%d keys lost", 3);
    dm_log(DM_LOG_ERROR, "with a line end\n");
    dm_log(DM_LOG_ERROR, "in\ntwo lines");
    release_stderr(text, sizeof(text));
    assert_string_equal(text, "dmbench: warning: 3 keys lost\n"
                              "dmbench: error: with a line end\n"
                              "dmbench: error: in?two lines\n");
}

static void messages_above_the_level_are_dropped(void **state) {
    (void)state;
    static const enum dm_log_level levels[] = {DM_LOG_ERROR, DM_LOG_WARN, DM_LOG_INFO, DM_LOG_DEBUG};
    static const char *const lines[] = {"dmbench: error: m\n", "dmbench: warning: m\n", "dmbench: info: m\n",
                                        "dmbench: debug: m\n"};
    char expected[256] = "";
    for (size_t max = 0; max < 4; max++) {
        char text[256];
        strcat(expected, lines[max]);
        dm_log_set_level(levels[max]);
        catch_stderr();
        for (size_t i = 0; i < 4; i++) {
            dm_log(levels[i], "m");
        }
        release_stderr(text, sizeof(text));
        assert_string_equal(text, expected);
    }
}

static void warnings_are_shown_by_default_and_infos_are_not(void **state) {
    (void)state;
    char text[256];
    catch_stderr();
    dm_log(DM_LOG_INFO, "quiet");
    dm_log(DM_LOG_WARN, "loud");
    release_stderr(text, sizeof(text));
    assert_string_equal(text, "dmbench: warning: loud\n");
}

static void a_message_that_is_too_long_is_marked_as_cut(void **state) {
    (void)state;
    char message[3000];
    char text[4000];
    memset(message, 'y', sizeof(message) - 1);
    message[sizeof(message) - 1] = '\0';
    catch_stderr();
    dm_log(DM_LOG_ERROR, "%s", message);
    release_stderr(text, sizeof(text));
    size_t length = strlen(text);
    assert_true(length > 1000 && length < sizeof(message));
    assert_string_equal(text + length - 5, "y...\n");
    assert_ptr_equal(strchr(text, '\n'), text + length - 1);
}

static void errno_survives_a_message(void **state) {
    (void)state;
    char text[256];
    catch_stderr();
    errno = ENOSPC;
    dm_log(DM_LOG_ERROR, "m");
    int seen = errno;
    release_stderr(text, sizeof(text));
    assert_int_equal(seen, ENOSPC);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        /* first: nothing has set the level yet */
        cmocka_unit_test(warnings_are_shown_by_default_and_infos_are_not),
        cmocka_unit_test_setup(a_message_is_one_line_with_program_and_level, reset),
        cmocka_unit_test_setup(messages_above_the_level_are_dropped, reset),
        cmocka_unit_test_setup(a_message_that_is_too_long_is_marked_as_cut, reset),
        cmocka_unit_test_setup(errno_survives_a_message, reset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
