/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes a fabric's configuration: topology, seed, and the transport's options as text.
 */
#include "harness/run/fabric_settings.h"

#include <stdlib.h>

/* The option's value as text that the caller frees; NULL when out of memory. */
static char *option_text(const struct dm_opt *row, const void *values) {
    size_t capacity = (size_t)dm_opt_format(row, values, NULL, 0) + 1;
    char *text = malloc(capacity);
    if (text) {
        dm_opt_format(row, values, text, capacity);
    }
    return text;
}

static int settings_fill(struct hx_fabric_settings *settings, const struct hx_config *config, size_t count) {
    settings->settings = calloc(count + 1, sizeof(*settings->settings));
    if (!settings->settings) {
        return DM_ERR_NO_MEMORY;
    }
    for (size_t i = 0; i < count; i++) {
        const struct dm_opt *row = &config->transport->options[i];
        settings->settings[i] = (struct dm_setting){row->name, option_text(row, config->transport_options)};
        if (!settings->settings[i].value) {
            return DM_ERR_NO_MEMORY;
        }
        settings->config.setting_count++;
    }
    settings->config.settings = settings->settings;
    return 0;
}

int hx_fabric_settings_init(struct hx_fabric_settings *settings, const struct hx_config *config, struct dm_err *err) {
    const struct hx_settings *run = &config->run;
    *settings = (struct hx_fabric_settings){
        .config = {.transport = config->transport->name,
                   .profile = (config->transport->caps & DM_CAP_PROFILE) ? run->profile : NULL,
                   .topology = config->topology,
                   .seed = run->seed,
                   .chunk_bytes = (uint32_t)run->chunk_bytes,
                   .retry_limit = (uint32_t)run->retry_limit},
    };
    size_t count = 0;
    while (config->transport->options && config->transport->options[count].name) {
        count++;
    }
    if (settings_fill(settings, config, count) < 0) {
        hx_fabric_settings_fini(settings);
        return dm_fail(err, DM_ERR_NO_MEMORY, "out of memory");
    }
    return 0;
}

void hx_fabric_settings_fini(struct hx_fabric_settings *settings) {
    for (size_t i = 0; i < settings->config.setting_count; i++) {
        free((char *)(uintptr_t)settings->settings[i].value);
    }
    free(settings->settings);
    *settings = (struct hx_fabric_settings){0};
}

unsigned hx_cn_clients(const struct dm_topology *topology, unsigned cn) {
    return topology->clients / topology->cns + (cn < topology->clients % topology->cns ? 1 : 0);
}

unsigned hx_cn_threads(const struct dm_topology *topology, unsigned cn) {
    unsigned clients = hx_cn_clients(topology, cn);
    return (clients + topology->clients_per_thread - 1) / topology->clients_per_thread;
}
