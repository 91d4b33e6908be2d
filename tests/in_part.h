/* SPDX-License-Identifier: Apache-2.0
 *
 * Programs of which a part is left out with a sanitizer (DM_TESTS_IN_PART of tests/CMakeLists.txt). Include after
 * cmocka.h.
 */
#ifndef DM_TESTS_IN_PART_H
#define DM_TESTS_IN_PART_H

#include "common/compiler.h"

enum { TEST_SANITIZED = DM_ASAN || DM_TSAN };

/* Runs tests, but with a sanitizer not the last `of_results`: those say little of memory, and would take minutes. */
static inline int test_run_in_part(const char *group, const struct CMUnitTest *tests, size_t count, size_t of_results) {
    return _cmocka_run_group_tests(group, tests, count - (TEST_SANITIZED ? of_results : 0), NULL, NULL);
}

#endif
