/* SPDX-License-Identifier: Apache-2.0
 *
 * A simulated fabric for tests that drive it with contexts of their own. Include after cmocka.h.
 */
#ifndef DM_TESTS_SIM_WORLD_H
#define DM_TESTS_SIM_WORLD_H

#include <string.h>

#include "transport/sim/sim.h"

enum { WORLD_SETTINGS_MAX = 8 };

struct world {
    const char *profile;
    unsigned mns, cns, clients, per_thread, mn_cores;
    bool emulates_masked;
    uint64_t seed;
    struct dm_setting settings[WORLD_SETTINGS_MAX];
    size_t setting_count;
    struct dm_fabric *fabric;
    struct dm_err err;
};

static inline unsigned world_or(unsigned value, unsigned otherwise) {
    return value ? value : otherwise;
}

static inline int world_try_open(struct world *world) {
    struct dm_fabric_config config = {.transport = "sim",
                                      .profile = world->profile ? world->profile : "cx6-100g",
                                      .seed = world->seed ? world->seed : 1,
                                      .emulates_masked = world->emulates_masked,
                                      .topology = {.mns = world_or(world->mns, 1),
                                                   .cns = world_or(world->cns, 1),
                                                   .mn_cores = world_or(world->mn_cores, 1),
                                                   .clients = world_or(world->clients, 1),
                                                   .clients_per_thread = world_or(world->per_thread, 1),
                                                   .mn_bytes = 1 << 22,
                                                   .chip_bytes = 1 << 16},
                                      .settings = world->settings,
                                      .setting_count = world->setting_count};
    return dm_fabric_open(&config, &world->fabric, &world->err);
}

static inline void world_set(struct world *world, const char *name, const char *value) {
    assert_true(world->setting_count < WORLD_SETTINGS_MAX);
    world->settings[world->setting_count++] = (struct dm_setting){name, value};
}

/* Opens and begins to measure. */
static inline void world_open(struct world *world) {
    if (world_try_open(world) < 0) {
        fail_msg("%s", world->err.text);
    }
    dm_fabric_measure(world->fabric);
}

/* Client i on its thread of compute node i % cns. */
static inline void world_spawn(struct world *world, unsigned client, void (*entry)(struct dm_ctx *ctx, void *arg),
                               void *arg) {
    unsigned cns = world_or(world->cns, 1), first = dm_first_cn(dm_fabric_topology(world->fabric));
    unsigned thread = client / cns / world_or(world->per_thread, 1);
    assert_int_equal(dm_spawn(world->fabric, first + client % cns, thread, entry, arg), 0);
}

static inline void world_run(struct world *world) {
    if (dm_fabric_run(world->fabric, &world->err) < 0) {
        fail_msg("%s", world->err.text);
    }
}

static inline void world_close(struct world *world) {
    dm_fabric_close(world->fabric);
    world->fabric = NULL;
}

static inline uint64_t world_ns(const struct world *world) {
    const struct sim *sim = sim_of(world->fabric);
    return (sim->now - sim->base) / 1000;
}

/* DRAM of a memory node as it is now. */
static inline uint64_t world_word(const struct world *world, unsigned node, uint64_t offset) {
    uint64_t word;
    sim_bytes_read(&sim_of(world->fabric)->nodes[node].dram.bytes, offset, &word, sizeof(word));
    return word;
}

#endif
