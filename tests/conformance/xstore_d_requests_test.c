/* SPDX-License-Identifier: Apache-2.0
 *
 * XStore-D's calls as any client may send them: requests of a wrong size are refused, and models are added for exactly
 * the generation and number that a request names. And a trainer takes its share of a core.
 */
#include "common/compiler.h"
#include "conformance/quiet.h"
#include "indexes/xstore_d/layout.h"
#include "indexes/xstore_d/params.h"

extern const struct ix_ops ix_ops_xstore_d;

enum { KEYS = 2000, STEP = 2, RESPONSE = 8192 };

/* Sends a get that knows this sub-model; returns the reply's head and, in *bytes, the length of the whole. */
static struct xstore_reply get_send(struct dm_ctx *ctx, const struct xstore_known *known, uint32_t *bytes) {
    const struct xstore_get_request request = {.key = world_key(KEYS / 2, KEYS), .known = *known};
    char response[RESPONSE];
    struct xstore_reply reply;
    *bytes = sizeof(response);
    WORLD_CHECK_EQ(dm_call(ctx, 0, XSTORE_GET, &request, sizeof(request), response, bytes), 0);
    memcpy(&reply, response, sizeof(reply));
    WORLD_CHECK_EQ(reply.items, 1);
    return reply;
}

static int models_entry(struct dm_ctx *ctx, void *arg) {
    (void)arg;
    uint32_t bytes, more;
    const uint32_t alone = (uint32_t)sizeof(struct xstore_reply) + sizeof(uint64_t);
    struct xstore_known known = {.generation = 0};
    struct xstore_reply reply = get_send(ctx, &known, &bytes);
    WORLD_CHECK_EQ(reply.version, 0);
    WORLD_CHECK_EQ(bytes, alone);
    known.generation = reply.generation;
    reply = get_send(ctx, &known, &more);
    WORLD_CHECK(reply.version > 0);
    WORLD_CHECK(more >= alone + XSTORE_MODEL_BYTES);
    /* The version that it has already, a generation that is not the current one, and numbers that there are not. */
    known.version = reply.version;
    reply = get_send(ctx, &known, &bytes);
    WORLD_CHECK(reply.version == 0 && bytes == alone);
    static const uint32_t numbers[] = {1 << 16, UINT32_MAX};
    for (unsigned i = 0; i < DM_ARRAY_LEN(numbers); i++) {
        const struct xstore_known none = {.generation = known.generation, .number = numbers[i], .stale = 2};
        reply = get_send(ctx, &none, &bytes);
        WORLD_CHECK(reply.version == 0 && bytes == alone);
    }
    for (int step = -1; step <= 1; step += 2) {
        const struct xstore_known other = {.generation = known.generation + (uint32_t)step};
        reply = get_send(ctx, &other, &bytes);
        WORLD_CHECK(reply.version == 0 && bytes == alone);
        WORLD_CHECK_EQ(reply.generation, known.generation);
    }
    return 0;
}

static int sizes_entry(struct dm_ctx *ctx, void *arg) {
    (void)arg;
    static const struct {
        unsigned method;
        uint32_t bytes;
    } calls[] = {{XSTORE_GET, sizeof(struct xstore_get_request)}, {XSTORE_WALK, sizeof(struct xstore_walk_request)}};
    char request[RESPONSE] = {0}, response[RESPONSE];
    for (unsigned i = 0; i < DM_ARRAY_LEN(calls); i++) {
        for (int wrong = -1; wrong <= 1; wrong += 2) {
            uint32_t capacity = sizeof(response), bytes = calls[i].bytes + (uint32_t)wrong;
            WORLD_CHECK_EQ(dm_call(ctx, 0, calls[i].method, request, bytes, response, &capacity), DM_ERR_INVALID);
        }
        uint32_t little = sizeof(struct xstore_reply);
        WORLD_CHECK_EQ(dm_call(ctx, 0, calls[i].method, request, calls[i].bytes, response, &little), DM_ERR_INVALID);
    }
    return 0;
}

static void run(int (*entry)(struct dm_ctx *ctx, void *arg)) {
    struct world_config config = world_least(&ix_ops_xstore_d);
    struct world world;
    quiet_half_world(&world, &config, KEYS, entry, &world);
}

static void models_are_added_for_the_generation_and_number_of_the_request(void **state) {
    (void)state;
    run(models_entry);
}

static void requests_and_buffers_of_a_wrong_size_are_refused(void **state) {
    (void)state;
    run(sizes_entry);
}

/* ---- a trainer's share ------------------------------------------------------------------------------------------- */

struct training {
    struct world world;
    uint64_t calls;
};

/* Splits a leaf of each model, and gets what moved: those are calls of which the model is not trained yet. */
static int training_entry(struct dm_ctx *ctx, void *arg) {
    struct training *training = arg;
    struct ix_client client = world_attach(&training->world, 0, ctx, NULL);
    uint64_t value = 1;
    for (unsigned pass = 0; pass < 4; pass++) {
        struct kind get = {0};
        for (unsigned i = 1; i < KEYS; i += 8 * STEP) {
            if (pass == 0) {
                WORLD_CHECK_EQ(ix_insert(&client, world_key(i, KEYS), &value), 0);
            }
            for (unsigned next = 1; next < 4 * STEP; next += STEP) {
                WORLD_CHECK_EQ(kind_run(ctx, &get, &client, GET, world_key(i + next, KEYS), &value), 0);
            }
        }
        training->calls += get.account.verbs[DM_VERB_CALL];
    }
    ix_detach(&client);
    return 0;
}

static uint64_t training_calls(const char *share) {
    struct world_config config = world_least(&ix_ops_xstore_d);
    struct training training = {.calls = 0};
    config.params[0] = (struct dm_setting){"trainer_share", share};
    config.params[1] = (struct dm_setting){"slots", "4"};
    config.params[2] = (struct dm_setting){"fill", "1"};
    config.params[3] = (struct dm_setting){"keys_per_model", "16"};
    quiet_half_world(&training.world, &config, KEYS, training_entry, &training);
    return training.calls;
}

static void a_trainer_with_a_small_share_of_a_core_takes_longer(void **state) {
    (void)state;
    uint64_t all = training_calls("1"), little = training_calls("0.01");
    print_message("%u gets are calls with a core, %u with a hundredth\n", (unsigned)all, (unsigned)little);
    assert_true(little > 2 * all);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(models_are_added_for_the_generation_and_number_of_the_request),
        cmocka_unit_test(requests_and_buffers_of_a_wrong_size_are_refused),
        cmocka_unit_test(a_trainer_with_a_small_share_of_a_core_takes_longer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
