/* SPDX-License-Identifier: Apache-2.0
 *
 * Which devices, ports and addresses are used. What the options leave open is chosen: the first device with an active
 * port, and of the port's addresses the one that other hosts can most likely reach.
 */
#include <errno.h>
#include <string.h>

#include "transport/verbs/verbs.h"

enum {
    GATHER_SOFTWARE = 8, /* where a doorbell is a system call */
    GIDS_MAX = 256,
    READS_MAX = 16, /* outstanding reads and atomics of a connection, where the device can do more */
};

/* ---- addresses -------------------------------------------------------------------------------------------------- */

static bool is_ipv4(const union ibv_gid *gid) {
    static const uint8_t prefix[12] = {[10] = 0xff, [11] = 0xff};
    return memcmp(gid->raw, prefix, sizeof(prefix)) == 0;
}

static bool is_link_local(const union ibv_gid *gid) {
    return gid->raw[0] == 0xfe && (gid->raw[1] & 0xc0) == 0x80;
}

/* Routable before local, version 2 of RoCE before version 1. */
static int gid_rank(const struct ibv_gid_entry *entry, bool is_ethernet) {
    if (!is_ethernet) {
        return entry->gid_type == IBV_GID_TYPE_IB ? 1 : 0;
    }
    if (entry->gid_type == IBV_GID_TYPE_ROCE_V2) {
        return is_ipv4(&entry->gid) ? 4 : is_link_local(&entry->gid) ? 2 : 3;
    }
    return entry->gid_type == IBV_GID_TYPE_ROCE_V1 ? 1 : 0;
}

int verbs_gid_choose(const struct ibv_gid_entry *entries, size_t count, bool is_ethernet) {
    int best = -1, best_rank = 0;
    for (size_t i = 0; i < count; i++) {
        int rank = gid_rank(&entries[i], is_ethernet);
        if (rank > best_rank) {
            best = (int)i;
            best_rank = rank;
        }
    }
    return best;
}

static int gid_open(const struct verbs *verbs, struct verbs_port *port, bool is_ethernet, struct dm_err *err) {
    struct ibv_gid_entry entries[GIDS_MAX], own[GIDS_MAX];
    ssize_t all = ibv_query_gid_table(port->device, entries, GIDS_MAX, 0);
    size_t count = 0;
    for (ssize_t i = 0; i < all; i++) {
        if (entries[i].port_num == port->number) {
            own[count++] = entries[i];
        }
    }
    uint64_t wanted = verbs->options->gid;
    int chosen = -1;
    for (size_t i = 0; wanted > 0 && i < count; i++) {
        chosen = own[i].gid_index == wanted - 1 ? (int)i : chosen;
    }
    chosen = wanted == 0 ? verbs_gid_choose(own, count, is_ethernet) : chosen;
    if (chosen < 0) {
        return dm_fail(err, DM_ERR_INVALID,
                       "verbs: device %s, port %u has no %s address (GID); `ibv_devinfo -v` shows those it has",
                       port->name, port->number, wanted > 0 ? "such" : "usable");
    }
    port->gid = own[chosen].gid;
    port->gid_index = (uint8_t)own[chosen].gid_index;
    return 0;
}

/* ---- ports ------------------------------------------------------------------------------------------------------ */

static enum ibv_mtu mtu_of(uint64_t bytes, enum ibv_mtu active) {
    static const uint64_t sizes[] = {256, 512, 1024, 2048, 4096};
    for (size_t i = 0; i < DM_ARRAY_LEN(sizes); i++) {
        if (sizes[i] == bytes && (enum ibv_mtu)(i + 1) < active) {
            return (enum ibv_mtu)(i + 1);
        }
    }
    return active;
}

static int port_query(const struct verbs *verbs, struct verbs_port *port, struct dm_err *err) {
    struct ibv_port_attr attr;
    uint64_t wanted = verbs->options->port;
    if (wanted > port->attr.phys_port_cnt) {
        return dm_fail(err, DM_ERR_INVALID, "verbs: device %s has %u ports, none of number %llu", port->name,
                       port->attr.phys_port_cnt, (unsigned long long)wanted);
    }
    uint8_t first = wanted ? (uint8_t)wanted : 1, last = wanted ? (uint8_t)wanted : port->attr.phys_port_cnt;
    for (uint8_t number = first; number <= last; number++) {
        if (ibv_query_port(port->device, number, &attr) == 0 && attr.state == IBV_PORT_ACTIVE) {
            bool is_ethernet = attr.link_layer == IBV_LINK_LAYER_ETHERNET;
            port->number = number;
            port->lid = attr.lid;
            port->is_global = is_ethernet || attr.lid == 0 || (attr.flags & IBV_QPF_GRH_REQUIRED);
            port->is_roce = is_ethernet;
            port->mtu = mtu_of(verbs->options->mtu, attr.active_mtu);
            return gid_open(verbs, port, is_ethernet, err);
        }
    }
    return dm_fail(err, DM_ERR_IO, "verbs: device %s has no active port%s; is the link up?", port->name,
                   wanted ? " of that number" : "");
}

static int port_open(const struct verbs *verbs, struct ibv_device *device, struct verbs_port *port,
                     struct dm_err *err) {
    snprintf(port->name, sizeof(port->name), "%s", ibv_get_device_name(device));
    port->device = ibv_open_device(device);
    if (!port->device) {
        return dm_fail(err, DM_ERR_IO, "verbs: cannot open device %s: %s", port->name, strerror(errno));
    }
    enum { VENDOR_SOFTWARE = 0xffffff };
    struct ibv_device_attr_ex attr = {0};
    if (ibv_query_device(port->device, &port->attr) != 0) {
        return dm_fail(err, DM_ERR_IO, "verbs: cannot query device %s", port->name);
    }
    port->is_software = port->attr.vendor_id == VENDOR_SOFTWARE;
    if (ibv_query_device_ex(port->device, NULL, &attr) == 0) {
        port->chip_bytes = attr.max_dm_size;
    }
    port->pd = ibv_alloc_pd(port->device);
    if (!port->pd) {
        return dm_fail(err, DM_ERR_IO, "verbs: device %s cannot create a protection domain: %s", port->name,
                       strerror(errno));
    }
    return port_query(verbs, port, err);
}

static void port_close(struct verbs_port *port) {
    if (port->pd) {
        ibv_dealloc_pd(port->pd);
    }
    if (port->device) {
        ibv_close_device(port->device);
    }
    *port = (struct verbs_port){0};
}

/* The device of that name, or with an empty name the first that opens with an active port. */
static int port_find(struct verbs *verbs, const char *name, struct verbs_port *port, struct dm_err *err) {
    int count = 0;
    struct ibv_device **devices = ibv_get_device_list(&count);
    if (!devices || count == 0) {
        if (devices) { /* the library does not accept the NULL that it returns where the kernel has no RDMA */
            ibv_free_device_list(devices);
        }
        return dm_fail(err, DM_ERR_IO,
                       "verbs: no RDMA device here (`ibv_devices` lists them); software RoCE makes one: "
                       "rdma link add rxe0 type rxe netdev NAME");
    }
    int rc = DM_ERR_INVALID;
    dm_fail(err, rc, "verbs: no device '%.60s' here; `ibv_devices` lists %d", name, count);
    for (int i = 0; i < count && rc < 0; i++) {
        if (name[0] == '\0' || strcmp(name, ibv_get_device_name(devices[i])) == 0) {
            rc = port_open(verbs, devices[i], port, err);
            if (rc < 0) {
                port_close(port);
            }
        }
    }
    ibv_free_device_list(devices);
    return rc;
}

int verbs_ports_open(struct verbs *verbs, struct dm_err *err) {
    const struct verbs_options *options = verbs->options;
    DM_TRY(port_find(verbs, options->device, &verbs->ports[0], err));
    verbs->port_count = 1;
    if (options->mn_device[0] && strcmp(options->mn_device, verbs->ports[0].name) != 0) {
        DM_TRY(port_find(verbs, options->mn_device, &verbs->ports[1], err));
        verbs->port_count = 2;
    }
    bool has_software = verbs->ports[0].is_software || verbs->ports[1].is_software;
    verbs->gather = options->gather > 0 ? options->gather : has_software ? GATHER_SOFTWARE : 1;
    verbs->posts_alone = options->order == VERBS_ORDER_ALONE;
    verbs->waits_for_order = options->order == VERBS_ORDER_WAIT || verbs->posts_alone ||
                             (options->order == VERBS_ORDER_EITHER && has_software);
    return 0;
}

void verbs_ports_close(struct verbs *verbs) {
    for (unsigned i = 0; i < VERBS_PORTS; i++) {
        port_close(&verbs->ports[i]);
    }
}

struct verbs_port *verbs_port_of(struct verbs *verbs, unsigned node) {
    bool is_cn = node >= dm_first_cn(&verbs->rt.fabric->topology);
    return &verbs->ports[is_cn ? 0 : verbs->port_count - 1];
}

enum ibv_mtu verbs_mtu_of(const struct verbs_port *port, uint8_t theirs, enum ibv_mtu path) {
    enum ibv_mtu own = port->mtu < path ? port->mtu : path;
    return theirs < (uint8_t)own ? (enum ibv_mtu)theirs : own;
}

unsigned verbs_ends_max(const struct dm_fabric *fabric) {
    unsigned count = 0;
    for (unsigned node = 0; node < fabric->node_count; node++) {
        count += fabric->nodes[node].thread_count;
    }
    return count;
}

uint8_t verbs_reads_at_once(const struct verbs_port *port) {
    int can = port->attr.max_qp_rd_atom < port->attr.max_qp_init_rd_atom ? port->attr.max_qp_rd_atom
                                                                         : port->attr.max_qp_init_rd_atom;
    return (uint8_t)(can < 1 ? 1 : can < READS_MAX ? can : READS_MAX);
}
