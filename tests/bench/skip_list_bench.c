/* SPDX-License-Identifier: Apache-2.0
 *
 * Measures a search of a skip list of nodes of one line, of which one in four is in the next level, as the cache of
 * Sherman's authors finds the parent of a leaf: nodes are inserted in random order, and random keys are searched. For
 * each number of nodes: how many nodes a search compares, and ns on one core. ix_cache_charge_list charges this work:
 * beside it, by this host's accesses (access_bench), what the accesses of a search are charged, by what is accessed
 * between two meetings of a node, and what they would be by the bytes of each level alone.
 *
 *     build/release/bench/skip_list_bench [NODES...]
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

#include "common/compiler.h"
#include "common/prng.h"
#include "harness/lab/validate.h"
#include "indexes/shared/skip_list.h"

enum { LEVELS = 21, INLINE_LEVELS = 4, SEARCHES = 400000, ROUNDS = 3, ACCESS_MIN = 4096 };

/* Of higher nodes the next pointers are in an array of their own. */
struct node {
    uint64_t key, values[2];
    struct node *next[INLINE_LEVELS], **higher;
};

struct list {
    struct node head, *nodes;
    struct node *head_higher[LEVELS];
    unsigned height;
    uint64_t compared;
};

static struct node **next_of(struct node *node, unsigned level) {
    return level < INLINE_LEVELS ? &node->next[level] : &node->higher[level - INLINE_LEVELS];
}

/* The last node before the key on each level; the node at or behind it is returned. */
static struct node *search(struct list *list, uint64_t key, struct node **before) {
    struct node *at = &list->head, *larger = NULL;
    for (unsigned level = list->height; level-- > 0;) {
        struct node *next;
        while ((next = *next_of(at, level)) && next != larger) {
            list->compared++;
            if (next->key >= key) {
                break;
            }
            at = next;
        }
        larger = next;
        if (before) {
            before[level] = at;
        }
    }
    return larger;
}

static void insert(struct list *list, struct node *node, unsigned height) {
    struct node *before[LEVELS];
    for (unsigned level = list->height; level < height; level++) {
        before[level] = &list->head;
    }
    search(list, node->key, before);
    list->height = height > list->height ? height : list->height;
    node->higher = height > INLINE_LEVELS ? calloc(height - INLINE_LEVELS, sizeof(struct node *)) : NULL;
    for (unsigned level = 0; level < height; level++) {
        *next_of(node, level) = *next_of(before[level], level);
        *next_of(before[level], level) = node;
    }
}

static double now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return 1e9 * (double)now.tv_sec + (double)now.tv_nsec;
}

/* Accesses of one search, 15 in four levels, by the host's curve. */
static double charged_ns(uint64_t count, bool by_reuse) {
    double sum = 0;
    unsigned level = 0;
    for (uint64_t nodes = count; nodes > 0; nodes /= IX_LIST_BRANCHING) {
        struct dm_err err;
        double ns = 0;
        uint64_t bytes = by_reuse ? ix_list_reuse_bytes(nodes, level++, 0) : nodes * DM_LINE;
        if (hx_access_ns(bytes < ACCESS_MIN ? ACCESS_MIN : bytes, 0, &ns, &err) < 0) {
            return -1;
        }
        sum += ns * IX_LIST_QUARTERS / IX_LIST_BRANCHING;
    }
    return sum;
}

static bool measure(uint64_t count) {
    struct list list = {.height = 0};
    size_t bytes = count * sizeof(struct node);
    list.head.higher = list.head_higher;
    list.nodes = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (list.nodes == MAP_FAILED) {
        return false;
    }
    (void)madvise(list.nodes, bytes, MADV_HUGEPAGE);
    for (uint64_t i = 0; i < count; i++) {
        unsigned height = 1;
        for (uint64_t coin = dm_mix64(i + count); coin % IX_LIST_BRANCHING == 0 && height < LEVELS;
             coin /= IX_LIST_BRANCHING) {
            height++;
        }
        list.nodes[i].key = dm_mix64(i + 1);
        insert(&list, &list.nodes[i], height);
    }
    double best = 1e18;
    uint64_t found = 0;
    list.compared = 0;
    for (int round = 0; round < ROUNDS; round++) {
        double begin = now_ns();
        for (uint64_t i = 0; i < SEARCHES; i++) {
            struct node *node = search(&list, dm_mix64(i * ROUNDS + (unsigned)round + found), NULL);
            found = node ? node->key & 1 : 0; /* so that a search begins when the one before it has ended */
        }
        double each = (now_ns() - begin) / SEARCHES;
        best = each < best ? each : best;
    }
    printf("%9llu nodes: %.1f compared, %.0f ns a search; charged %.0f, %.0f by the bytes of each level alone\n",
           (unsigned long long)count, (double)list.compared / ROUNDS / SEARCHES, best, charged_ns(count, true),
           charged_ns(count, false));
    for (uint64_t i = 0; i < count; i++) {
        free(list.nodes[i].higher);
    }
    (void)munmap(list.nodes, bytes);
    return true;
}

int main(int argc, char **argv) {
    static const uint64_t counts[] = {2500, 40000, 150000, 600000, 2400000};
    for (int i = 1; i < argc; i++) {
        uint64_t count = strtoull(argv[i], NULL, 10);
        if (count == 0 || !measure(count)) {
            fprintf(stderr, "skip_list_bench: '%s' is no number of nodes from 1 on, or there is no memory for them\n",
                    argv[i]);
            return 2;
        }
    }
    for (size_t i = 0; argc < 2 && i < sizeof(counts) / sizeof(counts[0]); i++) {
        if (!measure(counts[i])) {
            return 1;
        }
    }
    return 0;
}
