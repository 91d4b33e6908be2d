/* SPDX-License-Identifier: Apache-2.0
 *
 * Local lock queues: an access to one costs what the table of them makes it cost.
 */
#include "indexes/shared/lock_queue.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "unit/transport/fake_transport.h"

static uint64_t accessed(size_t queues) {
    struct fake *fake = fake_new(0);
    struct dm_ctx *ctx = &fake->contexts[0];
    struct ix_queues *table = ix_queues_open(queues);
    struct ix_queue *queue = ix_queues_at(table, queues - 1);
    assert_int_equal(ix_queue_enter(ctx, queue), 0);
    ix_queue_leave(ctx, queue);
    uint64_t bytes = fake->accessed_bytes;
    ix_queues_close(table);
    fake_free(fake);
    return bytes;
}

static void an_access_is_charged_by_the_bytes_of_the_table(void **state) {
    (void)state;
    uint64_t each = accessed(1);
    assert_true(each >= 16 && each <= 64);
    assert_int_equal(accessed(IX_QUEUES), IX_QUEUES * each);
    assert_int_equal(accessed(131072), 131072 * each);
}

static void without_a_table_nothing_is_charged(void **state) {
    (void)state;
    struct fake *fake = fake_new(0);
    assert_int_equal(ix_queue_enter(&fake->contexts[0], ix_queues_find(NULL, dm_addr_make(0, DM_DRAM, 4096))), 0);
    assert_int_equal(fake->accessed_bytes, 0);
    fake_free(fake);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_access_is_charged_by_the_bytes_of_the_table),
        cmocka_unit_test(without_a_table_nothing_is_charged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
