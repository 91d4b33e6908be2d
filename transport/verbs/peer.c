/* SPDX-License-Identifier: Apache-2.0
 *
 * The control connection between the processes of a fabric.
 */
#include <stdio.h>
#include <string.h>

#include "transport/verbs/verbs.h"

int verbs_peers_plan(struct verbs *verbs, struct dm_err *err) {
    (void)err;
    for (unsigned node = 0; node < verbs->rt.fabric->node_count; node++) {
        verbs->hosted[node] = true;
    }
    return 0;
}

int verbs_peers_open(struct verbs *verbs, struct dm_err *err) {
    (void)verbs;
    (void)err;
    return 0;
}

void verbs_peers_close(struct verbs *verbs) {
    (void)verbs;
}

int verbs_peer_connect(struct verbs *verbs, unsigned node, unsigned caller, const struct verbs_end *ours,
                       struct verbs_end *theirs, struct dm_err *err) {
    (void)verbs;
    (void)caller;
    (void)ours;
    (void)theirs;
    return dm_fail(err, DM_ERR_PEER, "node %u", node);
}

const char *verbs_node_name(const struct verbs *verbs, unsigned node, char *text, size_t capacity) {
    const struct dm_topology *topology = &verbs->rt.fabric->topology;
    const char *kind = node < topology->mns           ? "memory node"
                       : node < dm_first_cn(topology) ? "index server"
                                                      : "compute node";
    snprintf(text, capacity, "%s %u", kind, node);
    return text;
}
