/* SPDX-License-Identifier: Apache-2.0
 *
 * Parts of worlds as text, so that a command line can run a shrunk world again:
 * "steps:3+17+40-42,loaded:0+5,faults:1,schedule:2,idle:2500". Steps, keys and faults that are not named are not in the
 * part.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check/world.h"

void ck_part_all(const struct ck_world *world, struct ck_part *part) {
    memset(part, 0, sizeof(*part));
    for (size_t i = 0; i < world->step_count; i++) {
        part->steps[i] = true;
    }
    for (size_t i = 0; i < world->fault_count; i++) {
        part->faults[i] = true;
    }
    memcpy(part->loaded, world->loaded, sizeof(part->loaded));
}

struct writer {
    char *text;
    size_t at, capacity;
};

static void write_text(struct writer *writer, const char *text) {
    size_t length = strlen(text);
    if (writer->at + length < writer->capacity) {
        memcpy(writer->text + writer->at, text, length + 1);
        writer->at += length;
    }
}

static void write_list(struct writer *writer, const char *name, const bool *members, size_t count) {
    bool is_first = true;
    for (size_t i = 0; i < count; i++) {
        if (!members[i]) {
            continue;
        }
        size_t last = i;
        while (last + 1 < count && members[last + 1]) {
            last++;
        }
        char range[48];
        snprintf(range, sizeof(range), last > i ? "%zu-%zu" : "%zu", i, last);
        write_text(writer, !is_first ? "+" : writer->at > 0 ? "," : "");
        write_text(writer, is_first ? name : "");
        write_text(writer, range);
        is_first = false;
        i = last;
    }
}

static void write_number(struct writer *writer, const char *name, uint64_t number) {
    char text[48];
    if (number > 0) {
        snprintf(text, sizeof(text), "%s%s%llu", writer->at > 0 ? "," : "", name, (unsigned long long)number);
        write_text(writer, text);
    }
}

const char *ck_part_text(const struct ck_part *part, char *text, size_t capacity) {
    struct writer writer = {text, 0, capacity};
    text[0] = '\0';
    write_list(&writer, "steps:", part->steps, CK_STEPS_MAX);
    write_list(&writer, "loaded:", part->loaded, CK_KEYS_MAX);
    write_list(&writer, "faults:", part->faults, CK_FAULTS_MAX);
    write_number(&writer, "schedule:", part->schedule);
    write_number(&writer, "idle:", part->idle_ns);
    return text;
}

/* Reads "3+17+40-42" up to a comma or the end. Returns its end, or NULL if it is malformed. */
static const char *read_list(const char *text, bool *members, size_t count) {
    for (;;) {
        char *end;
        if (text[0] < '0' || text[0] > '9') {
            return NULL;
        }
        unsigned long first = strtoul(text, &end, 10), last = first;
        if (*end == '-' && end[1] >= '0' && end[1] <= '9') {
            last = strtoul(end + 1, &end, 10);
        }
        if (last < first || last >= count) {
            return NULL;
        }
        for (unsigned long i = first; i <= last; i++) {
            members[i] = true;
        }
        if (*end != '+') {
            return end;
        }
        text = end + 1;
    }
}

static const char *read_number(const char *text, uint64_t *number) {
    if (text[0] < '0' || text[0] > '9') {
        return NULL;
    }
    char *end;
    *number = strtoull(text, &end, 10);
    return end;
}

static const char *read_group(const char *text, struct ck_part *part) {
    if (strncmp(text, "steps:", 6) == 0) {
        return read_list(text + 6, part->steps, CK_STEPS_MAX);
    }
    if (strncmp(text, "loaded:", 7) == 0) {
        return read_list(text + 7, part->loaded, CK_KEYS_MAX);
    }
    if (strncmp(text, "faults:", 7) == 0) {
        return read_list(text + 7, part->faults, CK_FAULTS_MAX);
    }
    if (strncmp(text, "schedule:", 9) == 0) {
        return read_number(text + 9, &part->schedule);
    }
    if (strncmp(text, "idle:", 5) == 0) {
        return read_number(text + 5, &part->idle_ns);
    }
    return NULL;
}

int ck_part_parse(const char *text, struct ck_part *part, struct dm_err *err) {
    memset(part, 0, sizeof(*part));
    const char *at = text;
    for (;;) {
        const char *end = read_group(at, part);
        if (!end || (*end != ',' && *end != '\0')) {
            return dm_fail(
                err, DM_ERR_INVALID,
                "part '%.80s': malformed at '%.20s'; a part is like steps:3+17+40-42,loaded:0+5,faults:1,schedule:2",
                text, at);
        }
        if (*end == '\0') {
            return 0;
        }
        at = end + 1;
    }
}
