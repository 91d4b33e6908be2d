/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds the verbs of an operation in the log of a run.
 */
#include "check/aim.h"

/* A verb that no client reaches; a time after the end of every run, which the fabric accepts. */
#define NEVER_VERB ((size_t)1 << 40)
#define NEVER_NS   UINT64_C(900000000000)

enum { PERCENT_NS = 10 };

bool ck_part_is_aimed(const struct ck_world *world, const struct ck_part *part) {
    for (size_t i = 0; i < world->fault_count; i++) {
        if (part->faults[i] && world->faults[i].is_aimed) {
            return true;
        }
    }
    return false;
}

static bool is_verb(const struct ck_verb *verb, unsigned client) {
    return verb->client == client && verb->event.kind < DM_VERB_KIND_COUNT;
}

static bool is_within(const struct ck_verb *verb, const struct ck_op *op) {
    uint64_t posted_ns = verb->event.posted_ns;
    return is_verb(verb, op->client) && posted_ns >= op->invoke_ns && (!op->finished || posted_ns < op->response_ns);
}

/* The verbs that the client posted before this time. */
static size_t posted_before(const struct ck_verb_log *verbs, unsigned client, uint64_t ns) {
    size_t count = 0;
    for (size_t i = 0; i < verbs->count; i++) {
        count += is_verb(&verbs->items[i], client) && verbs->items[i].event.posted_ns < ns;
    }
    return count;
}

/* Whether this verb is in a batch of reads alone, so that whatever a failure leaves unknown, memory is what it was. */
static bool reads_alone(const struct ck_verb_log *verbs, const struct ck_verb *verb) {
    for (size_t i = 0; i < verbs->count; i++) {
        const struct ck_verb *other = &verbs->items[i];
        if (is_verb(other, verb->client) && other->event.posted_ns == verb->event.posted_ns &&
            (other->event.kind != DM_VERB_READ || other->event.batch != verb->event.batch)) {
            return false;
        }
    }
    return verb->event.kind == DM_VERB_READ;
}

/* The nth verb of the operation, counted round, of those that may be hit; NULL if there is none. The log is in the
 * order in which verbs ended, so within a batch their order may differ from that of the rules. */
static const struct ck_verb *target(const struct ck_world_fault *fault, const struct ck_op *op,
                                    const struct ck_verb_log *verbs) {
    size_t count = 0, seen = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < verbs->count; i++) {
            const struct ck_verb *verb = &verbs->items[i];
            if (!is_within(verb, op) || (fault->kind == CK_READ_FAILS && !reads_alone(verbs, verb))) {
                continue;
            }
            if (pass == 1 && seen++ == (fault->after - 1) % count) {
                return verb;
            }
            count += pass == 0;
        }
        if (count == 0) {
            break;
        }
    }
    return NULL;
}

struct ck_world_fault ck_aim(const struct ck_world_fault *fault, const struct ck_op *op,
                             const struct ck_verb_log *verbs) {
    struct ck_world_fault aimed = *fault;
    const struct ck_verb *verb = op && op->invoke > 0 ? target(fault, op, verbs) : NULL;
    bool by_time = fault->kind == CK_SERVER_FAILS;
    aimed.is_aimed = false;
    aimed.after = by_time ? NEVER_NS : NEVER_VERB;
    if (verb && by_time) {
        aimed.after = verb->event.posted_ns + 1 + (uint64_t)PERCENT_NS * fault->percent;
    } else if (verb && fault->kind == CK_READ_FAILS) {
        aimed.after = 1 + posted_before(verbs, op->client, verb->event.posted_ns);
    } else if (verb) {
        size_t before = posted_before(verbs, op->client, op->invoke_ns), of_op = 0;
        for (size_t i = 0; i < verbs->count; i++) {
            of_op += is_within(&verbs->items[i], op);
        }
        aimed.after = of_op > 0 ? before + 1 + (fault->after - 1) % of_op : NEVER_VERB;
    }
    return aimed;
}
