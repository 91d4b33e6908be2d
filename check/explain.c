/* SPDX-License-Identifier: Apache-2.0
 *
 * What faults explain, by their kinds and by the rules of a user.
 */
#include "check/explain.h"

#include <stdio.h>
#include <string.h>

#include "indexes/index.h"

enum { RULE_BYTES = 200 };

void ck_fault_explain(const struct ck_world *world, enum ck_fault_kind kind, struct ck_history *history,
                      bool *interrupted) {
    static const unsigned failures[CK_FAULT_KINDS] = {[CK_CLIENT_STOPS] = CK_MAY_BE_STOPPED,
                                                      [CK_SERVER_FAILS] = CK_MAY_FAIL_PEER,
                                                      [CK_READ_FAILS] = CK_MAY_FAIL_IO,
                                                      [CK_VERB_FAILS] = CK_MAY_FAIL_IO,
                                                      [CK_MEMORY_ENDS] = CK_MAY_RUN_OUT};
    bool holds = !ix_survives_stops(world->index, world->params);
    bool stops = kind == CK_CLIENT_STOPS;
    /* What an index posts with an atomic is a batch of its own where atomics are emulated. */
    bool fails = kind == CK_VERB_FAILS || (kind == CK_READ_FAILS && world->emulates_masked);
    history->may_fail |= failures[kind];
    /* With read delegation, other clients of a compute node wait for one that stopped, whatever the index claims. After
     * an atomic or a write in error no client knows who holds the lock; after a read, its holder does. */
    history->may_starve = history->may_starve || (stops && (holds || world->rdwc != IX_RDWC_OFF)) || (fails && holds);
    /* Where many operations give up at the limit of retries, the run ends before all of them have. */
    history->may_fail |= history->may_starve ? CK_MAY_BE_STOPPED : 0U;
    *interrupted = *interrupted || history->may_starve || (kind == CK_READ_FAILS && holds);
}

const char *ck_rules_given(const struct ck_world *world) {
    const char *rules = NULL;
    for (size_t i = 0; i < world->setting_count; i++) {
        rules = strcmp(world->settings[i].name, "faults") == 0 ? world->settings[i].value : rules;
    }
    return rules;
}

void ck_rules_explain(const struct ck_world *world, const char *rules, struct ck_history *history, bool *interrupted) {
    while (*rules) {
        size_t length = strcspn(rules, ";");
        char rule[RULE_BYTES];
        snprintf(rule, sizeof(rule), "%.*s", (int)length, rules);
        if (strstr(rule, "stop:") && !strstr(rule, "for=")) {
            ck_fault_explain(world, CK_CLIENT_STOPS, history, interrupted);
        } else if (strstr(rule, "error:")) {
            ck_fault_explain(world, CK_VERB_FAILS, history, interrupted);
        } else if (strstr(rule, "fail:")) {
            ck_fault_explain(world, CK_SERVER_FAILS, history, interrupted);
        }
        rules += length + (rules[length] == ';');
    }
}
