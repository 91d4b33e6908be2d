/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of text cleaning: printable UTF-8 stays, everything else becomes '?'.
 */
#include "common/text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "common/prng.h"

static void assert_cleaned(const char *text, const char *expected, size_t replaced) {
    char copy[64];
    (void)snprintf(copy, sizeof(copy), "%s", text);
    assert_int_equal(dm_text_clean(copy), replaced);
    assert_string_equal(copy, expected);
}

static void printable_text_stays_as_it_is(void **state) {
    (void)state;
    assert_cleaned("", "", 0);
    assert_cleaned(" ~plain'\"\\", " ~plain'\"\\", 0);
    assert_cleaned("\xc2\xb5s \xe2\x82\xac \xf0\x9f\x98\x80", "\xc2\xb5s \xe2\x82\xac \xf0\x9f\x98\x80", 0);
    /* the first and the last code point of every length */
    assert_cleaned("\xc2\xa0\xdf\xbf\xe0\xa0\x80\xef\xbf\xbd", "\xc2\xa0\xdf\xbf\xe0\xa0\x80\xef\xbf\xbd", 0);
    assert_cleaned("\xf0\x90\x80\x80\xf4\x8f\xbf\xbf\xed\x9f\xbf", "\xf0\x90\x80\x80\xf4\x8f\xbf\xbf\xed\x9f\xbf", 0);
}

static void control_characters_are_replaced(void **state) {
    (void)state;
    assert_cleaned("a\nb\tc\x7f\x1b[31m", "a?b?c??[31m", 4);
    assert_cleaned("\xc2\x9b", "??", 2);
}

static void bytes_that_are_not_utf8_are_replaced_one_by_one(void **state) {
    (void)state;
    assert_cleaned("a\xffz", "a?z", 1);
    assert_cleaned("cut\xe2\x82", "cut??", 2);
    assert_cleaned("\xc0\x80", "??", 2);
    assert_cleaned("\xe0\x9f\xbf", "???", 3);
    assert_cleaned("\xed\xa0\x80", "???", 3);
    assert_cleaned("\xf0\x8f\xbf\xbf", "????", 4);
    assert_cleaned("\xf4\x90\x80\x80", "????", 4);
    assert_cleaned("\xf5\x80\x80\x80", "????", 4);
    assert_cleaned("\xe2\x28\xa1", "?(?", 2);
}

static void a_cleaned_text_is_clean(void **state) {
    (void)state;
    struct dm_prng prng = {.state = 42};
    for (int round = 0; round < 20000; round++) {
        char text[33];
        for (size_t i = 0; i + 1 < sizeof(text); i++) {
            text[i] = (char)(1 + dm_prng_below(&prng, 255));
        }
        text[sizeof(text) - 1] = '\0';
        (void)dm_text_clean(text);
        assert_int_equal(dm_text_clean(text), 0);
    }
}

static void a_word_is_found_among_words_and_not_in_an_empty_list(void **state) {
    (void)state;
    static const char *const words[] = {"table", "tab", NULL}, *const none[] = {NULL};
    assert_true(dm_text_is_among("tab", words));
    assert_false(dm_text_is_among("ta", words));
    assert_false(dm_text_is_among("tables", words));
    assert_false(dm_text_is_among("tab", none));
    assert_false(dm_text_is_among("tab", NULL));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(printable_text_stays_as_it_is),
        cmocka_unit_test(control_characters_are_replaced),
        cmocka_unit_test(bytes_that_are_not_utf8_are_replaced_one_by_one),
        cmocka_unit_test(a_cleaned_text_is_clean),
        cmocka_unit_test(a_word_is_found_among_words_and_not_in_an_empty_list),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
