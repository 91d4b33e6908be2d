/* SPDX-License-Identifier: Apache-2.0
 *
 * Archives of results.
 */
#include "harness/points/archive.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define XXH_INLINE_ALL
#include <xxhash.h>
#include <zstd.h>

#include "common/compiler.h"
#include "common/input_file.h"
#include "common/opt_json.h"
#include "common/output_file.h"
#include "harness/base/json.h"

enum { FORMAT = 1, LEVEL = 12, NAME_MAX_BYTES = 32, HASH_DIGITS = 16 };

/* More text than this is refused, so that a small file cannot take all memory. */
static const size_t text_max = (size_t)4 << 30;

/* ---- packing ------------------------------------------------------------------------------------------------------
 */

struct packer {
    const struct hx_points *points;
    json_t *revisions, *hosts; /* how many results come from each */
    char **lines;
    size_t count, missing;
};

static void count_up(json_t *counts, const json_t *name) {
    const char *text = json_is_string(name) ? json_string_value(name) : "unknown";
    json_object_set_new(counts, text, json_integer(json_integer_value(json_object_get(counts, text)) + 1));
}

static int compare_lines(const void *left, const void *right) {
    return strcmp(*(char *const *)left, *(char *const *)right);
}

/* "point" comes before "result", so that lines are in the order of their points. */
static char *line_of(const struct hx_point *point, json_t *result) {
    char name[NAME_MAX_BYTES];
    snprintf(name, sizeof(name), "%s/%s", hx_point_folder(point), point->hash);
    json_t *line = json_pack("{s:s, s:O}", "point", name, "result", result);
    char *text = line != NULL ? json_dumps(line, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
    json_decref(line);
    return text;
}

static int take_lines(struct packer *packer, struct dm_err *err) {
    for (size_t i = 0; i < packer->points->count; i++) {
        struct dm_err unused = {.text = ""};
        json_t *result = hx_points_load(packer->points, i, &unused);
        if (result == NULL) {
            packer->missing++;
            continue;
        }
        count_up(packer->revisions, hx_json_find(result, "provenance.revision"));
        count_up(packer->hosts, hx_json_find(result, "provenance.host.cpu"));
        packer->lines[packer->count] = line_of(&packer->points->items[i], result);
        json_decref(result);
        if (packer->lines[packer->count] == NULL) {
            return dm_fail(err, DM_ERR_NO_MEMORY, "no memory for an archive");
        }
        packer->count++;
    }
    qsort(packer->lines, packer->count, sizeof(*packer->lines), compare_lines);
    return packer->count > 0 ? 0 : dm_fail(err, DM_ERR_INVALID, "%s: has no results to pack", packer->points->out);
}

static char *header_of(const struct packer *packer, const char *scale) {
    XXH3_state_t *state = XXH3_createState();
    char hash[HASH_DIGITS + 1], at[32];
    if (state == NULL) {
        return NULL;
    }
    XXH3_64bits_reset(state);
    for (size_t i = 0; i < packer->count; i++) {
        XXH3_64bits_update(state, packer->lines[i], strlen(packer->lines[i]));
        XXH3_64bits_update(state, "\n", 1);
    }
    snprintf(hash, sizeof(hash), "%016llx", (unsigned long long)XXH3_64bits_digest(state));
    XXH3_freeState(state);
    time_t now = time(NULL);
    struct tm utc;
    gmtime_r(&now, &utc);
    strftime(at, sizeof(at), "%Y-%m-%dT%H:%M:%SZ", &utc);
    json_t *header = json_pack("{s:i, s:s, s:I, s:I, s:s, s:s, s:O, s:O}", "dmbench_archive", FORMAT, "scale", scale,
                               "points", (json_int_t)packer->count, "missing", (json_int_t)packer->missing, "hash",
                               hash, "packed_at", at, "revisions", packer->revisions, "cpus", packer->hosts);
    char *text = header != NULL ? json_dumps(header, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
    json_decref(header);
    return text;
}

/* Compresses one line and its line break. */
static bool write_line(ZSTD_CStream *stream, const char *text, bool ends, FILE *file) {
    char buffer[1 << 16];
    const char *const parts[] = {text, "\n"};
    for (size_t part = 0; part < 2; part++) {
        ZSTD_inBuffer in = {parts[part], strlen(parts[part]), 0};
        ZSTD_EndDirective how = ends && part == 1 ? ZSTD_e_end : ZSTD_e_continue;
        size_t left;
        do {
            ZSTD_outBuffer out = {buffer, sizeof(buffer), 0};
            left = ZSTD_compressStream2(stream, &out, &in, how);
            if (ZSTD_isError(left) || fwrite(buffer, 1, out.pos, file) != out.pos) {
                return false;
            }
        } while (how == ZSTD_e_end ? left != 0 : in.pos < in.size);
    }
    return true;
}

static int write_all(const struct packer *packer, const char *header, const char *path, struct dm_err *err) {
    FILE *file = dm_output_open(path, err);
    if (file == NULL) {
        return err->code;
    }
    ZSTD_CStream *stream = ZSTD_createCStream();
    bool is_written = stream != NULL && !ZSTD_isError(ZSTD_CCtx_setParameter(stream, ZSTD_c_compressionLevel, LEVEL)) &&
                      !ZSTD_isError(ZSTD_CCtx_setParameter(stream, ZSTD_c_checksumFlag, 1)) &&
                      !ZSTD_isError(ZSTD_CCtx_setParameter(stream, ZSTD_c_enableLongDistanceMatching, 1)) &&
                      write_line(stream, header, false, file);
    for (size_t i = 0; i < packer->count && is_written; i++) {
        is_written = write_line(stream, packer->lines[i], i + 1 == packer->count, file);
    }
    ZSTD_freeCStream(stream);
    if (!is_written) {
        dm_output_abandon(file, path);
        return dm_fail(err, DM_ERR_IO, "%s: cannot write it: no space?", path);
    }
    return dm_output_close(file, path, err);
}

int hx_archive_pack(const struct hx_points *points, const char *scale, const char *path, size_t *packed,
                    size_t *missing, struct dm_err *err) {
    struct packer packer = {.points = points,
                            .revisions = json_object(),
                            .hosts = json_object(),
                            .lines = calloc(points->count + 1, sizeof(*packer.lines))};
    int rc = packer.lines == NULL ? dm_fail(err, DM_ERR_NO_MEMORY, "no memory for an archive") : 0;
    rc = rc < 0 ? rc : take_lines(&packer, err);
    char *header = rc < 0 ? NULL : header_of(&packer, scale);
    if (rc == 0) {
        rc = header != NULL ? write_all(&packer, header, path, err)
                            : dm_fail(err, DM_ERR_NO_MEMORY, "no memory for an archive");
    }
    for (size_t i = 0; i < packer.count; i++) {
        free(packer.lines[i]);
    }
    free(packer.lines);
    free(header);
    json_decref(packer.revisions);
    json_decref(packer.hosts);
    *packed = packer.count;
    *missing = packer.missing;
    return rc;
}

/* ---- reading ------------------------------------------------------------------------------------------------------
 */

static int no_archive(const char *path, const char *why, struct dm_err *err) {
    return dm_fail(err, DM_ERR_CORRUPT, "%s: is no archive of `dmbench archive pack`, or is damaged: %s", path, why);
}

/* Decompresses what follows in the file, as far as it is there, to the text. Returns what ZSTD_decompressStream does
 * last. */
static size_t expand(FILE *file, FILE *text, bool *is_too_long) {
    char packed[1 << 16], plain[1 << 16];
    ZSTD_DStream *stream = ZSTD_createDStream();
    size_t rest = 1, got, total = 0;
    *is_too_long = false;
    while (stream != NULL && !ZSTD_isError(rest) && !*is_too_long &&
           (got = fread(packed, 1, sizeof(packed), file)) > 0) {
        ZSTD_inBuffer in = {packed, got, 0};
        ZSTD_outBuffer out = {plain, sizeof(plain), 0};
        do {
            out.pos = 0;
            rest = ZSTD_decompressStream(stream, &out, &in);
            if (!ZSTD_isError(rest)) {
                fwrite(plain, 1, out.pos, text);
                total += out.pos;
            }
            *is_too_long = total > text_max;
        } while (!ZSTD_isError(rest) && !*is_too_long && (in.pos < in.size || out.pos == out.size));
    }
    ZSTD_freeDStream(stream);
    return rest;
}

/* The text of a file as a new string. */
static int read_text(const char *path, char **text, struct dm_err *err) {
    size_t size = 0;
    bool is_too_long;
    *text = NULL;
    FILE *file = dm_input_open(path);
    if (file == NULL) {
        return dm_fail(err, DM_ERR_IO, "%s: %s", path, strerror(errno));
    }
    FILE *memory = open_memstream(text, &size);
    size_t rest = memory != NULL ? expand(file, memory, &is_too_long) : 1;
    bool is_written = memory != NULL && ferror(memory) == 0;
    is_written = memory != NULL && fclose(memory) == 0 && is_written;
    fclose(file);
    if (!is_written) {
        return dm_fail(err, DM_ERR_NO_MEMORY, "%s: no memory to read it", path);
    }
    return ZSTD_isError(rest)      ? no_archive(path, ZSTD_getErrorName(rest), err)
           : is_too_long           ? no_archive(path, "too much text", err)
           : rest != 0             ? no_archive(path, "it is cut short", err)
           : strlen(*text) != size ? no_archive(path, "a zero byte", err)
                                   : 0;
}

/* "points/" or "training/" and a hash: nothing else becomes the name of a file. */
static bool is_point_name(const char *name) {
    const char *hash = name == NULL                         ? NULL
                       : strncmp(name, "points/", 7) == 0   ? name + 7
                       : strncmp(name, "training/", 9) == 0 ? name + 9
                                                            : NULL;
    return hash != NULL && strlen(hash) == HASH_DIGITS && strspn(hash, "0123456789abcdef") == HASH_DIGITS;
}

static int take_line(struct hx_archive *archive, const char *text, const char *path, struct dm_err *err) {
    json_t *line = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    const char *name = json_string_value(json_object_get(line, "point"));
    if (!is_point_name(name) || !json_is_object(json_object_get(line, "result"))) {
        json_decref(line);
        return no_archive(path, "a line is no result of a point", err);
    }
    return json_array_append_new(archive->lines, line) == 0 ? 0 : dm_fail(err, DM_ERR_NO_MEMORY, "%s: no memory", path);
}

static int check_header(const struct hx_archive *archive, const char *rest, const char *path, struct dm_err *err) {
    char hash[HASH_DIGITS + 1];
    const char *stated = json_string_value(json_object_get(archive->header, "hash"));
    json_int_t format = json_integer_value(json_object_get(archive->header, "dmbench_archive"));
    if (format == 0 || stated == NULL) {
        return no_archive(path, "it has no header", err);
    }
    if (format != FORMAT) {
        return dm_fail(err, DM_ERR_INVALID, "%s: has format %lld, this program reads %d", path, (long long)format,
                       FORMAT);
    }
    snprintf(hash, sizeof(hash), "%016llx", (unsigned long long)XXH3_64bits(rest, strlen(rest)));
    return strcmp(hash, stated) == 0 ? 0 : no_archive(path, "its hash is not that of its lines", err);
}

int hx_archive_read(const char *path, struct hx_archive *archive, struct dm_err *err) {
    char *text;
    *archive = (struct hx_archive){.lines = json_array()};
    int rc = read_text(path, &text, err);
    char *next = rc == 0 ? strchr(text, '\n') : NULL;
    if (rc == 0 && next == NULL) {
        rc = no_archive(path, "it has no line", err);
    }
    if (rc == 0) {
        *next++ = '\0';
        archive->header = json_loads(text, 0, NULL);
        rc = check_header(archive, next, path, err);
    }
    while (rc == 0 && *next != '\0') {
        char *end = strchr(next, '\n');
        if (end != NULL) {
            *end = '\0';
        }
        rc = take_line(archive, next, path, err);
        next = end != NULL ? end + 1 : next + strlen(next);
    }
    size_t count = (size_t)json_integer_value(json_object_get(archive->header, "points"));
    if (rc == 0 && count != json_array_size(archive->lines)) {
        rc = no_archive(path, "the number of its points is another", err);
    }
    free(text);
    if (rc < 0) {
        hx_archive_fini(archive);
    }
    return rc;
}

void hx_archive_fini(struct hx_archive *archive) {
    json_decref(archive->header);
    json_decref(archive->lines);
    *archive = (struct hx_archive){.header = NULL};
}

/* ---- unpacking ----------------------------------------------------------------------------------------------------
 */

static int unpack_line(const json_t *line, const char *out, bool force, struct hx_unpacked *unpacked,
                       struct dm_err *err) {
    char *path = NULL;
    json_t *result = json_object_get(line, "result");
    if (asprintf(&path, "%s/%s.json", out, json_string_value(json_object_get(line, "point"))) < 0) {
        return dm_fail(err, DM_ERR_NO_MEMORY, "no memory for a path");
    }
    json_t *there = dm_json_load(path, NULL);
    bool is_equal = there != NULL && json_equal(there, result);
    int rc = 0;
    if (there != NULL && (is_equal || !force)) {
        *(is_equal ? &unpacked->equal : &unpacked->kept) += 1;
    } else {
        rc = dm_json_store(result, path, err);
        unpacked->written += rc == 0;
    }
    json_decref(there);
    free(path);
    return rc;
}

int hx_archive_unpack(const struct hx_archive *archive, const char *out, bool force, struct hx_unpacked *unpacked,
                      struct dm_err *err) {
    static const char *const folders[] = {"points", "training"};
    *unpacked = (struct hx_unpacked){.written = 0};
    for (size_t i = 0; i < 2; i++) {
        char *folder = hx_path_join(out, folders[i]);
        int rc = folder == NULL ? dm_fail(err, DM_ERR_NO_MEMORY, "no memory for a path") : hx_make_folder(folder, err);
        free(folder);
        DM_TRY(rc);
    }
    const json_t *line;
    size_t at;
    json_array_foreach(archive->lines, at, line) {
        DM_TRY(unpack_line(line, out, force, unpacked, err));
    }
    return 0;
}

/* ---- comparing ----------------------------------------------------------------------------------------------------
 */

/* Members that depend on the host or the time of day: where a result comes from, and how long a training took: alone,
 * with the storing of leaves, and with the reading of leaves. */
static bool is_of_host(const char *name) {
    static const char *const names[] = {"provenance", "ns_per_key", "stored_ns_per_key", "retrain_ns_per_key"};
    for (size_t i = 0; i < DM_ARRAY_LEN(names); i++) {
        if (strcmp(name, names[i]) == 0) {
            return true;
        }
    }
    return false;
}

static bool equal_below(const json_t *left, const json_t *right, char *where, size_t capacity);

static bool equal_member(const json_t *left, const json_t *right, const char *name, char *where, size_t capacity) {
    size_t length = strlen(where);
    snprintf(where + length, capacity - length, "%s%s", length > 0 ? "." : "", name);
    if (!equal_below(left, right, where, capacity)) {
        return false;
    }
    where[length] = '\0';
    return true;
}

static bool equal_below(const json_t *left, const json_t *right, char *where, size_t capacity) {
    const char *name;
    json_t *value;
    if (!json_is_object(left) || !json_is_object(right)) {
        return json_equal(left, right) != 0;
    }
    json_object_foreach((json_t *)(uintptr_t)left, name, value) {
        if (!is_of_host(name) && !equal_member(value, json_object_get(right, name), name, where, capacity)) {
            return false;
        }
    }
    json_object_foreach((json_t *)(uintptr_t)right, name, value) {
        if (!is_of_host(name) && json_object_get(left, name) == NULL) {
            return equal_member(NULL, value, name, where, capacity);
        }
    }
    return true;
}

bool hx_results_equal(const json_t *left, const json_t *right, char *where, size_t capacity) {
    where[0] = '\0';
    return equal_below(left, right, where, capacity);
}
