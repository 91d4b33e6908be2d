/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads YCSB property files, in the syntax of Java's: comments, "name=value", "name:value", "name value", lines
 * continued by a backslash. One table lists the properties with what each sets here. Properties that concern the run or
 * a database (fields, tables, clients) are ignored.
 */
#include "workloads/spec.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/compiler.h"
#include "common/input_file.h"
#include "common/log.h"
#include "common/text.h"

enum property_kind {
    PROPERTY_COUNT,     /* uint64_t at offset */
    PROPERTY_REAL,      /* double at offset */
    PROPERTY_DIST,      /* requestdistribution */
    PROPERTY_SCAN_DIST, /* scanlengthdistribution */
    PROPERTY_ORDER,     /* insertorder */
    PROPERTY_CLASS,     /* workload */
    PROPERTY_IGNORED,
};

struct property {
    const char *name;
    enum property_kind kind;
    size_t offset;
};

#define SHARE(kind) (offsetof(struct wl_spec, share) + (kind) * sizeof(double))
static const struct property properties[] = {
    {"recordcount", PROPERTY_COUNT, offsetof(struct wl_spec, record_count)},
    {"operationcount", PROPERTY_COUNT, offsetof(struct wl_spec, operation_count)},
    {"insertstart", PROPERTY_COUNT, offsetof(struct wl_spec, insert_start)},
    {"insertcount", PROPERTY_COUNT, offsetof(struct wl_spec, insert_count)},
    {"readproportion", PROPERTY_REAL, SHARE(WL_GET)},
    {"updateproportion", PROPERTY_REAL, SHARE(WL_UPDATE)},
    {"insertproportion", PROPERTY_REAL, SHARE(WL_INSERT)},
    {"scanproportion", PROPERTY_REAL, SHARE(WL_SCAN)},
    {"readmodifywriteproportion", PROPERTY_REAL, SHARE(WL_RMW)},
    {"requestdistribution", PROPERTY_DIST, 0},
    {"scanlengthdistribution", PROPERTY_SCAN_DIST, 0},
    {"minscanlength", PROPERTY_COUNT, offsetof(struct wl_spec, scan_min)},
    {"maxscanlength", PROPERTY_COUNT, offsetof(struct wl_spec, scan_max)},
    {"insertorder", PROPERTY_ORDER, 0},
    {"hotspotdatafraction", PROPERTY_REAL, offsetof(struct wl_spec, hot_data)},
    {"hotspotopnfraction", PROPERTY_REAL, offsetof(struct wl_spec, hot_operations)},
    {"exponential.percentile", PROPERTY_REAL, offsetof(struct wl_spec, exponential_percentile)},
    {"exponential.frac", PROPERTY_REAL, offsetof(struct wl_spec, exponential_share)},
    {"workload", PROPERTY_CLASS, 0},
    {"table", PROPERTY_IGNORED, 0},
    {"fieldcount", PROPERTY_IGNORED, 0},
    {"fieldlength", PROPERTY_IGNORED, 0},
    {"minfieldlength", PROPERTY_IGNORED, 0},
    {"fieldlengthdistribution", PROPERTY_IGNORED, 0},
    {"fieldlengthhistogram", PROPERTY_IGNORED, 0},
    {"fieldnameprefix", PROPERTY_IGNORED, 0},
    {"readallfields", PROPERTY_IGNORED, 0},
    {"readallfieldsbyname", PROPERTY_IGNORED, 0},
    {"writeallfields", PROPERTY_IGNORED, 0},
    {"dataintegrity", PROPERTY_IGNORED, 0},
    {"zeropadding", PROPERTY_IGNORED, 0},
    {"core_workload_insertion_retry_limit", PROPERTY_IGNORED, 0},
    {"core_workload_insertion_retry_interval", PROPERTY_IGNORED, 0},
    {"db", PROPERTY_IGNORED, 0},
    {"threadcount", PROPERTY_IGNORED, 0},
    {"target", PROPERTY_IGNORED, 0},
    {"maxexecutiontime", PROPERTY_IGNORED, 0},
    {"dotransactions", PROPERTY_IGNORED, 0},
    {"exporter", PROPERTY_IGNORED, 0},
    {"exportfile", PROPERTY_IGNORED, 0},
    {"label", PROPERTY_IGNORED, 0},
    {"status", PROPERTY_IGNORED, 0},
    {"status.interval", PROPERTY_IGNORED, 0},
    {"measurementtype", PROPERTY_IGNORED, 0},
    {"measurement.interval", PROPERTY_IGNORED, 0},
    {"measurement.trackjvm", PROPERTY_IGNORED, 0},
    {"measurement.raw.output_file", PROPERTY_IGNORED, 0},
    {"measurement.raw.no_summary", PROPERTY_IGNORED, 0},
    {"measurement.histogram.verbose", PROPERTY_IGNORED, 0},
    {"histogram.buckets", PROPERTY_IGNORED, 0},
    {"timeseries.granularity", PROPERTY_IGNORED, 0},
    {"hdrhistogram.percentiles", PROPERTY_IGNORED, 0},
    {"hdrhistogram.fileoutput", PROPERTY_IGNORED, 0},
    {"hdrhistogram.output.path", PROPERTY_IGNORED, 0},
    {"reportlatencyforeacherror", PROPERTY_IGNORED, 0},
    {"latencytrackederrors", PROPERTY_IGNORED, 0},
};

/* The ignored properties of a file, which are logged together. */
struct note {
    char names[300];
    unsigned count;
};

static void note_add(struct note *note, const char *name) {
    note->count++;
    if (strlen(note->names) + strlen(name) + 3 < sizeof note->names) {
        strcat(strcat(note->names, note->names[0] != '\0' ? ", " : ""), name);
    }
}

static void note_print(const struct note *note, const char *where) {
    if (note->count > 0) {
        dm_log(DM_LOG_WARN, "%s: ignored %u properties that have no meaning here: %s", where, note->count, note->names);
    }
}

static const struct property *property_find(const char *name) {
    for (size_t i = 0; i < DM_ARRAY_LEN(properties); i++) {
        if (strcmp(name, properties[i].name) == 0) {
            return &properties[i];
        }
    }
    return NULL;
}

static int property_unknown(const char *name, struct dm_err *err) {
    const char *names[DM_ARRAY_LEN(properties)];
    for (size_t i = 0; i < DM_ARRAY_LEN(properties); i++) {
        names[i] = properties[i].name;
    }
    const char *near = dm_suggest(name, names, DM_ARRAY_LEN(names));
    if (near != NULL) {
        return dm_fail(err, DM_ERR_INVALID, "unknown YCSB property '%s'; did you mean '%s'?", name, near);
    }
    return dm_fail(err, DM_ERR_INVALID, "unknown YCSB property '%s'; remove it, or see YCSB's core properties", name);
}

static int set_class(const char *name, const char *value, struct dm_err *err) {
    static const char suffix[] = ".CoreWorkload";
    size_t length = strlen(value), tail = sizeof suffix - 1;
    if (strcmp(value, suffix + 1) == 0 || (length > tail && strcmp(value + length - tail, suffix) == 0)) {
        return 0;
    }
    return dm_fail(err, DM_ERR_INVALID, "%s: '%s' is not YCSB's core workload (site.ycsb.workloads.CoreWorkload)", name,
                   value);
}

/* Accepts only YCSB's own distributions, because YCSB could not run a file with another one. */
static int set_enum(struct wl_spec *spec, const struct property *property, const char *value, struct dm_err *err) {
    static const char *const orders[] = {"hashed", "ordered"};
    static const char *const scans[] = {"uniform", "zipfian"};
    if (property->kind == PROPERTY_DIST) {
        unsigned dist = wl_name_index(value, wl_dist_names, WL_DIST_ZIPFIAN_CLUSTERED);
        if (dist == WL_DIST_ZIPFIAN_CLUSTERED) {
            return wl_fail_name(err, property->name, value, wl_dist_names, WL_DIST_ZIPFIAN_CLUSTERED);
        }
        spec->dist = (enum wl_dist)dist;
        return 0;
    }
    const char *const *names = property->kind == PROPERTY_ORDER ? orders : scans;
    unsigned choice = wl_name_index(value, names, 2);
    if (choice == 2) {
        return wl_fail_name(err, property->name, value, names, 2);
    }
    *(property->kind == PROPERTY_ORDER ? &spec->ordered : &spec->scan_zipfian) = choice == 1;
    return 0;
}

static int set_real(const struct property *property, double *into, const char *value, struct dm_err *err) {
    int rc = dm_parse_real(value, into, err);
    if (rc < 0) {
        return dm_fail_in(err, rc, "%s", property->name);
    }
    if (*into < 0.0) {
        return dm_fail(err, DM_ERR_INVALID, "%s: %s is negative", property->name, value);
    }
    return 0;
}

static int property_set(struct wl_spec *spec, const char *name, const char *value, struct note *note,
                        struct dm_err *err) {
    const struct property *property = property_find(name);
    if (property == NULL) {
        return property_unknown(name, err);
    }
    void *into = (char *)spec + property->offset;
    switch (property->kind) {
    case PROPERTY_COUNT: {
        int rc = dm_parse_count(value, into, err);
        return rc < 0 ? dm_fail_in(err, rc, "%s", name) : 0;
    }
    case PROPERTY_REAL:
        return set_real(property, into, value, err);
    case PROPERTY_CLASS:
        return set_class(name, value, err);
    case PROPERTY_IGNORED:
        note_add(note, name);
        return 0;
    case PROPERTY_DIST:
    case PROPERTY_SCAN_DIST:
    case PROPERTY_ORDER:
        break;
    }
    return set_enum(spec, property, value, err);
}

/* Removes blanks and line ends at the end of the text, in place. */
static void trim_end(char *text) {
    size_t length = strlen(text);
    while (length > 0 && isspace((unsigned char)text[length - 1])) {
        text[--length] = '\0';
    }
}

/* Splits "name=value" in place. */
static int property_split(char *line, char **name, char **value, struct dm_err *err) {
    *name = line;
    size_t length = strcspn(line, "=: ");
    char *rest = line + length + strspn(line + length, " ");
    if (length == 0 || *rest == '\0') {
        return dm_fail(err, DM_ERR_INVALID, "'%.100s' should be name=value", line);
    }
    if (*rest == '=' || *rest == ':') {
        rest++;
    }
    *value = rest + strspn(rest, " ");
    line[length] = '\0';
    return 0;
}

static int line_apply(struct wl_spec *spec, char *line, struct note *note, struct dm_err *err) {
    for (char *c = line; *c != '\0'; c++) {
        *c = *c == '\t' || *c == '\f' ? ' ' : *c;
    }
    char *start = line + strspn(line, " ");
    trim_end(start);
    if (*start == '\0' || *start == '#' || *start == '!') {
        return 0;
    }
    if (dm_text_clean(start) > 0) {
        return dm_fail(err, DM_ERR_INVALID, "the line is not text: '%.60s'", start);
    }
    char *name = start, *value = start;
    DM_TRY(property_split(start, &name, &value, err));
    return property_set(spec, name, value, note, err);
}

static bool is_comment(const char *line) {
    line += strspn(line, " \t\f");
    return *line == '#' || *line == '!';
}

/* Reads one logical line (continued by backslashes) into `line`, and counts the physical lines. > 0 at the end of the
 * file. */
static int line_read(FILE *file, char *line, size_t capacity, unsigned *number, struct dm_err *err) {
    size_t used = 0;
    for (;;) {
        if (fgets(line + used, (int)(capacity - used), file) == NULL) {
            return used > 0 ? 0 : DM_NOT_FOUND;
        }
        (*number)++;
        if (strchr(line + used, '\n') == NULL && !feof(file)) {
            return dm_fail(err, DM_ERR_INVALID, "the line is longer than %zu characters or contains a zero byte",
                           capacity - 2);
        }
        trim_end(line + used);
        size_t length = strlen(line);
        if (length == 0 || line[length - 1] != '\\' || is_comment(line)) {
            return 0;
        }
        used = length - 1;
    }
}

int wl_spec_apply_file(struct wl_spec *spec, const char *path, struct dm_err *err) {
    char line[4096];
    struct note note = {0};
    unsigned number = 0;
    int rc = 0;
    FILE *file = dm_input_open(path);
    if (file == NULL) {
        return dm_fail(err, DM_ERR_IO, "%s: cannot be opened: %s", path, strerror(errno));
    }
    while (rc == 0) {
        unsigned first = number + 1;
        rc = line_read(file, line, sizeof line, &number, err);
        if (rc == 0) {
            rc = line_apply(spec, line, &note, err);
        }
        if (rc < 0) {
            dm_fail_in(err, rc, "%s:%u", path, first);
        }
    }
    if (rc > 0 && ferror(file)) {
        rc = dm_fail(err, DM_ERR_IO, "%s: cannot be read: %s", path, strerror(errno));
    }
    fclose(file);
    if (rc > 0) {
        note_print(&note, path);
        rc = 0;
    }
    return rc;
}

int wl_spec_apply_properties(struct wl_spec *spec, const char *text, struct dm_err *err) {
    struct note note = {0};
    char *copy = strdup(text);
    if (copy == NULL) {
        return dm_fail(err, DM_ERR_NO_MEMORY, "properties: no memory");
    }
    int rc = 0;
    char *rest = NULL;
    for (char *item = strtok_r(copy, ",", &rest); item != NULL && rc == 0; item = strtok_r(NULL, ",", &rest)) {
        rc = line_apply(spec, item, &note, err);
    }
    free(copy);
    if (rc < 0) {
        return dm_fail_in(err, rc, "properties");
    }
    note_print(&note, "properties");
    return 0;
}
