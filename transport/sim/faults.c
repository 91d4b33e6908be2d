/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading fault rules and drawing what they do to one verb.
 */
#include "transport/sim/faults.h"

#include <stdlib.h>
#include <string.h>

#include "common/compiler.h"

enum { KEYS = 8, TOKEN_BYTES = 64 };

enum key { KEY_CLIENT, KEY_NODE, KEY_VERB, KEY_KIND, KEY_P, KEY_BY, KEY_AT, KEY_FOR };

static const char *const key_names[KEYS] = {"client", "node", "verb", "kind", "p", "by", "at", "for"};

static const struct {
    const char *name;
    unsigned allowed, required; /* bits of keys */
} kinds[SIM_FAULT_KINDS] = {
    [SIM_FAULT_STOP] = {"stop", 1 << KEY_CLIENT | 1 << KEY_VERB | 1 << KEY_FOR, 1 << KEY_CLIENT | 1 << KEY_VERB},
    [SIM_FAULT_FAIL] = {"fail", 1 << KEY_NODE | 1 << KEY_AT | 1 << KEY_FOR, 1 << KEY_NODE | 1 << KEY_AT},
    [SIM_FAULT_DELAY] = {"delay",
                         1 << KEY_P | 1 << KEY_BY | 1 << KEY_CLIENT | 1 << KEY_NODE | 1 << KEY_VERB | 1 << KEY_KIND,
                         1 << KEY_BY},
    [SIM_FAULT_ERROR] = {"error", 1 << KEY_P | 1 << KEY_CLIENT | 1 << KEY_NODE | 1 << KEY_VERB | 1 << KEY_KIND, 0},
};

static const char *const verb_names[DM_VERB_KIND_COUNT + 1] = {
#define X(name, text) text,
    DM_VERBS(X)
#undef X
};

static int find_name(const char *const *names, size_t count, const char *name) {
    for (size_t i = 0; i < count; i++) {
        if (strcmp(names[i], name) == 0) {
            return (int)i;
        }
    }
    return -1;
}

static int parse_index(const char *text, unsigned count, const char *what, int64_t *value, struct dm_err *err) {
    uint64_t number;
    DM_TRY(dm_parse_count(text, &number, err));
    if (number >= count) {
        return dm_fail(err, DM_ERR_INVALID, "%llu: there are only %u %s, numbered from 0", (unsigned long long)number,
                       count, what);
    }
    *value = (int64_t)number;
    return 0;
}

static int parse_kind(const char *text, int64_t *value, struct dm_err *err) {
    int found = find_name(verb_names, DM_VERB_KIND_COUNT, text);
    if (found < 0) {
        return dm_fail(err, DM_ERR_INVALID, "'%s': must be read, write, cas, faa, masked_cas, masked_faa or call",
                       text);
    }
    *value = found;
    return 0;
}

static int parse_value(struct sim_fault *rule, enum key key, const char *text, const struct dm_topology *topology,
                       struct dm_err *err) {
    switch (key) {
    case KEY_CLIENT:
        return parse_index(text, topology->clients, "clients", &rule->client, err);
    case KEY_NODE:
        return parse_index(text, topology->mns + topology->servers, "memory nodes and index servers", &rule->node, err);
    case KEY_VERB:
        DM_TRY(dm_parse_count(text, &rule->verb, err));
        return rule->verb > 0 ? 0 : dm_fail(err, DM_ERR_INVALID, "verbs are numbered from 1");
    case KEY_KIND:
        return parse_kind(text, &rule->verb_kind, err);
    case KEY_P:
        DM_TRY(dm_parse_real(text, &rule->probability, err));
        return rule->probability >= 0 && rule->probability <= 1
                   ? 0
                   : dm_fail(err, DM_ERR_INVALID, "'%s': must be a probability, 0 to 1", text);
    default: {
        uint64_t *ns = rule->kind == SIM_FAULT_FAIL && key == KEY_FOR ? &rule->away_ns : &rule->ns;
        DM_TRY(dm_parse_duration(text, ns, err));
        return *ns <= UINT64_C(1000000000000) ? 0 : dm_fail(err, DM_ERR_INVALID, "'%s': must be at most 1000 s", text);
    }
    }
}

/* The text up to one of `stops`, without blanks around it; returns where it ended. */
static const char *next_token(const char *text, const char *stops, char token[TOKEN_BYTES]) {
    text += strspn(text, " ");
    size_t span = strcspn(text, stops), length = span;
    while (length > 0 && text[length - 1] == ' ') {
        length--;
    }
    length = length < TOKEN_BYTES ? length : TOKEN_BYTES - 1;
    memcpy(token, text, length);
    token[length] = '\0';
    return text + span;
}

static int parse_key(struct sim_fault *rule, const char **at, unsigned *seen, const struct dm_topology *topology,
                     struct dm_err *err) {
    char name[TOKEN_BYTES], value[TOKEN_BYTES] = "";
    const char *kind = kinds[rule->kind].name;
    *at = next_token(*at, "=,;", name);
    if (**at == '=') {
        *at = next_token(*at + 1, ",;", value);
    }
    int key = find_name(key_names, KEYS, name);
    if (key < 0 || !(kinds[rule->kind].allowed & 1u << key)) {
        return dm_fail(err, DM_ERR_INVALID, "%s: unknown key '%s'", kind, name);
    }
    if (*seen & 1u << key) {
        return dm_fail(err, DM_ERR_INVALID, "%s: '%s' is given twice", kind, name);
    }
    if (value[0] == '\0') {
        return dm_fail(err, DM_ERR_INVALID, "%s: '%s' needs a value", kind, name);
    }
    *seen |= 1u << key;
    int rc = parse_value(rule, (enum key)key, value, topology, err);
    return rc < 0 ? dm_fail_in(err, rc, "%s: %s", kind, name) : 0;
}

static int check_keys(const struct sim_fault *rule, unsigned seen, struct dm_err *err) {
    const char *kind = kinds[rule->kind].name;
    for (unsigned key = 0; key < KEYS; key++) {
        if (kinds[rule->kind].required & ~seen & 1u << key) {
            return dm_fail(err, DM_ERR_INVALID, "%s: '%s' is missing", kind, key_names[key]);
        }
    }
    bool random = rule->kind == SIM_FAULT_DELAY || rule->kind == SIM_FAULT_ERROR;
    if (random && !(seen & 1 << KEY_P) == !(seen & 1 << KEY_VERB)) {
        return dm_fail(err, DM_ERR_INVALID, "%s: needs either 'p' or 'verb'", kind);
    }
    uint64_t for_ns = rule->kind == SIM_FAULT_FAIL ? rule->away_ns : rule->ns;
    if (seen & 1 << KEY_FOR && for_ns == 0) {
        return dm_fail(err, DM_ERR_INVALID, "%s: 'for' must be more than 0; leave it out for good", kind);
    }
    return 0;
}

static int parse_rule(struct sim_fault *rule, const char **at, const struct dm_topology *topology, struct dm_err *err) {
    char name[TOKEN_BYTES];
    *at = next_token(*at, ":,;", name);
    *rule = (struct sim_fault){.client = SIM_ANY, .node = SIM_ANY, .verb_kind = SIM_ANY};
    for (rule->kind = 0; rule->kind < SIM_FAULT_KINDS && strcmp(kinds[rule->kind].name, name) != 0;) {
        rule->kind++;
    }
    if (rule->kind == SIM_FAULT_KINDS || **at != ':') {
        return dm_fail(err, DM_ERR_INVALID, "'%s': a rule begins with stop:, fail:, delay: or error:", name);
    }
    unsigned seen = 0;
    do {
        ++*at;
        DM_TRY(parse_key(rule, at, &seen, topology, err));
    } while (**at == ',');
    return check_keys(rule, seen, err);
}

int sim_faults_parse(struct sim_faults *faults, const char *text, const struct dm_topology *topology,
                     struct dm_err *err) {
    faults->count = 0;
    const char *at = text ? text : "";
    while (at += strspn(at, " "), *at) {
        if (faults->count == SIM_FAULTS_MAX) {
            return dm_fail(err, DM_ERR_INVALID, "faults: more than %d rules", SIM_FAULTS_MAX);
        }
        int rc = parse_rule(&faults->rules[faults->count++], &at, topology, err);
        if (rc < 0) {
            return dm_fail_in(err, rc, "faults");
        }
        at += *at == ';';
    }
    return 0;
}

static bool matches(const struct sim_fault *rule, int64_t client, uint64_t number, enum dm_verb_kind kind,
                    unsigned node) {
    return (rule->client == SIM_ANY || rule->client == client) && (rule->node == SIM_ANY || rule->node == node) &&
           (rule->verb_kind == SIM_ANY || rule->verb_kind == (int64_t)kind) &&
           (rule->verb == 0 || rule->verb == number);
}

struct sim_fate sim_faults_draw(struct sim_faults *faults, int64_t client, uint64_t number, enum dm_verb_kind kind,
                                unsigned node) {
    struct sim_fate fate = {0};
    for (uint32_t i = 0; i < faults->count; i++) {
        const struct sim_fault *rule = &faults->rules[i];
        if (rule->kind == SIM_FAULT_FAIL || !matches(rule, client, number, kind, node)) {
            continue;
        }
        if (rule->verb == 0 && dm_prng_double(&faults->prng) >= rule->probability) {
            continue;
        }
        if (rule->kind == SIM_FAULT_STOP) {
            fate.stops = true;
            fate.stop_ns = rule->ns;
        } else if (rule->kind == SIM_FAULT_DELAY) {
            fate.delay_ns += rule->ns;
        } else {
            fate.fails = true;
            fate.lands = dm_prng_below(&faults->prng, 2) == 1;
        }
    }
    return fate;
}
