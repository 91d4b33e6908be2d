/* SPDX-License-Identifier: Apache-2.0
 *
 * A replacement of libibverbs: one device whose properties a test sets, and a record of what the transport asks of it.
 * The definitions replace the library's, since the test's program comes first when symbols are looked up. Nothing is
 * transferred: a test opens a fabric, lets it connect, and compares the attributes. fake_mlx5.h adds work.
 */
#ifndef DM_TESTS_FAKE_VERBS_H
#define DM_TESTS_FAKE_VERBS_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#undef ibv_query_port
#undef ibv_reg_mr

enum { FAKE_RECORDS = 256, FAKE_PARENTS = 64, FAKE_COMPLETIONS = 64, FAKE_RECEIVES = 64, FAKE_QP_FIRST = 100 };

/* A queue pair as it was asked for, and the attributes that it was moved with. */
struct fake_qp {
    union {
        struct ibv_qp qp;
        struct ibv_qp_ex extended; /* begins with the same */
    };
    struct ibv_qp_init_attr asked;
    struct ibv_pd *pd;
    struct ibv_qp_attr init, receive, send;
    int masks[3];
    struct {
        uint64_t number, addr;
    } receives[FAKE_RECEIVES]; /* posted, not yet used; fake_work.h fills them */
    unsigned receive_count;
};

/* A completion queue with what has completed and was not polled yet. */
struct fake_cq {
    struct ibv_cq cq;
    struct ibv_wc done[FAKE_COMPLETIONS];
    unsigned count;
};

static struct {
    /* Properties, set by the test before a fabric is opened. */
    uint32_t vendor_id;
    int link_layer, port_flags, vectors, queue_most;
    uint16_t lid;
    enum ibv_mtu mtu;
    uint32_t entries_most; /* of a queue pair, with 64 bytes each: inline bytes take more of them */
    uint32_t inline_most;
    bool has_thread_domains, is_mlx5;
    int (*post_send)(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad); /* NULL: nothing is posted */
    int (*post_recv)(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
    int (*poll_cq)(struct ibv_cq *cq, int count, struct ibv_wc *wc);
    unsigned domains_most;
    unsigned unanswered; /* the next moves to the state RTR that fail, as no answer has come with a link address */

    /* The record. */
    struct fake_qp *qps[FAKE_RECORDS];
    unsigned qp_count;
    int cq_vectors[FAKE_RECORDS];
    unsigned cq_count, domains, domains_open;

    struct ibv_device device;
    struct verbs_context context;
    struct ibv_pd pd, parents[FAKE_PARENTS];
    struct ibv_td tds[FAKE_PARENTS];
} fake;

/* ---- the device ------------------------------------------------------------------------------------------------- */

struct ibv_device **ibv_get_device_list(int *count) {
    struct ibv_device **list = calloc(2, sizeof(struct ibv_device *));
    list[0] = &fake.device;
    *count = 1;
    return list;
}

void ibv_free_device_list(struct ibv_device **list) {
    free(list);
}

const char *ibv_get_device_name(struct ibv_device *device) {
    return device->name;
}

static struct ibv_td *fake_alloc_td(struct ibv_context *context, struct ibv_td_init_attr *attr) {
    (void)attr;
    if (!fake.has_thread_domains || fake.domains == fake.domains_most) {
        errno = EOPNOTSUPP;
        return NULL;
    }
    struct ibv_td *td = &fake.tds[fake.domains++];
    td->context = context;
    fake.domains_open++;
    return td;
}

static int fake_dealloc_td(struct ibv_td *td) {
    (void)td;
    fake.domains_open--;
    return 0;
}

static struct ibv_pd *fake_alloc_parent_domain(struct ibv_context *context, struct ibv_parent_domain_init_attr *attr) {
    struct ibv_pd *parent = &fake.parents[attr->td - fake.tds];
    parent->context = context;
    return attr->pd == &fake.pd ? parent : NULL;
}

static int fake_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad) {
    (void)qp;
    (void)wr;
    (void)bad;
    return 0;
}

static int fake_poll_cq(struct ibv_cq *cq, int count, struct ibv_wc *wc) {
    struct fake_cq *made = (struct fake_cq *)cq;
    unsigned given = made->count < (unsigned)count ? made->count : (unsigned)count;
    memcpy(wc, made->done, given * sizeof(*wc));
    made->count -= given;
    memmove(made->done, made->done + given, made->count * sizeof(*wc));
    return (int)given;
}

static int fake_req_notify_cq(struct ibv_cq *cq, int solicited) {
    (void)cq;
    (void)solicited;
    return 0;
}

static int fake_query_port(struct ibv_context *context, uint8_t number, struct ibv_port_attr *attr, size_t bytes) {
    (void)context;
    memset(attr, 0, bytes);
    *attr = (struct ibv_port_attr){.state = number == 1 ? IBV_PORT_ACTIVE : IBV_PORT_DOWN,
                                   .active_mtu = fake.mtu,
                                   .lid = fake.lid,
                                   .link_layer = (uint8_t)fake.link_layer,
                                   .flags = (uint8_t)fake.port_flags};
    return 0;
}

struct ibv_context *ibv_open_device(struct ibv_device *device) {
    fake.context.context.device = device;
    fake.context.context.num_comp_vectors = fake.vectors;
    fake.context.context.abi_compat = __VERBS_ABI_IS_EXTENDED;
    fake.context.context.ops.post_recv = fake.post_recv;
    fake.context.context.ops.post_send = fake.post_send;
    fake.context.context.ops.poll_cq = fake.poll_cq;
    fake.context.context.ops.req_notify_cq = fake_req_notify_cq;
    fake.context.sz = sizeof(fake.context);
    fake.context.query_port = fake_query_port;
    fake.context.alloc_td = fake_alloc_td;
    fake.context.dealloc_td = fake_dealloc_td;
    fake.context.alloc_parent_domain = fake_alloc_parent_domain;
    return &fake.context.context;
}

int ibv_close_device(struct ibv_context *context) {
    (void)context;
    return 0;
}

int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr) {
    (void)context;
    *attr = (struct ibv_device_attr){.vendor_id = fake.vendor_id,
                                     .phys_port_cnt = 1,
                                     .max_qp_wr = fake.queue_most,
                                     .max_cqe = 1 << 20,
                                     .max_qp_rd_atom = 16,
                                     .max_qp_init_rd_atom = 16,
                                     .atomic_cap = IBV_ATOMIC_HCA};
    return 0;
}

ssize_t _ibv_query_gid_table(struct ibv_context *context, struct ibv_gid_entry *entries, size_t most, uint32_t flags,
                             size_t bytes) {
    (void)context;
    (void)most;
    (void)flags;
    memset(entries, 0, bytes);
    entries->gid_index = 3;
    entries->port_num = 1;
    entries->gid_type = fake.link_layer == IBV_LINK_LAYER_ETHERNET ? IBV_GID_TYPE_ROCE_V2 : IBV_GID_TYPE_IB;
    memset(entries->gid.raw, 0x2a, sizeof(entries->gid.raw));
    return 1;
}

/* Of libmlx5, which a build may have linked. */
bool mlx5dv_is_supported(struct ibv_device *device);
bool mlx5dv_is_supported(struct ibv_device *device) {
    (void)device;
    return fake.is_mlx5;
}

/* ---- objects ---------------------------------------------------------------------------------------------------- */

struct ibv_pd *ibv_alloc_pd(struct ibv_context *context) {
    fake.pd.context = context;
    return &fake.pd;
}

int ibv_dealloc_pd(struct ibv_pd *pd) {
    (void)pd;
    return 0;
}

struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access) {
    struct ibv_mr *mr = calloc(1, sizeof(*mr));
    (void)access;
    *mr = (struct ibv_mr){.pd = pd, .addr = addr, .length = length, .lkey = 7, .rkey = 8};
    return mr;
}

struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, unsigned int access) {
    (void)iova;
    return ibv_reg_mr(pd, addr, length, (int)access);
}

int ibv_dereg_mr(struct ibv_mr *mr) {
    free(mr);
    return 0;
}

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context) {
    struct ibv_comp_channel *channel = calloc(1, sizeof(*channel));
    channel->context = context;
    channel->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return channel;
}

/* Wakes a thread that sleeps until something completes, as one that arms the queue asks for. */
__attribute__((unused)) static void fake_raise(const struct ibv_cq *cq) {
    uint64_t one = 1;
    ssize_t ignored = cq->channel ? write(cq->channel->fd, &one, sizeof(one)) : 0;
    (void)ignored;
}

/* Events are not counted by queue: a thread has one. */
int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **cq_context) {
    uint64_t count;
    *cq = NULL;
    *cq_context = NULL;
    return read(channel->fd, &count, sizeof(count)) == sizeof(count) ? 0 : -1;
}

void ibv_ack_cq_events(struct ibv_cq *cq, unsigned int count) {
    (void)cq;
    (void)count;
}

int ibv_destroy_comp_channel(struct ibv_comp_channel *channel) {
    close(channel->fd);
    free(channel);
    return 0;
}

struct ibv_cq *ibv_create_cq(struct ibv_context *context, int entries, void *cq_context,
                             struct ibv_comp_channel *channel, int vector) {
    struct fake_cq *made = calloc(1, sizeof(*made));
    (void)entries;
    made->cq = (struct ibv_cq){.context = context, .channel = channel, .cq_context = cq_context};
    fake.cq_vectors[fake.cq_count++] = vector;
    return &made->cq;
}

int ibv_destroy_cq(struct ibv_cq *cq) {
    free(cq);
    return 0;
}

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr) {
    uint32_t entries = attr->cap.max_send_wr * (1 + attr->cap.max_inline_data / 64);
    if (entries > fake.entries_most || fake.qp_count == FAKE_RECORDS) {
        errno = ENOMEM;
        return NULL;
    }
    struct fake_qp *made = calloc(1, sizeof(*made));
    made->asked = *attr;
    made->pd = pd;
    made->qp =
        (struct ibv_qp){.context = pd->context, .send_cq = attr->send_cq, .qp_num = FAKE_QP_FIRST + fake.qp_count};
    fake.qps[fake.qp_count++] = made;
    attr->cap.max_inline_data =
        attr->cap.max_inline_data < fake.inline_most ? attr->cap.max_inline_data : fake.inline_most;
    return &made->qp;
}

/* The record stays until the test forgets it. */
int ibv_destroy_qp(struct ibv_qp *qp) {
    (void)qp;
    return 0;
}

int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask) {
    struct fake_qp *made = (struct fake_qp *)qp;
    if (attr->qp_state == IBV_QPS_INIT) {
        made->init = *attr;
        made->masks[0] = mask;
    } else if (attr->qp_state == IBV_QPS_RTR) {
        if (fake.unanswered > 0) {
            fake.unanswered--;
            return ETIMEDOUT;
        }
        made->receive = *attr;
        made->masks[1] = mask;
    } else if (attr->qp_state == IBV_QPS_RTS) {
        made->send = *attr;
        made->masks[2] = mask;
    }
    return 0;
}

/* ---- for tests -------------------------------------------------------------------------------------------------- */

/* A NIC with RoCE; tests change what they are about. */
static void fake_reset(void) {
    for (unsigned i = 0; i < fake.qp_count; i++) {
        free(fake.qps[i]);
    }
    memset(&fake, 0, sizeof(fake));
    fake.vendor_id = 0x2c9;
    fake.post_recv = fake_post_recv;
    fake.poll_cq = fake_poll_cq;
    fake.link_layer = IBV_LINK_LAYER_ETHERNET;
    fake.vectors = 1;
    fake.queue_most = 1 << 15;
    fake.mtu = IBV_MTU_4096;
    fake.entries_most = 1 << 17;
    fake.inline_most = 1024;
    fake.domains_most = FAKE_PARENTS;
    strcpy(fake.device.name, "fake_0");
}

#endif
