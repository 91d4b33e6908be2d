/* SPDX-License-Identifier: Apache-2.0
 *
 * Model sets, sub-models and tables as words, and the range of leaves that a sub-model predicts.
 */
#include "layout.h"

static uint64_t bits_of(double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

static double double_of(uint64_t bits) {
    double value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

void xstore_set_encode(const struct xstore_set *set, unsigned node, uint64_t words[XSTORE_SET_WORDS]) {
    words[0] = (uint64_t)set->generation << 32 | set->top.models;
    words[1] = set->top.base;
    words[2] = bits_of(set->top.slope);
    words[3] = bits_of(set->top.intercept);
    words[4] = set->records;
    words[5] = ix_check_word(dm_mix64(node), words, 5);
}

bool xstore_set_decode(const uint64_t words[XSTORE_SET_WORDS], unsigned node, struct xstore_set *set) {
    *set = (struct xstore_set){
        .generation = (uint32_t)(words[0] >> 32),
        .top = {.models = (uint32_t)words[0],
                .base = words[1],
                .slope = double_of(words[2]),
                .intercept = double_of(words[3])},
        .records = (uint32_t)words[4],
    };
    return words[5] == ix_check_word(dm_mix64(node), words, 5) && set->top.models > 0;
}

static uint64_t pair_of(uint32_t high, uint32_t low) {
    return (uint64_t)high << 32 | low;
}

static uint32_t float_bits(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

static float float_of(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

void xstore_record_encode(const struct xstore_record *record, uint64_t seed, uint64_t words[XSTORE_RECORD_WORDS]) {
    words[0] = pair_of(float_bits(record->model.slope), float_bits(record->model.intercept));
    words[1] = pair_of((uint32_t)record->model.under << 16 | record->model.over, record->leaves);
    words[2] = pair_of(record->version, record->table);
    words[3] = ix_check_word(seed, words, 3);
}

bool xstore_record_decode(const uint64_t words[XSTORE_RECORD_WORDS], uint64_t seed, struct xstore_record *record) {
    *record = (struct xstore_record){
        .model = {.slope = float_of((uint32_t)(words[0] >> 32)),
                  .intercept = float_of((uint32_t)words[0]),
                  .under = (uint16_t)(words[1] >> 48),
                  .over = (uint16_t)(words[1] >> 32)},
        .leaves = (uint32_t)words[1],
        .version = (uint32_t)(words[2] >> 32),
        .table = (uint32_t)words[2],
    };
    return words[3] == ix_check_word(seed, words, 3) && record->leaves > 0;
}

uint32_t xstore_table_lines(uint32_t leaves) {
    uint32_t lines = xstore_lines_for(leaves), step = 1;
    while (lines > 8 * step) {
        step *= 2;
    }
    return (lines + step - 1) / step * step;
}

bool xstore_record_range(const struct xstore_record *record, uint32_t slots, uint32_t number, double coord,
                         uint32_t *first, uint32_t *last) {
    int64_t end = (int64_t)record->leaves * slots - 1;
    int64_t predicted = ix_rmi_predict(&record->model, number, coord, end);
    int64_t low = predicted - record->model.under, high = predicted + record->model.over;
    *first = (uint32_t)((low > 0 ? low : 0) / slots);
    *last = (uint32_t)((high < end ? high : end) / slots);
    return record->model.under < IX_RMI_BOUND_MAX && record->model.over < IX_RMI_BOUND_MAX;
}
