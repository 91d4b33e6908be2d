/* SPDX-License-Identifier: Apache-2.0
 *
 * From a history to a verdict. First each operation is judged alone. Then operations are divided into accesses of
 * single keys, and each key is judged by linearizability.h. Of the keys that fail, the one that fails first is
 * reported.
 *
 * A scan accesses every key in its range: a key that it returned had that value at some time during the scan, a key
 * that it did not return was absent at some time. This is exactly the contract of scans (they are not snapshots; every
 * pair was present at some time; no key that was present throughout is missing), and it is judged together with the
 * other accesses of the key.
 */
#include "check/judge.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check/linearizability.h"

const char *const ck_fault_names[CK_FAULT_COUNT] = {
#define X(name, text) text,
    CK_FAULTS(X)
#undef X
};

static const char *key_text(uint64_t key, char text[24]) {
    snprintf(text, 24, "%llu", (unsigned long long)key);
    return text;
}

/* "client 3: update key 5 := #41 -> ok". Returns text. */
static const char *op_text(const struct ck_op *op, char *text, size_t capacity) {
    char key[24], value[32] = "", result[48];
    bool is_put = op->kind == WL_INSERT || op->kind == WL_UPDATE;
    if (is_put) {
        snprintf(value, sizeof(value), " := #%llu", (unsigned long long)op->value);
    } else if (op->kind == WL_SCAN) {
        snprintf(value, sizeof(value), " count %u", op->wanted);
    }
    if (!op->finished) {
        snprintf(result, sizeof(result), "no response");
    } else if (op->outcome == 0 && op->kind == WL_GET) {
        snprintf(result, sizeof(result), op->value == CK_VALUE_STRANGE ? "a value that was never written" : "#%llu",
                 (unsigned long long)op->value);
    } else if (op->outcome == 0 && op->kind == WL_SCAN) {
        snprintf(result, sizeof(result), "%u pairs", op->found);
    } else {
        snprintf(result, sizeof(result), "%s", dm_code_text(op->outcome));
    }
    snprintf(text, capacity, "client %u: %s key %s%s -> %s", op->client, wl_op_names[op->kind], key_text(op->key, key),
             value, result);
    return text;
}

/* ---- one operation alone ---------------------------------------------------------------------------------------- */

static void verdict_set(struct ck_verdict *verdict, enum ck_fault fault, const struct ck_history *history, size_t op,
                        uint64_t key, const char *what) {
    char text[160];
    verdict->fault = fault;
    verdict->has_key = true;
    verdict->key = key;
    verdict->op = op;
    snprintf(verdict->text, sizeof(verdict->text), "%s: %s", op_text(&history->ops[op], text, sizeof(text)), what);
}

/* True if a fault of the run explains the failure. Where nodes fail, the effect of a write can be lost for good, but a
 * get or scan can be repeated until a successor answers. Only operations that store something need memory. */
static bool failure_explained(const struct ck_history *history, const struct ck_op *op) {
    bool is_read = op->kind == WL_GET || op->kind == WL_SCAN;
    switch (op->outcome) {
    case DM_ERR_STOPPED:
        return history->may_fail & CK_MAY_BE_STOPPED;
    case DM_ERR_IO:
        return history->may_fail & CK_MAY_FAIL_IO;
    case DM_ERR_PEER:
        return history->may_fail & CK_MAY_FAIL_PEER && !is_read;
    case DM_ERR_NO_MEMORY:
        return history->may_fail & CK_MAY_RUN_OUT && !is_read;
    default:
        return true;
    }
}

static bool outcome_allowed(const struct ck_op *op) {
    switch (op->outcome) {
    case DM_OK:
    case DM_ERR_NO_MEMORY:
    case DM_ERR_RETRY_LIMIT:
    case DM_ERR_IO:
    case DM_ERR_PEER:
    case DM_ERR_STOPPED:
        return true;
    case DM_NOT_FOUND:
        return op->kind == WL_GET || op->kind == WL_UPDATE || op->kind == WL_DELETE;
    case DM_EXISTS:
        return op->kind == WL_INSERT;
    default:
        return false;
    }
}

static void scan_judge(const struct ck_history *history, size_t at, struct ck_verdict *verdict) {
    const struct ck_op *op = &history->ops[at];
    if (op->found > op->wanted) {
        verdict_set(verdict, CK_WRONG_SCAN, history, at, op->key, "more pairs than requested");
        return;
    }
    for (uint32_t i = 0; i < op->found; i++) {
        uint64_t key = op->pairs[i].key;
        if (key < op->key) {
            verdict_set(verdict, CK_WRONG_SCAN, history, at, key, "a key below the lower bound");
        } else if (i > 0 && key == op->pairs[i - 1].key) {
            verdict_set(verdict, CK_WRONG_SCAN, history, at, key, "the same key twice");
        } else if (i > 0 && key < op->pairs[i - 1].key) {
            verdict_set(verdict, CK_WRONG_SCAN, history, at, key, "keys are not ascending");
        } else if (op->pairs[i].value == CK_VALUE_STRANGE) {
            verdict_set(verdict, CK_STRANGE_VALUE, history, at, key, "a pair with a value that was never written");
        } else {
            continue;
        }
        return;
    }
}

/* The number of operations of other clients that finished while this one was trying. */
static size_t progress_beside(const struct ck_history *history, const struct ck_op *op) {
    size_t count = 0;
    for (size_t i = 0; i < history->op_count; i++) {
        const struct ck_op *other = &history->ops[i];
        count += other->client != op->client && other->finished && other->outcome >= 0 &&
                 other->response > op->invoke && other->response < op->response;
    }
    return count;
}

static void op_judge(const struct ck_history *history, size_t at, struct ck_verdict *verdict) {
    const struct ck_op *op = &history->ops[at];
    if (!op->finished) {
        return;
    }
    if (!outcome_allowed(op)) {
        verdict_set(verdict, CK_STRANGE_OUTCOME, history, at, op->key,
                    "an outcome that the contract does not allow for this operation");
    } else if (!failure_explained(history, op)) {
        verdict_set(verdict, CK_UNEXPLAINED, history, at, op->key, "it failed, and no fault of the run explains that");
    } else if (op->outcome == DM_ERR_RETRY_LIMIT && !history->may_starve) {
        char what[96];
        snprintf(what, sizeof(what),
                 "gave up after the limit of retries; meanwhile other clients finished %zu operations",
                 progress_beside(history, op));
        verdict_set(verdict, CK_NO_PROGRESS, history, at, op->key, what);
    } else if (op->outcome == 0 && op->kind == WL_GET && op->value == CK_VALUE_STRANGE) {
        verdict_set(verdict, CK_STRANGE_VALUE, history, at, op->key, "bytes that were never written");
    } else if (op->outcome == 0 && op->kind == WL_SCAN) {
        scan_judge(history, at, verdict);
    }
}

/* ---- accesses by key -------------------------------------------------------------------------------------------- */

struct judge {
    const struct ck_history *history;
    uint64_t *keys; /* all keys of the history, ascending */
    size_t key_count;
    size_t *ends; /* the accesses of key i end at ends[i] and begin at the end of those of key i - 1 */
    struct ck_access *accesses;
    bool counting; /* in the first pass accesses are only counted */
    struct ck_verdict *verdict;
};

static int key_compare(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static int keys_collect(struct judge *judge) {
    const struct ck_history *history = judge->history;
    judge->keys = malloc((history->initial_count + history->op_count + 1) * sizeof(*judge->keys));
    if (!judge->keys) {
        return DM_ERR_NO_MEMORY;
    }
    size_t n = 0;
    for (size_t i = 0; i < history->initial_count; i++) {
        judge->keys[n++] = history->initial[i].key;
    }
    for (size_t i = 0; i < history->op_count; i++) {
        if (history->ops[i].kind != WL_SCAN) {
            judge->keys[n++] = history->ops[i].key;
        }
    }
    qsort(judge->keys, n, sizeof(*judge->keys), key_compare);
    for (size_t i = 0; i < n; i++) {
        if (judge->key_count == 0 || judge->keys[judge->key_count - 1] != judge->keys[i]) {
            judge->keys[judge->key_count++] = judge->keys[i];
        }
    }
    return 0;
}

/* The index of the first key that is not below `key`. */
static size_t key_index(const struct judge *judge, uint64_t key) {
    size_t low = 0, high = judge->key_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (judge->keys[middle] < key) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static void access_add(struct judge *judge, size_t key, struct ck_access access) {
    if (!judge->counting) {
        judge->accesses[judge->ends[key]] = access;
    }
    judge->ends[key]++;
}

/* The access that a write makes; false if it makes none. */
static bool write_access(const struct ck_op *op, struct ck_access *access) {
    bool is_open = !op->finished || (op->outcome < 0 && op->outcome != DM_ERR_NO_MEMORY);
    if (op->finished && op->outcome == DM_ERR_NO_MEMORY) {
        return false;
    }
    if (is_open) {
        access->optional = true;
        access->response = CK_NEVER;
    }
    if (is_open || op->outcome == 0) {
        access->value = op->value;
        access->kind = op->kind == WL_INSERT ? CK_PUT_NEW : op->kind == WL_UPDATE ? CK_PUT_OVER : CK_REMOVE;
    } else {
        access->kind = op->outcome == DM_EXISTS ? CK_READ_PRESENT : CK_READ_ABSENT;
    }
    return true;
}

static void scan_accesses(struct judge *judge, const struct ck_op *op, struct ck_access access) {
    size_t key = key_index(judge, op->key);
    bool reached_end = op->found < op->wanted;
    for (uint32_t i = 0; key < judge->key_count && (i < op->found || reached_end); key++) {
        bool is_returned = i < op->found && op->pairs[i].key == judge->keys[key];
        access.kind = is_returned ? CK_READ_VALUE : CK_READ_ABSENT;
        access.value = is_returned ? op->pairs[i].value : 0;
        i += is_returned;
        access_add(judge, key, access);
    }
}

static void op_accesses(struct judge *judge, size_t at) {
    const struct ck_op *op = &judge->history->ops[at];
    struct ck_access access = {.invoke = op->invoke, .response = op->response, .op = at};
    bool is_answered = op->finished && op->outcome >= 0;
    if (op->kind == WL_SCAN) {
        if (is_answered) {
            scan_accesses(judge, op, access);
        }
    } else if (op->kind == WL_GET) {
        if (is_answered) {
            access.kind = op->outcome == 0 ? CK_READ_VALUE : CK_READ_ABSENT;
            access.value = op->value;
            access_add(judge, key_index(judge, op->key), access);
        }
    } else if (write_access(op, &access)) {
        access_add(judge, key_index(judge, op->key), access);
    }
}

/* A key in a scan that no operation ever named. */
static void unknown_keys(struct judge *judge, size_t at) {
    const struct ck_op *op = &judge->history->ops[at];
    for (uint32_t i = 0; op->kind == WL_SCAN && op->finished && op->outcome == 0 && i < op->found; i++) {
        size_t key = key_index(judge, op->pairs[i].key);
        if (key == judge->key_count || judge->keys[key] != op->pairs[i].key) {
            verdict_set(judge->verdict, CK_WRONG_SCAN, judge->history, at, op->pairs[i].key,
                        "a key that was never inserted");
            return;
        }
    }
}

static int accesses_collect(struct judge *judge) {
    size_t ops = judge->history->op_count;
    judge->ends = calloc(judge->key_count + 1, sizeof(*judge->ends));
    if (!judge->ends) {
        return DM_ERR_NO_MEMORY;
    }
    judge->counting = true;
    for (size_t i = 0; i < ops; i++) {
        op_accesses(judge, i);
    }
    size_t sum = 0;
    for (size_t key = 0; key < judge->key_count; key++) {
        size_t count = judge->ends[key];
        judge->ends[key] = sum;
        sum += count;
    }
    judge->accesses = calloc(sum + 1, sizeof(*judge->accesses));
    if (!judge->accesses) {
        return DM_ERR_NO_MEMORY;
    }
    judge->counting = false;
    for (size_t i = 0; i < ops; i++) {
        op_accesses(judge, i);
    }
    return 0;
}

static uint64_t initial_value(const struct ck_history *history, size_t *at, uint64_t key) {
    while (*at < history->initial_count && history->initial[*at].key < key) {
        ++*at;
    }
    bool is_there = *at < history->initial_count && history->initial[*at].key == key;
    return is_there ? history->initial[*at].value : 0;
}

static void key_wrong(struct judge *judge, size_t key, size_t op, int rc) {
    struct ck_verdict *verdict = judge->verdict;
    const struct ck_history *history = judge->history;
    if (verdict->fault != CK_RIGHT && history->ops[verdict->op].response <= history->ops[op].response) {
        return;
    }
    char what[120], text[24];
    snprintf(what, sizeof(what),
             rc == 1 ? "no order of the accesses of key %s explains this result"
                     : "the accesses of key %s have too many possible orders to judge",
             key_text(judge->keys[key], text));
    verdict_set(verdict, rc == 1 ? CK_NOT_LINEARIZABLE : CK_UNDECIDED, history, op, judge->keys[key], what);
}

static int keys_judge(struct judge *judge) {
    struct ck_linear *linear = ck_linear_new();
    if (!linear) {
        return DM_ERR_NO_MEMORY;
    }
    int rc = 0;
    size_t begin = 0, initial = 0;
    for (size_t key = 0; key < judge->key_count && rc >= 0; key++) {
        size_t culprit = 0;
        const struct ck_access *accesses = judge->accesses + begin;
        rc = ck_linear_judge(linear, accesses, judge->ends[key] - begin,
                             initial_value(judge->history, &initial, judge->keys[key]), &culprit);
        if (rc > 0) {
            key_wrong(judge, key, accesses[culprit].op, rc);
        }
        begin = judge->ends[key];
    }
    ck_linear_free(linear);
    return rc < 0 ? rc : 0;
}

int ck_judge(const struct ck_history *history, struct ck_verdict *verdict) {
    *verdict = (struct ck_verdict){.fault = CK_RIGHT, .op = CK_NO_OP};
    for (size_t i = 0; i < history->op_count && verdict->fault == CK_RIGHT; i++) {
        op_judge(history, i, verdict);
    }
    if (verdict->fault != CK_RIGHT) {
        return 0;
    }
    struct judge judge = {.history = history, .verdict = verdict};
    int rc = keys_collect(&judge);
    for (size_t i = 0; i < history->op_count && rc == 0 && verdict->fault == CK_RIGHT; i++) {
        unknown_keys(&judge, i);
    }
    if (rc == 0 && verdict->fault == CK_RIGHT) {
        rc = accesses_collect(&judge);
        rc = rc < 0 ? rc : keys_judge(&judge);
    }
    free(judge.keys);
    free(judge.ends);
    free(judge.accesses);
    return rc;
}
