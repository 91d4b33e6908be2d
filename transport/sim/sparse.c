/* SPDX-License-Identifier: Apache-2.0
 *
 * The words of a range are a run of the kept ones; a write replaces this run by another one.
 */
#include "transport/sim/sparse.h"

#include <string.h>

/* Kept words in front of word `at`, which may be the end of the page. */
static unsigned rank_of(const struct sim_sparse *sparse, unsigned at) {
    unsigned group = at / 64;
    if (group == SIM_PAGE_GROUPS) {
        return sim_sparse_count(sparse);
    }
    uint64_t below = (UINT64_C(1) << at % 64) - 1;
    return sparse->before[group] + (unsigned)__builtin_popcountll(sparse->kept[group] & below);
}

unsigned sim_sparse_count(const struct sim_sparse *sparse) {
    enum { LAST = SIM_PAGE_GROUPS - 1 };
    return sparse->before[LAST] + (unsigned)__builtin_popcountll(sparse->kept[LAST]);
}

struct sim_sparse *sim_sparse_new(struct sim_slab *slab, const void *page) {
    struct sim_sparse *sparse = NULL;
    return sim_sparse_write(slab, &sparse, 0, page, SIM_PAGE) ? sparse : NULL;
}

/* Bits of the words [first, end) that are in the group, at least one of them. */
static uint64_t range_mask(unsigned group, unsigned first, unsigned end) {
    uint64_t from = first > group * 64 ? UINT64_MAX << (first - group * 64) : UINT64_MAX;
    uint64_t to = end < (group + 1) * 64 ? (UINT64_C(1) << (end - group * 64)) - 1 : UINT64_MAX;
    return from & to;
}

/* Copies the words [first, end) to `out`, which need not be aligned. */
static void words_read(const struct sim_sparse *sparse, unsigned first, unsigned end, char *out) {
    const uint64_t *word = sparse->words + rank_of(sparse, first);
    memset(out, 0, (end - first) * sizeof(*word));
    for (unsigned group = first / 64; group * 64 < end; group++) {
        for (uint64_t bits = sparse->kept[group] & range_mask(group, first, end); bits; bits &= bits - 1) {
            unsigned at = group * 64 + (unsigned)__builtin_ctzll(bits);
            memcpy(out + (at - first) * sizeof(*word), word++, sizeof(*word));
        }
    }
}

void sim_sparse_read(const struct sim_sparse *sparse, unsigned at, void *out, unsigned len) {
    if ((at | len) % 8 == 0) {
        words_read(sparse, at / 8, (at + len) / 8, out);
        return;
    }
    char range[SIM_PAGE];
    words_read(sparse, at / 8, (at + len + 7) / 8, range);
    memcpy(out, range + at % 8, len);
}

/* Words that replace those of a range. */
struct run {
    unsigned first, end; /* of the range */
    unsigned count;
    uint64_t kept[SIM_PAGE_GROUPS];
    uint64_t words[SIM_PAGE_WORDS];
};

/* Packs the range's words that are not zero. */
static void run_pack(struct run *run, const char *range) {
    run->count = 0;
    for (unsigned group = run->first / 64; group * 64 < run->end; group++) {
        run->kept[group] = 0;
    }
    for (unsigned at = run->first; at < run->end; at++) {
        uint64_t word;
        memcpy(&word, range + (at - run->first) * sizeof(word), sizeof(word));
        if (word != 0) {
            run->kept[at / 64] |= UINT64_C(1) << at % 64;
            run->words[run->count++] = word;
        }
    }
}

/* A block for `count` words, with the header and the first words of `sparse`, which stays what it is. */
static struct sim_sparse *resized(struct sim_slab *slab, const struct sim_sparse *sparse, unsigned words,
                                  unsigned count) {
    struct sim_sparse *copy = sim_slab_alloc(slab, sim_sparse_lines(count));
    if (copy && sparse) {
        memcpy(copy, sparse, sizeof(*sparse) + words * sizeof(sparse->words[0]));
    } else if (copy) {
        memset(copy, 0, sizeof(*copy));
    }
    return copy;
}

/* Puts the run in the range's stead; false, and nothing is changed, if the page has too many words then. */
static bool run_replace(struct sim_slab *slab, struct sim_sparse **page, const struct run *run) {
    struct sim_sparse *sparse = *page, *target = sparse;
    unsigned total = sparse ? sim_sparse_count(sparse) : 0;
    unsigned from = sparse ? rank_of(sparse, run->first) : 0, to = sparse ? rank_of(sparse, run->end) : 0;
    unsigned count = total - (to - from) + run->count;
    if (count > SIM_SPARSE_MOST) {
        return false;
    }
    if (!sparse || sim_sparse_lines(count) != sim_sparse_lines(total)) {
        target = resized(slab, sparse, from, count);
        if (!target) {
            return false;
        }
    }
    if (total > to) {
        memmove(target->words + from + run->count, sparse->words + to, (total - to) * sizeof(target->words[0]));
    }
    memcpy(target->words + from, run->words, run->count * sizeof(target->words[0]));
    if (sparse && target != sparse) {
        sim_slab_free(slab, sparse, sim_sparse_lines(total));
    }
    unsigned before = target->before[run->first / 64];
    for (unsigned group = run->first / 64; group < SIM_PAGE_GROUPS; group++) {
        if (group * 64 < run->end) {
            target->kept[group] &= ~range_mask(group, run->first, run->end);
            target->kept[group] |= run->kept[group];
        } else if (target->before[group] == before) {
            break;
        }
        target->before[group] = (uint8_t)before;
        before += (unsigned)__builtin_popcountll(target->kept[group]);
    }
    *page = target;
    return true;
}

bool sim_sparse_write(struct sim_slab *slab, struct sim_sparse **sparse, unsigned at, const void *data, unsigned len) {
    struct run run;
    run.first = at / 8;
    run.end = (at + len + 7) / 8;
    if ((at | len) % 8 == 0) {
        run_pack(&run, data);
    } else {
        char range[SIM_PAGE];
        memset(range, 0, (run.end - run.first) * sizeof(uint64_t));
        if (*sparse) {
            words_read(*sparse, run.first, run.end, range);
        }
        memcpy(range + at % 8, data, len);
        run_pack(&run, range);
    }
    return run_replace(slab, sparse, &run);
}
