/* SPDX-License-Identifier: Apache-2.0
 *
 * Registered memory. Nodes of this process offer theirs to every connection; local buffers of verbs are in one range of
 * addresses, so that a pointer's key is found by a subtraction.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "transport/verbs/verbs.h"

/* Address space only; the address sanitizer has shadow memory for all of it. */
#define ARENA_SPAN ((size_t)1 << (DM_ASAN ? 32 : 36))

enum {
    LOCAL_ACCESS = IBV_ACCESS_LOCAL_WRITE,
    OFFER_ACCESS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC,
};

static const char *limit_hint(void) {
    return errno == ENOMEM || errno == EPERM || errno == EAGAIN ? "; `ulimit -l` limits memory that devices may use"
                                                                : "";
}

/* ---- the arena -------------------------------------------------------------------------------------------------- */

int verbs_arena_open(struct verbs *verbs, struct dm_err *err) {
    /* From a multiple of the size of a huge page on, so that each slab can be one. */
    size_t span = ARENA_SPAN + VERBS_SLAB;
    void *map = mmap(NULL, span, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (map == MAP_FAILED) {
        return dm_fail(err, DM_ERR_NO_MEMORY, "verbs: cannot reserve %zu bytes of address space: %s", ARENA_SPAN,
                       strerror(errno));
    }
    verbs->arena_map = map;
    verbs->arena = verbs->arena_map + (-(uintptr_t)map & (VERBS_SLAB - 1));
    verbs->arena_bytes = ARENA_SPAN;
    if (verbs->options->huge_pages) {
        (void)madvise(verbs->arena, ARENA_SPAN, MADV_HUGEPAGE);
    }
    verbs->arena_mrs = calloc(ARENA_SPAN / VERBS_SLAB, sizeof(*verbs->arena_mrs));
    return verbs->arena_mrs ? 0 : DM_ERR_NO_MEMORY;
}

void verbs_arena_close(struct verbs *verbs) {
    const struct ibv_mr *last[VERBS_PORTS] = {NULL};
    for (size_t slab = 0; verbs->arena_mrs && slab < verbs->arena_ready / VERBS_SLAB; slab++) {
        for (unsigned port = 0; port < verbs->port_count; port++) {
            struct ibv_mr *mr = verbs->arena_mrs[slab][port];
            if (mr && mr != last[port]) { /* a long piece has one for all its slabs */
                last[port] = mr;
                ibv_dereg_mr(mr);
            }
        }
    }
    free(verbs->arena_mrs);
    if (verbs->arena) {
        munmap(verbs->arena_map, verbs->arena_bytes + VERBS_SLAB);
    }
}

/* Registers [arena_ready, arena_ready + bytes) as one piece. */
static int arena_grow(struct verbs *verbs, size_t bytes) {
    unsigned char *at = verbs->arena + verbs->arena_ready;
    if (bytes > verbs->arena_bytes - verbs->arena_ready || mprotect(at, bytes, PROT_READ | PROT_WRITE) != 0) {
        return DM_ERR_NO_MEMORY;
    }
    for (unsigned port = 0; port < verbs->port_count; port++) {
        struct ibv_mr *mr = ibv_reg_mr(verbs->ports[port].pd, at, bytes, LOCAL_ACCESS);
        if (!mr) {
            verbs_failure_note(verbs, DM_ERR_NO_MEMORY, "device %s does not register %zu bytes: %s%s",
                               verbs->ports[port].name, bytes, strerror(errno), limit_hint());
            return DM_ERR_NO_MEMORY;
        }
        for (size_t i = 0; i < bytes / VERBS_SLAB; i++) {
            verbs->arena_mrs[verbs->arena_ready / VERBS_SLAB + i][port] = mr;
        }
    }
    verbs->arena_ready += bytes;
    return 0;
}

void *verbs_arena_alloc(struct verbs *verbs, size_t bytes) {
    void *at = NULL;
    size_t wanted = (bytes + DM_LINE - 1) & ~(size_t)(DM_LINE - 1);
    pthread_mutex_lock(&verbs->arena_lock);
    if (wanted > verbs->arena_ready - verbs->arena_used) {
        /* A piece must be within one registration. */
        verbs->arena_used = verbs->arena_ready;
        size_t slabs = (wanted + VERBS_SLAB - 1) / VERBS_SLAB;
        if (arena_grow(verbs, slabs * VERBS_SLAB) < 0) {
            pthread_mutex_unlock(&verbs->arena_lock);
            return NULL;
        }
    }
    at = verbs->arena + verbs->arena_used;
    verbs->arena_used += wanted;
    pthread_mutex_unlock(&verbs->arena_lock);
    return at;
}

bool verbs_arena_key(const struct verbs *verbs, const struct verbs_port *port, const void *at, uint32_t len,
                     uint32_t *key) {
    uintptr_t offset = (uintptr_t)at - (uintptr_t)verbs->arena;
    if (offset >= verbs->arena_bytes) {
        return false;
    }
    /* A piece was registered under the lock before it was handed out. No piece spans two registrations. */
    const struct ibv_mr *mr = verbs->arena_mrs[offset / VERBS_SLAB][port - verbs->ports];
    if (!mr || (uintptr_t)at + len > (uintptr_t)mr->addr + mr->length) {
        return false;
    }
    *key = mr->lkey;
    return true;
}

/* ---- what nodes offer ------------------------------------------------------------------------------------------- */

/* On huge pages where the system has some reserved; otherwise it may find some later. */
static int dram_map(const struct verbs *verbs, struct verbs_facts *facts, struct dm_mapping *memory, uint64_t bytes) {
    size_t rounded = (size_t)((bytes + VERBS_SLAB - 1) & ~(uint64_t)(VERBS_SLAB - 1));
    if (verbs->options->huge_pages) {
        void *map = mmap(NULL, rounded, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
        if (map != MAP_FAILED) {
            *memory = (struct dm_mapping){.base = map, .map = map, .map_bytes = rounded};
            facts->huge_pages = 1;
            return 0;
        }
    }
    DM_TRY(dm_mapping_open(memory, bytes));
    if (verbs->options->huge_pages) {
        dm_mapping_expect_bulk(memory, 0, bytes);
    }
    return 0;
}

static int dram_offer(struct verbs *verbs, unsigned node, struct dm_err *err) {
    struct verbs_offer *offer = &verbs->offers[node];
    struct verbs_port *port = verbs_port_of(verbs, node);
    uint64_t bytes = verbs->rt.fabric->topology.mn_bytes;
    if (dram_map(verbs, &verbs->facts[node], &offer->dram, bytes) == 0) {
        offer->dram_mr = ibv_reg_mr(port->pd, offer->dram.base, bytes, OFFER_ACCESS);
    }
    if (!offer->dram_mr) {
        return dm_fail(err, DM_ERR_NO_MEMORY, "verbs: device %s does not register %llu bytes of node %u: %s%s",
                       port->name, (unsigned long long)bytes, node, strerror(errno), limit_hint());
    }
    verbs->regions[node][DM_DRAM] = (struct verbs_region){(uintptr_t)offer->dram.base, bytes, offer->dram_mr->rkey};
    return 0;
}

/* The device's own memory; addresses in it count from 0. */
static bool chip_offer_device(struct verbs_offer *offer, struct verbs_port *port, uint32_t bytes) {
    static const unsigned char zeros[4096];
    struct ibv_alloc_dm_attr attr = {.length = bytes, .log_align_req = 6};
    offer->chip_dm = bytes <= port->chip_bytes ? ibv_alloc_dm(port->device, &attr) : NULL;
    if (!offer->chip_dm) {
        return false;
    }
    bool is_zero = true;
    for (uint32_t at = 0; at < bytes; at += sizeof(zeros)) {
        uint32_t left = bytes - at;
        is_zero =
            is_zero && ibv_memcpy_to_dm(offer->chip_dm, at, zeros, left < sizeof(zeros) ? left : sizeof(zeros)) == 0;
    }
    offer->chip_mr =
        is_zero ? ibv_reg_dm_mr(port->pd, offer->chip_dm, 0, bytes, OFFER_ACCESS | IBV_ACCESS_ZERO_BASED) : NULL;
    if (!offer->chip_mr) {
        ibv_free_dm(offer->chip_dm);
        offer->chip_dm = NULL;
    }
    return offer->chip_mr != NULL;
}

static int chip_offer(struct verbs *verbs, unsigned node, struct dm_err *err) {
    struct verbs_offer *offer = &verbs->offers[node];
    struct verbs_port *port = verbs_port_of(verbs, node);
    uint32_t bytes = verbs->rt.fabric->topology.chip_bytes;
    uint64_t base = 0;
    if (chip_offer_device(offer, port, bytes)) {
        verbs->facts[node].chip = VERBS_CHIP_DEVICE;
    } else {
        verbs->facts[node].chip = VERBS_CHIP_DRAM;
        if (dm_mapping_open(&offer->chip_dram, bytes) == 0) {
            offer->chip_mr = ibv_reg_mr(port->pd, offer->chip_dram.base, bytes, OFFER_ACCESS);
            base = (uintptr_t)offer->chip_dram.base;
        }
        if (!offer->chip_mr) {
            return dm_fail(err, DM_ERR_NO_MEMORY, "verbs: device %s does not register %u bytes of node %u: %s%s",
                           port->name, bytes, node, strerror(errno), limit_hint());
        }
    }
    verbs->regions[node][DM_CHIP] = (struct verbs_region){base, bytes, offer->chip_mr->rkey};
    return 0;
}

static void facts_begin(const struct verbs_port *port, struct verbs_facts *facts) {
    *facts = (struct verbs_facts){.mtu = (uint8_t)port->mtu,
                                  .whole_lines = port->whole_lines,
                                  .write_order = port->write_order,
                                  .cpu_atomics = port->cpu_atomics,
                                  .masked = port->masked};
    snprintf((char *)facts->device, sizeof(facts->device), "%.31s", port->name);
}

int verbs_offers_open(struct verbs *verbs, struct dm_err *err) {
    const struct dm_topology *topology = &verbs->rt.fabric->topology;
    for (unsigned node = 0; node < dm_first_cn(topology); node++) {
        if (!verbs->hosted[node]) {
            continue;
        }
        facts_begin(verbs_port_of(verbs, node), &verbs->facts[node]);
        DM_TRY(dram_offer(verbs, node, err));
        if (node < topology->mns && topology->chip_bytes > 0) {
            DM_TRY(chip_offer(verbs, node, err));
        }
    }
    return 0;
}

static void mr_close(struct ibv_mr *mr) {
    if (mr) {
        ibv_dereg_mr(mr);
    }
}

void verbs_offers_close(struct verbs *verbs) {
    for (unsigned node = 0; verbs->offers && node < verbs->rt.fabric->node_count; node++) {
        struct verbs_offer *offer = &verbs->offers[node];
        mr_close(offer->dram_mr);
        mr_close(offer->chip_mr);
        if (offer->chip_dm) {
            ibv_free_dm(offer->chip_dm);
        }
        dm_mapping_close(&offer->dram);
        dm_mapping_close(&offer->chip_dram);
    }
}

/* ---- the node's own CPU ----------------------------------------------------------------------------------------- */

/* A handler or background context runs where its node's memory is. */
static unsigned char *cpu_at(const struct dm_ctx *ctx, dm_addr addr) {
    return verbs_of(ctx->fabric)->offers[dm_addr_node(addr)].dram.base + dm_addr_offset(addr);
}

void verbs_cpu_read(struct dm_ctx *ctx, dm_addr src, void *dst, uint32_t len) {
    rt_bytes_load(cpu_at(ctx, src), dst, len);
}

void verbs_cpu_write(struct dm_ctx *ctx, dm_addr dst, const void *src, uint32_t len) {
    rt_bytes_store(cpu_at(ctx, dst), src, len);
}

uint64_t verbs_cpu_cas(struct dm_ctx *ctx, dm_addr addr, uint64_t expect, uint64_t desired) {
    return rt_word_cas(cpu_at(ctx, addr), expect, desired);
}
