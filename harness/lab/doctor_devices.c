/* SPDX-License-Identifier: Apache-2.0
 *
 * RDMA devices as the kernel lists them, without libibverbs: a program that was built without the transport verbs
 * reports them, too. Which address the transport would choose is decided as in transport/verbs/device.c.
 */
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/lab/doctor_host.h"

enum {
    GIDS_MAX = 256,
    PKEYS_MAX = 128,
    HEADERS_BYTES = 96, /* that RoCE needs of a frame, as the kernel counts */
};

static const char topic[] = "devices";
static const char class_folder[] = "/sys/class/infiniband";

struct gid {
    unsigned index;
    char text[INET6_ADDRSTRLEN], type[32], link[32];
    int rank; /* the greatest is chosen; 0: never */
};

/* ---- addresses -------------------------------------------------------------------------------------------------- */

/* The kernel writes all digits of all 16 bytes. False for an entry that is not in use. */
static bool gid_parse(const char *text, uint8_t raw[16]) {
    bool is_used = false;
    for (unsigned i = 0; i < 16; i++) {
        char digits[3] = {text[0], text[0] ? text[1] : '\0', '\0'};
        char *end = NULL;
        raw[i] = (uint8_t)strtoul(digits, &end, 16);
        if (end != digits + 2) {
            return false;
        }
        is_used = is_used || raw[i] != 0;
        text += 2 + (i % 2 == 1 && text[2] == ':');
    }
    return is_used;
}

static int gid_rank(const uint8_t raw[16], const char *type, bool is_ethernet) {
    static const uint8_t ipv4[12] = {[10] = 0xff, [11] = 0xff};
    if (!is_ethernet || strcmp(type, "RoCE v2") != 0) {
        return 1;
    }
    bool is_local = raw[0] == 0xfe && (raw[1] & 0xc0) == 0x80;
    return memcmp(raw, ipv4, sizeof(ipv4)) == 0 ? 4 : is_local ? 2 : 3;
}

static bool gid_read(const struct hx_doctor *doctor, const char *device, unsigned port, unsigned index,
                     bool is_ethernet, struct gid *gid) {
    char text[64];
    uint8_t raw[16];
    if (!hx_host_read(doctor, text, sizeof(text), "%s/%s/ports/%u/gids/%u", class_folder, device, port, index) ||
        !gid_parse(text, raw)) {
        return false;
    }
    gid->index = index;
    hx_host_read(doctor, gid->type, sizeof(gid->type), "%s/%s/ports/%u/gid_attrs/types/%u", class_folder, device, port,
                 index);
    hx_host_read(doctor, gid->link, sizeof(gid->link), "%s/%s/ports/%u/gid_attrs/ndevs/%u", class_folder, device, port,
                 index);
    gid->rank = gid_rank(raw, gid->type, is_ethernet);
    return inet_ntop(AF_INET6, raw, gid->text, sizeof(gid->text)) != NULL;
}

/* The address that the transport would choose; false if there is none. */
static bool gid_choose(const struct hx_doctor *doctor, const char *device, unsigned port, bool is_ethernet,
                       struct gid *best) {
    struct gid gid;
    best->rank = 0;
    for (unsigned i = 0; i < GIDS_MAX; i++) {
        if (gid_read(doctor, device, port, i, is_ethernet, &gid) && gid.rank > best->rank) {
            *best = gid;
        }
    }
    return best->rank > 0;
}

/* ---- ports ------------------------------------------------------------------------------------------------------ */

static bool port_is_ethernet(const struct hx_doctor *doctor, const char *device, unsigned port) {
    char text[64];
    hx_host_read(doctor, text, sizeof(text), "%s/%s/ports/%u/link_layer", class_folder, device, port);
    return strcmp(text, "Ethernet") == 0;
}

static bool port_is_active(const struct hx_doctor *doctor, const char *device, unsigned port) {
    char text[64];
    return hx_host_read(doctor, text, sizeof(text), "%s/%s/ports/%u/state", class_folder, device, port) &&
           strstr(text, "ACTIVE") != NULL;
}

static struct hx_finding *port_add(struct hx_doctor *doctor, enum hx_finding_status status, const char *name,
                                   const char *device, unsigned port, const char *found) {
    struct hx_finding *finding = hx_finding_add(doctor, status, topic, name, "%s", found);
    snprintf(finding->subject, sizeof(finding->subject), "%.48s/%u", device, port);
    return finding;
}

static void look_at_state(struct hx_doctor *doctor, const char *device, unsigned port) {
    char state[64], physical[64], rate[64], layer[64], found[HX_HOST_TEXT];
    const char *folder = class_folder;
    hx_host_read(doctor, state, sizeof(state), "%s/%s/ports/%u/state", folder, device, port);
    hx_host_read(doctor, physical, sizeof(physical), "%s/%s/ports/%u/phys_state", folder, device, port);
    hx_host_read(doctor, rate, sizeof(rate), "%s/%s/ports/%u/rate", folder, device, port);
    hx_host_read(doctor, layer, sizeof(layer), "%s/%s/ports/%u/link_layer", folder, device, port);
    /* "4: ACTIVE" */
    const char *word = strchr(state, ' '), *cause = strchr(physical, ' ');
    snprintf(found, sizeof(found), "%s (%s), %s, %s", word ? word + 1 : state, cause ? cause + 1 : physical, layer,
             rate);
    if (port_is_active(doctor, device, port)) {
        port_add(doctor, HX_FINDING_OK, "port", device, port, found);
    } else {
        hx_finding_advise(port_add(doctor, HX_FINDING_WARNING, "port", device, port, found),
                          "a cable, the switch, ip link set DEVICE up, or on InfiniBand a subnet manager; `rdma link` "
                          "shows the links");
    }
}

static void look_at_gids(struct hx_doctor *doctor, const char *device, unsigned port) {
    bool is_ethernet = port_is_ethernet(doctor, device, port);
    struct gid best, gid;
    if (!gid_choose(doctor, device, port, is_ethernet, &best)) {
        hx_finding_advise(port_add(doctor, HX_FINDING_WARNING, "GIDs", device, port, "none: no address to connect to"),
                          "ip address add ADDRESS dev LINK, and ip link set LINK up");
        return;
    }
    for (unsigned i = 0; i < GIDS_MAX; i++) {
        char found[HX_HOST_TEXT];
        if (gid_read(doctor, device, port, i, is_ethernet, &gid)) {
            snprintf(found, sizeof(found), "gid=%u: %s, %s%s%s%s", i + 1, gid.text,
                     is_ethernet ? gid.type : "InfiniBand", gid.link[0] ? ", " : "", gid.link,
                     i == best.index ? "; chosen unless one is given" : "");
            port_add(doctor, HX_FINDING_OK, "GID", device, port, found);
        }
    }
    if (is_ethernet && best.rank < 4) {
        hx_finding_advise(
            port_add(doctor, HX_FINDING_WARNING, "GIDs", device, port,
                     best.rank == 1 ? "version 1 of RoCE alone" : "no IPv4 address of version 2 of RoCE"),
            "give the link an IPv4 address, or choose an entry that all hosts reach: --transport-set gid=N");
    }
}

static void look_at_mtu(struct hx_doctor *doctor, const char *device, unsigned port) {
    bool is_ethernet = port_is_ethernet(doctor, device, port);
    struct gid best;
    char found[HX_HOST_TEXT];
    if (!is_ethernet) {
        port_add(doctor, HX_FINDING_OK, "MTU", device, port, "that of the subnet: ibv_devinfo prints active_mtu");
        return;
    }
    if (!gid_choose(doctor, device, port, is_ethernet, &best) || best.link[0] == '\0') {
        return;
    }
    long long frame = hx_host_number(doctor, 0, "/sys/class/net/%s/mtu", best.link);
    unsigned mtu = 4096;
    while (mtu > 256 && frame < (long long)mtu + HEADERS_BYTES) {
        mtu /= 2;
    }
    if (frame <= 0) {
        return;
    }
    snprintf(found, sizeof(found), "%u of RDMA, %lld of %s", mtu, frame, best.link);
    struct hx_finding *finding = port_add(doctor, HX_FINDING_OK, "MTU", device, port, found);
    if (mtu < 4096) {
        hx_finding_advise(finding,
                          "large reads are %u packets of each 4 KB; with 4200 or more on all hosts and switches they "
                          "are one: ip link set %s mtu 4200",
                          4096 / mtu, best.link);
    }
}

static void look_at_pkeys(struct hx_doctor *doctor, const char *device, unsigned port) {
    char found[HX_HOST_TEXT] = "", text[32];
    bool has_default = false;
    for (unsigned i = 0; i < PKEYS_MAX; i++) {
        size_t used = strlen(found);
        if (hx_host_read(doctor, text, sizeof(text), "%s/%s/ports/%u/pkeys/%u", class_folder, device, port, i) &&
            strcmp(text, "0x0000") != 0 && used < sizeof(found) - 32) {
            snprintf(found + used, sizeof(found) - used, "%spkey=%u: %s", used ? ", " : "", i, text);
            has_default = has_default || i == 0;
        }
    }
    if (has_default) {
        port_add(doctor, HX_FINDING_OK, "P_Keys", device, port, found);
    } else if (found[0] || !port_is_ethernet(doctor, device, port)) {
        hx_finding_advise(port_add(doctor, HX_FINDING_WARNING, "P_Keys", device, port, found[0] ? found : "none"),
                          "entry 0, which is used unless another is given, is empty: --transport-set pkey=N");
    }
}

/* ---- devices ---------------------------------------------------------------------------------------------------- */

/* The processors beside the device. */
static void look_at_numa(struct hx_doctor *doctor, const char *device) {
    struct hx_cpus online, allowed, beside;
    char text[HX_HOST_TEXT];
    long long node = hx_host_number(doctor, -1, "%s/%s/device/numa_node", class_folder, device);
    if (node < 0 || !hx_host_read(doctor, text, sizeof(text), "/sys/devices/system/node/node%lld/cpulist", node)) {
        return;
    }
    hx_host_cpus(doctor, &online, &allowed);
    hx_cpus_parse(text, &beside);
    unsigned near = 0, own = hx_cpus_count(&allowed);
    for (unsigned cpu = 0; cpu < HX_HOST_CPUS; cpu++) {
        near += hx_cpus_has(&beside, cpu) && hx_cpus_has(&allowed, cpu);
    }
    struct hx_finding *finding =
        hx_finding_add(doctor, near == own ? HX_FINDING_OK : HX_FINDING_WARNING, topic, "NUMA",
                       "node %lld: %u of the %u processors that may be used are beside it", node, near, own);
    snprintf(finding->subject, sizeof(finding->subject), "%s", device);
    if (near < own) {
        hx_finding_advise(finding, "numactl --cpunodebind=%lld --membind=%lld dmbench ...", node, node);
    }
}

static void look_at_pcie(struct hx_doctor *doctor, const char *device) {
    char speed[64], most[64], width[32], widest[32];
    const char *folder = class_folder;
    if (!hx_host_read(doctor, speed, sizeof(speed), "%s/%s/device/current_link_speed", folder, device) ||
        !hx_host_read(doctor, most, sizeof(most), "%s/%s/device/max_link_speed", folder, device)) {
        return;
    }
    hx_host_read(doctor, width, sizeof(width), "%s/%s/device/current_link_width", folder, device);
    hx_host_read(doctor, widest, sizeof(widest), "%s/%s/device/max_link_width", folder, device);
    bool is_full = strcmp(speed, most) == 0 && strcmp(width, widest) == 0;
    struct hx_finding *finding = hx_finding_add(doctor, is_full ? HX_FINDING_OK : HX_FINDING_WARNING, topic, "PCIe",
                                                "%s, %s lanes", speed, width);
    snprintf(finding->subject, sizeof(finding->subject), "%s", device);
    if (!is_full) {
        hx_finding_advise(finding, "the device can do %s on %s lanes: another slot", most, widest);
    }
}

/* Programs reach the device by a file, which containers often lack. */
static void look_at_access(struct hx_doctor *doctor, const char *device) {
    struct hx_host_names names;
    hx_host_list(doctor, &names, "/sys/class/infiniband_verbs");
    for (size_t i = 0; i < names.count; i++) {
        char owner[64], path[HX_HOST_PATH];
        if (!hx_host_read(doctor, owner, sizeof(owner), "/sys/class/infiniband_verbs/%s/ibdev", names.at[i]) ||
            strcmp(owner, device) != 0) {
            continue;
        }
        hx_host_path(doctor, path, "/dev/infiniband/%s", names.at[i]);
        if (access(path, R_OK | W_OK) == 0) {
            return;
        }
        struct hx_finding *finding = hx_finding_add(doctor, HX_FINDING_MISSING, topic, "access",
                                                    "/dev/infiniband/%s cannot be opened", names.at[i]);
        snprintf(finding->subject, sizeof(finding->subject), "%s", device);
        hx_finding_advise(finding,
                          "in a container: docker --device=/dev/infiniband/%s --device=/dev/infiniband/rdma_cm; "
                          "otherwise the permissions of the file, or modprobe ib_uverbs",
                          names.at[i]);
        finding->blocks = "verbs";
        return;
    }
}

static void look_at_device(struct hx_doctor *doctor, const char *device) {
    char board[64], firmware[64], type[64], folder[HX_HOST_PATH];
    hx_host_read(doctor, board, sizeof(board), "%s/%s/board_id", class_folder, device);
    hx_host_read(doctor, type, sizeof(type), "%s/%s/hca_type", class_folder, device);
    hx_host_read(doctor, firmware, sizeof(firmware), "%s/%s/fw_ver", class_folder, device);
    struct hx_finding *finding =
        hx_finding_add(doctor, HX_FINDING_OK, topic, "device", "%s%s%s%s%s", type[0] ? type : "of unknown type",
                       board[0] ? ", board " : "", board, firmware[0] ? ", firmware " : "", firmware);
    snprintf(finding->subject, sizeof(finding->subject), "%s", device);
    look_at_numa(doctor, device);
    look_at_pcie(doctor, device);
    struct hx_host_names ports;
    snprintf(folder, sizeof(folder), "%s/%s/ports", class_folder, device);
    hx_host_list(doctor, &ports, folder);
    for (size_t i = 0; i < ports.count; i++) {
        unsigned port = (unsigned)strtoul(ports.at[i], NULL, 10);
        look_at_state(doctor, device, port);
        if (port_is_active(doctor, device, port)) {
            look_at_gids(doctor, device, port);
            look_at_mtu(doctor, device, port);
            look_at_pkeys(doctor, device, port);
        }
    }
}

bool hx_doctor_port_choose(const struct hx_doctor *doctor, struct hx_doctor_port *port) {
    struct hx_host_names devices;
    hx_host_list(doctor, &devices, class_folder);
    for (size_t i = 0; i < devices.count; i++) {
        const char *device = devices.at[i];
        if (doctor->options.device[0] && strcmp(device, doctor->options.device) != 0) {
            continue;
        }
        for (unsigned number = 1; number < 256; number++) {
            struct gid best;
            if (port_is_active(doctor, device, number) &&
                gid_choose(doctor, device, number, port_is_ethernet(doctor, device, number), &best)) {
                *port = (struct hx_doctor_port){.port = number, .gid = best.index};
                snprintf(port->device, sizeof(port->device), "%s", device);
                return true;
            }
        }
    }
    return false;
}

static void look_at_choice(struct hx_doctor *doctor) {
    struct hx_doctor_port port;
    char path[HX_HOST_PATH];
    if (!hx_doctor_port_choose(doctor, &port)) {
        struct hx_finding *finding =
            hx_finding_add(doctor, HX_FINDING_MISSING, topic, "choice", "no port of %s is active and has an address",
                           doctor->options.device[0] ? doctor->options.device : "any device");
        hx_finding_advise(finding, "the transport verbs cannot work until one has");
        finding->blocks = "verbs";
        return;
    }
    hx_finding_add(doctor, HX_FINDING_OK, topic, "choice", "--transport-set device=%s port=%u gid=%u", port.device,
                   port.port, port.gid + 1);
    look_at_access(doctor, port.device);
    hx_host_path(doctor, path, "/dev/infiniband/rdma_cm");
    if (access(path, R_OK | W_OK) != 0) {
        hx_finding_advise(
            hx_finding_add(doctor, HX_FINDING_WARNING, topic, "connections",
                           "/dev/infiniband/rdma_cm cannot be opened: the control port exchanges queue pairs"),
            "modprobe rdma_ucm; the result then has connect=cm instead of tcp");
    } else {
        hx_finding_add(doctor, HX_FINDING_OK, topic, "connections", "the RDMA connection manager is there");
    }
    hx_doctor_probe(doctor, &port);
}

void hx_doctor_devices(struct hx_doctor *doctor) {
    struct hx_host_names devices;
    hx_host_list(doctor, &devices, class_folder);
    if (devices.count == 0) {
        struct hx_finding *finding = hx_finding_add(doctor, HX_FINDING_MISSING, topic, "device", "no RDMA device here");
        finding->blocks = "verbs";
        hx_finding_advise(finding,
                          "the driver of the NIC (lspci; modprobe mlx5_ib), or software RoCE for tests: rdma link "
                          "add rxe0 type rxe netdev NAME");
        return;
    }
    bool is_known = doctor->options.device[0] == '\0';
    for (size_t i = 0; i < devices.count; i++) {
        is_known = is_known || strcmp(devices.at[i], doctor->options.device) == 0;
        look_at_device(doctor, devices.at[i]);
    }
    if (is_known) {
        look_at_choice(doctor);
        return;
    }
    struct hx_finding *finding =
        hx_finding_add(doctor, HX_FINDING_MISSING, topic, "choice", "no device '%s'", doctor->options.device);
    finding->blocks = "verbs";
    hx_finding_advise(finding, "one of those above");
}
