/* SPDX-License-Identifier: Apache-2.0
 *
 * A resolved configuration as dm_fabric_open takes it.
 */
#ifndef DM_HARNESS_RUN_FABRIC_SETTINGS_H
#define DM_HARNESS_RUN_FABRIC_SETTINGS_H

#include "harness/run/config_fields.h"

struct hx_fabric_settings {
    struct dm_fabric_config config; /* points into this struct and into the configuration */
    struct dm_setting *settings;
};

/* Fills `settings` from names and sizes that are resolved so far; the configuration must outlive it. */
int hx_fabric_settings_init(struct hx_fabric_settings *settings, const struct hx_config *config, struct dm_err *err);
void hx_fabric_settings_fini(struct hx_fabric_settings *settings);

/* Clients of one compute node, and the threads that they share. */
unsigned hx_cn_clients(const struct dm_topology *topology, unsigned cn);
unsigned hx_cn_threads(const struct dm_topology *topology, unsigned cn);

#endif
