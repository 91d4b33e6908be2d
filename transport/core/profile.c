/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading profiles: strict, with inheritance. The table of numbers is in profile.h; this file only walks it.
 */
#include "transport/core/profile.h"

#include <dirent.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "common/compiler.h"
#include "common/data_folder.h"
#include "common/opt_json.h"
#include "transport/fabric.h"

enum { INHERIT_MAX = 8, NAMES_MAX = 256, PATH_BYTES = 1024, FOLDER_BYTES = PATH_BYTES - 200 };

static const struct number {
    const char *name, *unit;
    size_t offset;
    double least, most;
} numbers[] = {
#define X(name, unit, least, most, help) {#name, unit, offsetof(struct dm_profile, name), least, most},
    DM_PROFILE_NUMBERS(X)
#undef X
};

static char profile_folder[FOLDER_BYTES];

static void profile_folder_find(void) {
    const char *dir = getenv("DMBENCH_PROFILES");
    if (dir) {
        snprintf(profile_folder, sizeof(profile_folder), "%s", dir);
    } else {
        dm_data_path("transport/profiles", profile_folder, sizeof(profile_folder));
    }
}

static const char *profile_dir(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, profile_folder_find);
    return profile_folder;
}

static bool is_path(const char *name) {
    size_t len = strlen(name);
    return strchr(name, '/') || (len > 5 && strcmp(name + len - 5, ".json") == 0);
}

static int compare_names(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static char names_storage[NAMES_MAX][64];
static const char *names[NAMES_MAX + 1];

static void names_read(void) {
    size_t count = 0;
    DIR *dir = opendir(profile_dir());
    for (struct dirent *entry = dir ? readdir(dir) : NULL; entry && count < NAMES_MAX; entry = readdir(dir)) {
        size_t len = strlen(entry->d_name);
        if (len > 5 && len < 64 + 5 && strcmp(entry->d_name + len - 5, ".json") == 0) {
            memcpy(names_storage[count], entry->d_name, len - 5);
            names[count] = names_storage[count];
            count++;
        }
    }
    if (dir) {
        closedir(dir);
    }
    qsort(names, count, sizeof(*names), compare_names);
}

const char *const *dm_profile_names(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, names_read);
    return names;
}

static int unknown_profile(const char *name, struct dm_err *err) {
    const char *const *all = dm_profile_names();
    char list[256] = "";
    size_t count = 0;
    if (!all[0]) {
        return dm_fail(err, DM_ERR_INVALID,
                       "unknown profile '%s': no profiles in %s (DMBENCH_DATA names the folder of the "
                       "program's data)",
                       name, profile_dir());
    }
    for (; all[count]; count++) {
        size_t used = strlen(list);
        snprintf(list + used, sizeof(list) - used, "%s%s", count ? ", " : "", all[count]);
    }
    const char *near = dm_suggest(name, all, count);
    return dm_fail(err, DM_ERR_INVALID, "unknown profile '%s' (%s%s%savailable: %s; or a path ending in .json)", name,
                   near ? "did you mean '" : "", near ? near : "", near ? "'? " : "", list);
}

static const struct number *number_find(const char *name) {
    for (size_t i = 0; i < DM_ARRAY_LEN(numbers); i++) {
        if (strcmp(numbers[i].name, name) == 0) {
            return &numbers[i];
        }
    }
    return NULL;
}

static int unknown_number(const char *path, const char *name, struct dm_err *err) {
    const char *all[DM_ARRAY_LEN(numbers)];
    for (size_t i = 0; i < DM_ARRAY_LEN(numbers); i++) {
        all[i] = numbers[i].name;
    }
    const char *near = dm_suggest(name, all, DM_ARRAY_LEN(numbers));
    return dm_fail(err, DM_ERR_INVALID, "%s: unknown parameter '%s'%s%s%s", path, name, near ? " (did you mean '" : "",
                   near ? near : "", near ? "'?)" : "");
}

/* What a number is given with: an object of these members, "value" among them. */
static const char *const number_members[] = {"value", "source", "confidence", "range", "points", "note"};

static bool is_text_or_absent(const json_t *member) {
    return !member || json_is_string(member);
}

static int check_range(const char *path, const struct number *number, const json_t *given, struct dm_err *err) {
    const json_t *range = json_object_get(given, "range");
    if (!range) {
        return 0;
    }
    const json_t *low = json_array_get(range, 0), *high = json_array_get(range, 1);
    if (json_array_size(range) != 2 || !json_is_number(low) || !json_is_number(high)) {
        return dm_fail(err, DM_ERR_INVALID, "%s: %s: range: [LOW, HIGH] is wanted, two numbers", path, number->name);
    }
    double least = json_number_value(low), most = json_number_value(high);
    double value = json_number_value(json_object_get(given, "value"));
    if (!(number->least <= least && least <= value && value <= most && most <= number->most)) {
        return dm_fail(err, DM_ERR_INVALID, "%s: %s: range [%g, %g] must hold the value %g and lie in %g to %g %s",
                       path, number->name, least, most, value, number->least, number->most, number->unit);
    }
    return 0;
}

static int check_points(const char *path, const char *name, const json_t *points, struct dm_err *err) {
    bool good = !points || json_is_array(points);
    size_t i;
    json_t *point;
    json_array_foreach(points, i, point) {
        good = good && json_is_string(point);
    }
    return good ? 0
                : dm_fail(err, DM_ERR_INVALID, "%s: %s: points: an array of ids is wanted, such as [\"V6\"]", path,
                          name);
}

static int check_number_object(const char *path, const struct number *number, const json_t *given, struct dm_err *err) {
    const char *key;
    json_t *member;
    json_object_foreach((json_t *)given, key, member) {
        bool found = false;
        for (size_t i = 0; i < DM_ARRAY_LEN(number_members); i++) {
            found = found || strcmp(number_members[i], key) == 0;
        }
        if (!found) {
            return dm_fail(err, DM_ERR_INVALID,
                           "%s: %s: unknown member '%s' (value, source, confidence, range, points, note)", path,
                           number->name, key);
        }
    }
    const json_t *confidence = json_object_get(given, "confidence");
    const char *level = json_string_value(confidence);
    if (confidence && (!level || strlen(level) != 1 || !strchr("HmL", level[0]))) {
        return dm_fail(err, DM_ERR_INVALID, "%s: %s: confidence: \"H\", \"m\" or \"L\" is wanted", path, number->name);
    }
    if (!is_text_or_absent(json_object_get(given, "source")) || !is_text_or_absent(json_object_get(given, "note"))) {
        return dm_fail(err, DM_ERR_INVALID, "%s: %s: source and note: a text is wanted", path, number->name);
    }
    DM_TRY(check_points(path, number->name, json_object_get(given, "points"), err));
    return json_is_number(json_object_get(given, "value")) ? check_range(path, number, given, err) : 0;
}

/* A number alone, or an object with its source. */
static int number_value(const char *path, const struct number *known, const json_t *given, double *value,
                        struct dm_err *err) {
    const json_t *number = given;
    if (json_is_object(given)) {
        DM_TRY(check_number_object(path, known, given, err));
        number = json_object_get(given, "value");
    }
    if (!json_is_number(number)) {
        return dm_fail(err, DM_ERR_INVALID, "%s: %s: a number or {\"value\": NUMBER, ...} is wanted", path,
                       known->name);
    }
    *value = json_number_value(number);
    return 0;
}

static int apply_numbers(const char *path, const json_t *parameters, struct dm_profile *profile, bool *set,
                         struct dm_err *err) {
    const char *name;
    json_t *given;
    json_object_foreach((json_t *)parameters, name, given) {
        const struct number *number = number_find(name);
        if (!number) {
            return unknown_number(path, name, err);
        }
        double value = 0;
        DM_TRY(number_value(path, number, given, &value, err));
        if (!(value >= number->least && value <= number->most)) {
            return dm_fail(err, DM_ERR_INVALID, "%s: %s: %g is out of range (%g to %g %s)", path, name, value,
                           number->least, number->most, number->unit);
        }
        if (!set[number - numbers]) {
            memcpy((char *)profile + number->offset, &value, sizeof(value));
            set[number - numbers] = true;
        }
    }
    return 0;
}

static int check_members(const char *path, const json_t *top, struct dm_err *err) {
    static const char *const known[] = {"schema_version", "name", "summary", "inherits", "parameters"};
    const char *key;
    json_t *member;
    json_object_foreach((json_t *)top, key, member) {
        bool found = false;
        for (size_t i = 0; i < DM_ARRAY_LEN(known); i++) {
            found = found || strcmp(known[i], key) == 0;
        }
        if (!found) {
            const char *near = dm_suggest(key, known, DM_ARRAY_LEN(known));
            return dm_fail(err, DM_ERR_INVALID, "%s: unknown member '%s'%s%s%s", path, key,
                           near ? " (did you mean '" : "", near ? near : "", near ? "'?)" : "");
        }
    }
    if (json_integer_value(json_object_get(top, "schema_version")) != 1) {
        return dm_fail(err, DM_ERR_INVALID, "%s: schema_version 1 is wanted", path);
    }
    if (!json_is_object(json_object_get(top, "parameters"))) {
        return dm_fail(err, DM_ERR_INVALID, "%s: member 'parameters' (an object) is missing", path);
    }
    return 0;
}

/* The file of a profile called `name` by the profile in `from` (or by the user: NULL): beside it if it is there. */
static void profile_path(const char *name, const char *from, char path[PATH_BYTES]) {
    const char *slash = from ? strrchr(from, '/') : NULL;
    if (is_path(name) && (name[0] == '/' || !slash)) {
        snprintf(path, PATH_BYTES, "%s", name);
        return;
    }
    const char *suffix = is_path(name) ? "" : ".json";
    if (slash) {
        snprintf(path, PATH_BYTES, "%.*s/%s%s", (int)(slash - from), from, name, suffix);
        if (access(path, R_OK) == 0) {
            return;
        }
    }
    snprintf(path, PATH_BYTES, "%s/%s%s", profile_dir(), name, suffix);
}

/* Applies a file and then what it inherits: the nearest definition of a number wins. */
static int load_chain(const char *name, struct dm_profile *profile, bool *set, struct dm_err *err) {
    char path[PATH_BYTES], next[128], from[PATH_BYTES] = "";
    snprintf(next, sizeof(next), "%s", name);
    if (strlen(name) >= sizeof(next)) {
        return dm_fail(err, DM_ERR_INVALID, "profile '%s': the name is too long", name);
    }
    for (unsigned depth = 0; next[0]; depth++) {
        if (depth == INHERIT_MAX) {
            return dm_fail(err, DM_ERR_INVALID, "%s: 'inherits' is circular or more than %d deep", path, INHERIT_MAX);
        }
        profile_path(next, depth ? from : NULL, path);
        json_t *top = dm_json_load(path, err);
        if (!top) {
            return DM_ERR_INVALID;
        }
        int rc = check_members(path, top, err);
        rc = rc < 0 ? rc : apply_numbers(path, json_object_get(top, "parameters"), profile, set, err);
        const json_t *inherits = json_object_get(top, "inherits");
        if (rc == 0 && inherits && !json_is_string(inherits)) {
            rc = dm_fail(err, DM_ERR_INVALID, "%s: inherits: the name of a profile is wanted", path);
        }
        snprintf(next, sizeof(next), "%s", rc == 0 && inherits ? json_string_value(inherits) : "");
        json_decref(top);
        DM_TRY(rc);
        memcpy(from, path, sizeof(from));
    }
    return 0;
}

/* Numbers that are possible alone but not together. */
static int check_combination(const char *name, const struct dm_profile *profile, struct dm_err *err) {
    /* GB/s of one lane after encoding, by generation. */
    static const double lane_gbytes[] = {0.25, 0.5, 0.985, 1.969, 3.938, 7.563};
    if (profile->pcie_generation != floor(profile->pcie_generation)) {
        return dm_fail(err, DM_ERR_INVALID, "profile '%s': pcie_generation: %g is no whole number", name,
                       profile->pcie_generation);
    }
    if (exp2(floor(log2(profile->pcie_lanes))) != profile->pcie_lanes) {
        return dm_fail(err, DM_ERR_INVALID, "profile '%s': pcie_lanes: %g is none of 1, 2, 4, 8, 16 and 32", name,
                       profile->pcie_lanes);
    }
    double most = lane_gbytes[(size_t)profile->pcie_generation - 1] * profile->pcie_lanes;
    if (profile->pcie_gbytes_per_s > most) {
        return dm_fail(err, DM_ERR_INVALID,
                       "profile '%s': pcie_gbytes_per_s: %g GB/s are more than PCIe %g.0 x%g has (%g)", name,
                       profile->pcie_gbytes_per_s, profile->pcie_generation, profile->pcie_lanes, most);
    }
    if (profile->atomic_hold_dram_ns < profile->pcie_read_ns) {
        return dm_fail(
            err, DM_ERR_INVALID,
            "profile '%s': atomic_hold_dram_ns: %g ns are less than the %g of pcie_read_ns, which they contain", name,
            profile->atomic_hold_dram_ns, profile->pcie_read_ns);
    }
    if (profile->doorbell_registers > 0 && profile->doorbell_shared_ns < profile->cpu_doorbell_ns) {
        return dm_fail(err, DM_ERR_INVALID,
                       "profile '%s': doorbell_shared_ns: %g ns are less than the %g of cpu_doorbell_ns", name,
                       profile->doorbell_shared_ns, profile->cpu_doorbell_ns);
    }
    return 0;
}

/* Reads, checks and hashes a profile. */
static int profile_read(const char *name, struct dm_profile *profile, struct dm_err *err) {
    bool set[DM_ARRAY_LEN(numbers)] = {false};
    *profile = (struct dm_profile){0};
    snprintf(profile->name, sizeof(profile->name), "%s", name);
    DM_TRY(load_chain(name, profile, set, err));
    XXH64_hash_t hash = 0;
    for (size_t i = 0; i < DM_ARRAY_LEN(numbers); i++) {
        if (!set[i]) {
            return dm_fail(err, DM_ERR_INVALID, "profile '%s': parameter '%s' is missing", name, numbers[i].name);
        }
        double value;
        memcpy(&value, (char *)profile + numbers[i].offset, sizeof(value));
        hash = XXH64(numbers[i].name, strlen(numbers[i].name), hash);
        hash = XXH64(&value, sizeof(value), hash);
    }
    snprintf(profile->hash, sizeof(profile->hash), "%016llx", (unsigned long long)hash);
    return check_combination(name, profile, err);
}

/* Shipped profiles are read once, as their names are: claims and sweeps ask for the same one thousands of times. A
 * file that the user names may change and is read each time. */
int dm_profile_load(const char *name, struct dm_profile *profile, struct dm_err *err) {
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    static struct dm_profile kept[NAMES_MAX];
    if (is_path(name)) {
        return profile_read(name, profile, err);
    }
    const char *const *all = dm_profile_names();
    size_t at = 0;
    while (all[at] && strcmp(all[at], name) != 0) {
        at++;
    }
    if (!all[at]) {
        return unknown_profile(name, err);
    }
    pthread_mutex_lock(&mutex);
    int rc = 0;
    if (kept[at].hash[0] == '\0') {
        rc = profile_read(name, profile, err);
        kept[at] = rc == 0 ? *profile : kept[at];
    } else {
        *profile = kept[at];
    }
    pthread_mutex_unlock(&mutex);
    return rc;
}

int dm_profile_check(const char *name, char hash[17], struct dm_err *err) {
    struct dm_profile profile;
    DM_TRY(dm_profile_load(name, &profile, err));
    memcpy(hash, profile.hash, sizeof(profile.hash));
    return 0;
}
