/* SPDX-License-Identifier: Apache-2.0
 *
 * The first failure of a fabric, kept as a message for the run's error, and the names of nodes in errors.
 */
#include <stdarg.h>
#include <stdio.h>

#include "transport/verbs/verbs.h"

void verbs_failure_note(struct verbs *verbs, int code, const char *format, ...) {
    if (verbs->rt.fabric->stop && code == DM_ERR_STOPPED) {
        return;
    }
    va_list args;
    va_start(args, format);
    pthread_mutex_lock(&verbs->failure_lock);
    if (!atomic_load(&verbs->has_failed)) {
        verbs->failure_code = code;
        vsnprintf(verbs->failure, sizeof(verbs->failure), format, args);
        atomic_store(&verbs->has_failed, true);
    }
    pthread_mutex_unlock(&verbs->failure_lock);
    va_end(args);
}

bool verbs_has_ended(const struct verbs *verbs, unsigned node) {
    return verbs->control && atomic_load(&verbs->control->is_gone[node]);
}

const char *verbs_node_name(const struct verbs *verbs, unsigned node, char *text, size_t capacity) {
    const struct dm_topology *topology = &verbs->rt.fabric->topology;
    bool is_memory = node < topology->mns, is_server = !is_memory && node < dm_first_cn(topology);
    const char *kind = is_memory ? "memory node" : is_server ? "index server" : "compute node";
    const struct dm_processes *processes = verbs->control ? verbs->control->processes : NULL;
    bool is_remote = processes && !processes->hosted[node] && processes->addresses && node < dm_first_cn(topology);
    if (is_remote && processes->addresses[node]) {
        snprintf(text, capacity, "%s %u (%s)", kind, node, processes->addresses[node]);
    } else {
        snprintf(text, capacity, "%s %u", kind, node);
    }
    return text;
}
