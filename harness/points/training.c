/* SPDX-License-Identifier: Apache-2.0
 *
 * The settings of a training: reading, writing, and the hash that names its result.
 */
#include "harness/points/training.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "common/opt_json.h"
#include "harness/run/config.h"

/* The macro's rows are those of a struct that has the settings as a member; here they are its only one. */
struct alone {
    struct hx_training training;
};

static const struct dm_opt table[] = {HX_TRAINING_ROWS(struct alone, training), DM_OPT_END};

int hx_training_from_json(const json_t *spec, const char *where, struct hx_training *training, struct dm_err *err) {
    json_t *members = json_copy((json_t *)(uintptr_t)spec);
    if (!members) {
        return dm_fail(err, DM_ERR_NO_MEMORY, "no memory for a training");
    }
    json_object_del(members, "source");
    int rc = dm_opt_from_json(table, training, members, where, err);
    json_decref(members);
    return rc;
}

json_t *hx_training_to_json(const struct hx_training *training) {
    json_t *object = dm_opt_to_json(table, training);
    if (object && json_object_set_new(object, "source", json_string("train")) != 0) {
        json_decref(object);
        object = NULL;
    }
    return object;
}

static void hash_write(const json_t *config, char hash[17]) {
    char *text = json_dumps(config, JSON_COMPACT | JSON_SORT_KEYS);
    uint64_t digest = text ? XXH3_64bits_withSeed(text, strlen(text), HX_SCHEMA_VERSION) : 0;
    snprintf(hash, 17, "%016llx", (unsigned long long)digest);
    free(text);
}

int hx_training_resolve(const json_t *spec, const char *where, json_t **config, char hash[17], struct dm_err *err) {
    struct hx_training training = {.key_set = NULL};
    dm_opt_defaults(table, &training);
    int rc = hx_training_from_json(spec, where, &training, err);
    *config = rc == 0 ? hx_training_to_json(&training) : NULL;
    if (rc == 0 && !*config) {
        rc = dm_fail(err, DM_ERR_NO_MEMORY, "no memory for a training");
    }
    if (rc == 0) {
        hash_write(*config, hash);
    }
    dm_opt_free(table, &training);
    return rc;
}
