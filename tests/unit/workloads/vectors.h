/* SPDX-License-Identifier: Apache-2.0
 *
 * Access to tests/data/ycsb-vectors.json for the tests of this folder.
 */
#ifndef DM_TESTS_UNIT_WORKLOADS_VECTORS_H
#define DM_TESTS_UNIT_WORKLOADS_VECTORS_H

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

/* Loads the file. The caller releases it. */
static inline json_t *vectors_load(void) {
    json_error_t error;
    json_t *vectors = json_load_file(DM_TEST_DATA "/ycsb-vectors.json", 0, &error);
    assert_non_null(vectors);
    return vectors;
}

static inline const char *vector_text(const json_t *object, const char *member) {
    return json_string_value(json_object_get(object, member));
}

static inline double vector_number(const json_t *object, const char *member) {
    const json_t *value = json_object_get(object, member);
    assert_true(json_is_number(value) || json_is_string(value));
    return json_is_string(value) ? strtod(json_string_value(value), NULL) : json_number_value(value);
}

/* Whether the entry is of this kind (and generator, unless NULL). */
static inline int vector_is(const json_t *entry, const char *kind, const char *generator) {
    return strcmp(vector_text(entry, "kind"), kind) == 0 &&
           (generator == NULL || strcmp(vector_text(entry, "generator"), generator) == 0);
}

#endif
