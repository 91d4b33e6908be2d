/* SPDX-License-Identifier: Apache-2.0
 *
 * Output of trainings: tables, results of points, and curves.
 */
#ifndef DM_HARNESS_LAB_TRAIN_OUTPUT_H
#define DM_HARNESS_LAB_TRAIN_OUTPUT_H

#include "harness/lab/train.h"
#include "harness/points/training.h"

/* A table on stdout. */
void hx_train_print(const struct hx_training *training, uint64_t keys, const struct hx_train_row *rows, uint32_t count);

/* The same as JSON. */
int hx_train_print_json(const struct hx_training *training, uint64_t keys, const struct hx_train_row *rows,
                        uint32_t count);

/* Writes the result of a point: one row of each kind. */
int hx_train_store(const struct hx_training *training, uint64_t keys, const struct hx_train_row *rows, uint32_t count,
                   const char *path, struct dm_err *err);

/* Writes train-segments and train-error, data and gnuplot program each, into a folder, which is made. */
int hx_train_write_curves(const struct hx_train_row *rows, uint32_t count, const char *title, const char *folder,
                          struct dm_err *err);

#endif
