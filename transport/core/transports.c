/* SPDX-License-Identifier: Apache-2.0
 *
 * The list of transports, made from transports.def. It is above the transports: they never look at it.
 */
#include <string.h>

#include "transport/core/core.h"

#define DM_TRANSPORT(name) extern const struct dm_transport_ops dm_transport_##name;
#include "transport/transports.def"
#undef DM_TRANSPORT
#undef DM_TRANSPORT_ABSENT

static const struct dm_transport_ops *const transports[] = {
#define DM_TRANSPORT(name) &dm_transport_##name,
#include "transport/transports.def"
#undef DM_TRANSPORT
#undef DM_TRANSPORT_ABSENT
};

static const struct dm_transport_info *const infos[] = {
#define DM_TRANSPORT(name) &dm_transport_##name.info,
#include "transport/transports.def"
#undef DM_TRANSPORT
#undef DM_TRANSPORT_ABSENT
    NULL,
};

static const struct dm_transport_absence absent[] = {
#define DM_TRANSPORT_ABSENT(name, reason) {#name, reason},
#include "transport/transports.def"
#undef DM_TRANSPORT
#undef DM_TRANSPORT_ABSENT
    {NULL, NULL},
};

const struct dm_transport_absence *dm_transports_absent(void) {
    return absent;
}

const struct dm_transport_info *const *dm_transports(void) {
    return infos;
}

const struct dm_transport_ops *dm_transport_ops_find(const char *name) {
    for (size_t i = 0; i < DM_ARRAY_LEN(transports); i++) {
        if (strcmp(transports[i]->info.name, name) == 0) {
            return transports[i];
        }
    }
    return NULL;
}

const struct dm_transport_info *dm_transport_find(const char *name) {
    const struct dm_transport_ops *ops = dm_transport_ops_find(name);
    return ops ? &ops->info : NULL;
}

int dm_listen(const char *address, int *listener, char *text, size_t capacity, struct dm_err *err) {
    for (size_t i = 0; i < DM_ARRAY_LEN(transports); i++) {
        if (transports[i]->listen) {
            return transports[i]->listen(address, listener, text, capacity, err);
        }
    }
    return dm_fail(err, DM_ERR_UNSUPPORTED, "this program has no transport that runs in several processes");
}
