/* SPDX-License-Identifier: Apache-2.0
 *
 * A loaded fabric for another number of clients: what it has then, and what it refuses.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "unit/transport/sim_world.h"

enum { BACKGROUNDS = 7, ON_THREADS = 48 };

static void note_thread(struct dm_ctx *ctx, void *arg) {
    unsigned *threads = arg;
    threads[dm_thread(ctx)]++;
}

static void allocate(struct dm_ctx *ctx, void *arg) {
    uint64_t *word = arg;
    dm_addr addr;
    assert_int_equal(dm_alloc(ctx, 0, 1 << 18, DM_LINE, DM_MEM_LEAF, &addr), 0);
    assert_int_equal(dm_read(ctx, addr, word, sizeof(*word)), 0);
}

static void end_at_once(struct dm_ctx *ctx, void *arg) {
    (void)ctx;
    (void)arg;
}

static void open_for(struct world *world, unsigned clients, unsigned per_thread, const char *same_host) {
    *world =
        (struct world){.profile = "cx6-200g-shared", .mns = 2, .cns = 2, .clients = clients, .per_thread = per_thread};
    world_set(world, "cn_cores", "24");
    world_set(world, "nics", "2");
    world_set(world, "same_host", same_host);
    assert_int_equal(world_try_open(world), 0);
}

static void assert_same_node(const struct world *resized, const struct world *opened, unsigned node) {
    const struct sim *sim = sim_of(resized->fabric), *other = sim_of(opened->fabric);
    const struct dm_node_state *state = &resized->fabric->nodes[node];
    assert_int_equal(state->thread_count, opened->fabric->nodes[node].thread_count);
    assert_int_equal(state->bytes, opened->fabric->nodes[node].bytes);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(sim->nodes[node].nics[i].queue_pairs, other->nodes[node].nics[i].queue_pairs);
        assert_int_equal(sim->nodes[node].nics[i].factor_1024, other->nodes[node].nics[i].factor_1024);
    }
    assert_int_equal(sim->nodes[node].registers != NULL, other->nodes[node].registers != NULL);
    for (unsigned i = 0; i < state->thread_count; i++) {
        const struct sim_thread *thread = (const struct sim_thread *)state->threads[i];
        const struct sim_thread *same = (const struct sim_thread *)opened->fabric->nodes[node].threads[i];
        assert_int_equal(thread->work_1024, same->work_1024);
        assert_int_equal(thread->rings != NULL, same->rings != NULL);
    }
}

static void resize(struct world *world, unsigned clients, unsigned per_thread) {
    assert_int_equal(dm_fabric_resize(world->fabric, clients, per_thread, 1 << 22, &world->err), 0);
}

/* 48 threads a compute node share cores and doorbell registers, 24 and 3 do not share cores. */
static void resized_nodes_are_as_if_opened_so(void **state) {
    (void)state;
    static const struct { unsigned clients, per_thread; } sizes[] = {{96, 1}, {48, 1}, {6, 1}, {7, 2}, {96, 4}};
    static const char *const hosts[] = {"off", "on"};
    for (unsigned host = 0; host < 2; host++) {
        struct world resized;
        open_for(&resized, 96, 1, hosts[host]);
        for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
            struct world opened;
            open_for(&opened, sizes[i].clients, sizes[i].per_thread, hosts[host]);
            resize(&resized, sizes[i].clients, sizes[i].per_thread);
            for (unsigned node = 0; node < 4; node++) {
                assert_same_node(&resized, &opened, node);
            }
            world_close(&opened);
        }
        world_close(&resized);
    }
}

static void background_of(struct world *world, unsigned resized_to, unsigned threads[ON_THREADS]) {
    memset(threads, 0, ON_THREADS * sizeof(*threads));
    for (unsigned i = 0; i < BACKGROUNDS; i++) {
        assert_int_equal(dm_spawn_background(world->fabric, 2, note_thread, threads), 0);
    }
    if (resized_to > 0) {
        resize(world, resized_to, 1);
    }
    dm_fabric_measure(world->fabric);
    world_spawn(world, 0, end_at_once, NULL);
    world_run(world);
    world_close(world);
}

static void background_contexts_take_turns_at_the_threads_that_are_left(void **state) {
    (void)state;
    struct world world;
    unsigned resized[ON_THREADS], opened[ON_THREADS];
    open_for(&world, 96, 1, "off");
    background_of(&world, 6, resized);
    open_for(&world, 6, 1, "off");
    background_of(&world, 0, opened);
    assert_int_equal(opened[0] + opened[1] + opened[2], BACKGROUNDS);
    assert_memory_equal(resized, opened, sizeof(opened));
}

static void what_cannot_be_is_refused(void **state) {
    (void)state;
    uint64_t word;
    struct world world;
    open_for(&world, 8, 1, "off");
    assert_int_equal(dm_fabric_resize(world.fabric, 10, 1, 1 << 22, &world.err), DM_ERR_INVALID);
    assert_non_null(strstr(world.err.text, "was opened with 4"));
    resize(&world, 16, 2);
    world_spawn(&world, 7, allocate, &word);
    world_run(&world);
    assert_int_equal(dm_fabric_resize(world.fabric, 4, 2, 1 << 22, &world.err), DM_ERR_INVALID);
    assert_non_null(strstr(world.err.text, "has worked"));
    assert_int_equal(dm_fabric_resize(world.fabric, 16, 2, 1 << 17, &world.err), DM_ERR_NO_MEMORY);
    assert_int_equal(dm_fabric_topology(world.fabric)->clients, 16);
    dm_fabric_measure(world.fabric);
    assert_int_equal(dm_fabric_resize(world.fabric, 16, 2, 1 << 22, &world.err), DM_ERR_UNSUPPORTED);
    world_close(&world);
}

static void real_transports_refuse(void **state) {
    (void)state;
    struct dm_fabric *fabric = NULL;
    struct dm_err err = {.text = ""};
    const struct dm_fabric_config config = {
        .transport = "local",
        .topology = {.mns = 1, .cns = 1, .mn_cores = 1, .clients = 2, .clients_per_thread = 1, .mn_bytes = 1 << 22}};
    assert_int_equal(dm_fabric_open(&config, &fabric, &err), 0);
    assert_int_equal(dm_fabric_resize(fabric, 1, 1, 1 << 22, &err), DM_ERR_UNSUPPORTED);
    dm_fabric_close(fabric);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(resized_nodes_are_as_if_opened_so),
        cmocka_unit_test(background_contexts_take_turns_at_the_threads_that_are_left),
        cmocka_unit_test(what_cannot_be_is_refused),
        cmocka_unit_test(real_transports_refuse),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
