/* SPDX-License-Identifier: Apache-2.0
 *
 * What a result reports of the devices. The process that writes it may have no memory node: what concerns their memory
 * comes from their processes (see verbs_facts), and where nodes differ the result says so.
 */
#include <stdio.h>
#include <string.h>

#include "transport/verbs/verbs.h"

/* The value that all nodes with memory share, `mixed` if they differ, `none` if none is known. */
static const char *merged(const struct verbs *verbs, const char *(*value_of)(const struct verbs_facts *facts),
                          const char *none) {
    const char *all = NULL;
    for (unsigned node = 0; node < dm_first_cn(&verbs->rt.fabric->topology); node++) {
        const struct verbs_facts *facts = &verbs->facts[node];
        const char *value = facts->mtu > 0 ? value_of(facts) : NULL;
        if (value && all && strcmp(all, value) != 0) {
            return "mixed";
        }
        all = value ? value : all;
    }
    return all ? all : none;
}

/* Index servers have no on-chip memory, which says nothing of that of memory nodes. */
static const char *chip_of(const struct verbs_facts *facts) {
    return facts->chip == VERBS_CHIP_NONE ? NULL : facts->chip == VERBS_CHIP_DRAM ? "dram" : "device";
}

static const char *huge_pages_of(const struct verbs_facts *facts) {
    return facts->huge_pages ? "yes" : "no";
}

static const char *device_of(const struct verbs_facts *facts) {
    return (const char *)facts->device;
}

/* One node where it fails is enough, and one where it was not checked. */
static const char *finding(const struct verbs *verbs, size_t member) {
    const char *all = NULL;
    for (unsigned node = 0; node < dm_first_cn(&verbs->rt.fabric->topology); node++) {
        const struct verbs_facts *facts = &verbs->facts[node];
        uint8_t found = ((const uint8_t *)facts)[member];
        if (facts->mtu > 0 && found == VERBS_FAILS) {
            return "no";
        }
        if (facts->mtu > 0) {
            all = found == VERBS_ASSUMED || (all && strcmp(all, "assumed") == 0) ? "assumed" : "yes";
        }
    }
    return all ? all : "assumed";
}

struct rung {
    uint64_t fences, doorbells;
    unsigned threads, own_registers;
};

static struct rung count_threads(const struct verbs *verbs) {
    const struct dm_fabric *fabric = verbs->rt.fabric;
    struct rung sum = {0};
    for (unsigned node = 0; node < fabric->node_count; node++) {
        for (unsigned i = 0; verbs->hosted[node] && i < fabric->nodes[node].thread_count; i++) {
            const struct verbs_thread *thread = (const struct verbs_thread *)fabric->nodes[node].threads[i];
            sum.threads += thread->conns != NULL;
            sum.own_registers += thread->domain != NULL;
            sum.fences += thread->fences;
            sum.doorbells += thread->doorbells;
        }
    }
    return sum;
}

/* Numbers of this process, written to the fabric's own text. */
static void write_numbers(struct verbs *verbs, const struct rung *sum) {
    struct verbs_note_texts *texts = &verbs->note_texts;
    bool is_crowded = verbs->rt.cpu_count > 0 && sum->threads > verbs->rt.cpu_count;
    snprintf(texts->depth, sizeof(texts->depth), "%u", verbs->least_depth);
    snprintf(texts->inline_max, sizeof(texts->inline_max), "%u", verbs->least_inline);
    snprintf(texts->fences, sizeof(texts->fences), "%llu", (unsigned long long)sum->fences);
    snprintf(texts->doorbells, sizeof(texts->doorbells), "%llu", (unsigned long long)sum->doorbells);
    snprintf(texts->threads, sizeof(texts->threads), "%u on %u processors%s", sum->threads, verbs->rt.cpu_count,
             is_crowded ? ": too few" : "");
}

size_t verbs_notes(struct dm_fabric *fabric, struct dm_note *notes, size_t capacity) {
    struct verbs *verbs = verbs_of(fabric);
    struct rung sum = count_threads(verbs);
    write_numbers(verbs, &sum);
    const struct dm_note all[] = {
        {"device", verbs->ports[0].name},
        {"mn_device", merged(verbs, device_of, verbs->ports[verbs->port_count - 1].name)},
        {"chip_memory", merged(verbs, chip_of, "none")},
        {"huge_pages", merged(verbs, huge_pages_of, "no")},
        {"line_atomic", finding(verbs, offsetof(struct verbs_facts, whole_lines))},
        {"write_order", finding(verbs, offsetof(struct verbs_facts, write_order))},
        {"cpu_atomics", finding(verbs, offsetof(struct verbs_facts, cpu_atomics))},
        {"masked_atomics", verbs->note_texts.masked},
        {"order", verbs->posts_alone       ? "alone"
                  : verbs->waits_for_order ? "wait"
                                           : "fence"},
        {"connect", verbs->connect_kind},
        {"depth", verbs->note_texts.depth},
        {"inline_max", verbs->note_texts.inline_max},
        {"fences", verbs->note_texts.fences},
        {"doorbells", verbs->note_texts.doorbells},
        {"doorbell_registers", sum.own_registers == 0             ? "shared"
                               : sum.own_registers == sum.threads ? "one a thread"
                                                                  : "mixed"},
        {"threads", verbs->note_texts.threads},
    };
    size_t count = DM_ARRAY_LEN(all);
    memcpy(notes, all, (count < capacity ? count : capacity) * sizeof(*notes));
    return count;
}
