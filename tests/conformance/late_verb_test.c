/* SPDX-License-Identifier: Apache-2.0
 *
 * Every index stays right whichever verb of a write is late, and whichever is the last one before its client pauses.
 * Where an index says that reads continue after a client has stopped, its reads continue after every verb.
 */
#include "conformance/index_late.h"

#include "common/compiler.h"

/* Beside indexes that survive clients which stop: readers of these never wait for a writer. */
static const char *const reads_continue[] = {"marlin", "sherman", "smart"};

static bool promises_reads(const struct ix_ops *ops) {
    bool promised = ops->caps & IX_CAP_CLIENT_STOP;
    for (unsigned i = 0; i < DM_ARRAY_LEN(reads_continue); i++) {
        promised = promised || strcmp(ops->name, reads_continue[i]) == 0;
    }
    return promised;
}

static void any_verb_of_a_write_may_be_late(void **state) {
    (void)state;
    for (const struct ix_ops *const *ops = ix_all(); *ops; ops++) {
        if (!((*ops)->caps & IX_CAP_NO_DATA)) {
            late_all_right(world_least(*ops), LATE_CLASSES, promises_reads(*ops));
        }
    }
}

/* Values in blocks of their own are written before the entries that name them. */
static void values_in_blocks_are_there_whichever_verb_is_late(void **state) {
    (void)state;
    static const char *const indexes[] = {"sherman", "fg", "chime"};
    for (unsigned i = 0; i < DM_ARRAY_LEN(indexes); i++) {
        struct world_config config = world_least(ix_find(indexes[i]));
        config.params[0] = (struct dm_setting){"values", "indirect"};
        late_all_right(config, LATE_CLASSES, promises_reads(config.ops));
    }
}

/* From one leaf to several levels. */
static void any_verb_may_be_late_while_a_tree_gets_its_levels(void **state) {
    (void)state;
    static const char *const indexes[] = {"sherman", "fg", "chime", "marlin", "dolphin"};
    for (unsigned i = 0; i < DM_ARRAY_LEN(indexes); i++) {
        struct world_config config = world_least(ix_find(indexes[i]));
        late_all_right(config, LATE_KEYS, promises_reads(config.ops));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_verb_of_a_write_may_be_late),
        cmocka_unit_test(any_verb_may_be_late_while_a_tree_gets_its_levels),
        cmocka_unit_test(values_in_blocks_are_there_whichever_verb_is_late),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
