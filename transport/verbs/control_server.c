/* SPDX-License-Identifier: Apache-2.0
 *
 * One thread of a process that has others beside it: it takes in control connections, answers those that show the run's
 * token, and sees when a process goes away. A stranger gets a bounded time and one bounded message to show the token,
 * and nothing is done or said before.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "transport/verbs/verbs.h"

enum { TICK_MS = 100 };

#define STRANGER_NS (UINT64_C(3) * 1000000000)

/* ---- guests ----------------------------------------------------------------------------------------------------- */

static bool is_compute(const struct verbs *verbs, unsigned node) {
    return node >= dm_first_cn(&verbs->rt.fabric->topology);
}

static void guest_close(struct verbs *verbs, struct verbs_guest *guest) {
    struct verbs_peer *peer = verbs->peer;
    close(guest->fd);
    if (guest->is_known && is_compute(verbs, guest->caller)) {
        atomic_fetch_sub(&peer->compute_guests, 1);
    }
    *guest = peer->guests[--peer->guest_count];
}

static bool message_send(const struct verbs_guest *guest, const struct wire_message *message) {
    unsigned char bytes[WIRE_MAX];
    size_t count = wire_encode(message, bytes);
    return send(guest->fd, bytes, count, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)count;
}

static bool refuse(const struct verbs_guest *guest, int code) {
    struct wire_message message = {.kind = WIRE_REFUSED, .refused = {.code = code}};
    return message_send(guest, &message);
}

/* The first message. False: the connection is of no use. */
static bool hello_answer(struct verbs *verbs, struct verbs_guest *guest, const struct wire_message *hello) {
    struct verbs_peer *peer = verbs->peer;
    if (hello->kind != WIRE_HELLO || !wire_token_equal(hello->hello.token, peer->token)) {
        return false;
    }
    uint32_t node = hello->hello.node;
    if (hello->hello.fabric != peer->fabric || hello->hello.caller >= verbs->rt.fabric->node_count ||
        node >= dm_first_cn(&verbs->rt.fabric->topology) || !verbs->hosted[node]) {
        refuse(guest, DM_ERR_INVALID);
        return false;
    }
    guest->is_known = true;
    guest->node = node;
    guest->caller = hello->hello.caller;
    if (is_compute(verbs, guest->caller)) {
        atomic_fetch_add(&peer->compute_guests, 1);
        atomic_store(&peer->had_compute_guests, true);
    }
    struct wire_message welcome = {.kind = WIRE_WELCOME};
    welcome.welcome.node = node;
    welcome.welcome.dram = verbs->regions[node][DM_DRAM];
    welcome.welcome.chip = verbs->regions[node][DM_CHIP];
    verbs_cm_offer(verbs, &welcome.welcome.place);
    return message_send(guest, &welcome);
}

static bool connect_answer(struct verbs *verbs, struct verbs_guest *guest, const struct wire_message *request) {
    struct wire_message answer = {.kind = WIRE_CONNECTED};
    struct dm_err err = {0};
    if (request->kind != WIRE_CONNECT || request->connect.node != guest->node ||
        request->connect.caller >= verbs->rt.fabric->node_count || guest->ends++ >= verbs_ends_max(verbs->rt.fabric)) {
        return false;
    }
    answer.connect.node = guest->node;
    answer.connect.caller = request->connect.caller;
    int rc =
        verbs_accept(verbs, guest->node, request->connect.caller, &request->connect.end, &answer.connect.end, &err);
    if (rc < 0) {
        verbs_failure_note(verbs, rc, "taking in a connection from node %u: %s", request->connect.caller, err.text);
        return refuse(guest, rc);
    }
    return message_send(guest, &answer);
}

static bool message_take(struct verbs *verbs, struct verbs_guest *guest, size_t length) {
    struct wire_message message;
    if (wire_decode(guest->bytes + 4, length, &message) < 0) {
        return false;
    }
    return guest->is_known ? connect_answer(verbs, guest, &message) : hello_answer(verbs, guest, &message);
}

/* Reads what is there, no more than the message at hand needs. False: the connection has ended or is of no use. */
static bool guest_read(struct verbs *verbs, struct verbs_guest *guest) {
    size_t wanted = 4;
    if (guest->got >= 4) {
        int length = wire_length(guest->bytes);
        if (length < 0) {
            return false;
        }
        wanted = 4 + (size_t)length;
    }
    ssize_t got = recv(guest->fd, guest->bytes + guest->got, wanted - guest->got, MSG_DONTWAIT);
    if (got <= 0) {
        return got < 0 && (errno == EAGAIN || errno == EINTR);
    }
    guest->got += (uint32_t)got;
    if (guest->got == wanted && wanted > 4) {
        guest->got = 0;
        return message_take(verbs, guest, wanted - 4);
    }
    return true;
}

static void guest_take_in(struct verbs *verbs) {
    struct verbs_peer *peer = verbs->peer;
    int fd = accept4(peer->processes->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) {
        return;
    }
    unsigned strangers = 0;
    for (unsigned i = 0; i < peer->guest_count; i++) {
        strangers += !peer->guests[i].is_known;
    }
    if (peer->guest_count == VERBS_INCOMING || strangers == VERBS_STRANGERS) {
        close(fd);
        return;
    }
    peer->guests[peer->guest_count++] = (struct verbs_guest){.fd = fd, .deadline_ns = rt_clock_ns() + STRANGER_NS};
}

/* ---- the watcher ------------------------------------------------------------------------------------------------ */

static void session_lost(struct verbs *verbs, unsigned node) {
    char name[VERBS_TEXT];
    atomic_store(&verbs->peer->is_gone[node], true);
    verbs_failure_note(verbs, DM_ERR_PEER, "the process of %s has ended",
                       verbs_node_name(verbs, node, name, sizeof(name)));
}

/* What the watcher looks at: its event, the listener, the connection manager, guests, sessions. */
enum { WATCH_EVENT, WATCH_LISTENER, WATCH_CM, WATCH_OTHERS };
struct watch {
    struct pollfd fds[WATCH_OTHERS + VERBS_INCOMING + WIRE_NODES];
    unsigned nodes[WIRE_NODES]; /* of the sessions */
    unsigned guests, sessions;
};

static nfds_t watch_fill(struct verbs *verbs, struct watch *watch) {
    struct verbs_peer *peer = verbs->peer;
    nfds_t count = 0;
    watch->fds[count++] = (struct pollfd){.fd = peer->event, .events = POLLIN};
    int listener = atomic_load(&peer->is_serving) ? peer->processes->listener : -1;
    watch->fds[count++] = (struct pollfd){.fd = listener, .events = POLLIN};
    watch->fds[count++] = (struct pollfd){.fd = listener >= 0 ? verbs_cm_fd(verbs) : -1, .events = POLLIN};
    watch->guests = peer->guest_count;
    for (unsigned i = 0; i < peer->guest_count; i++) {
        watch->fds[count++] = (struct pollfd){.fd = peer->guests[i].fd, .events = POLLIN};
    }
    watch->sessions = 0;
    pthread_mutex_lock(&peer->lock);
    for (unsigned node = 0; node < verbs->rt.fabric->node_count; node++) {
        if (peer->sessions[node] >= 0 && !atomic_load(&peer->is_gone[node])) {
            watch->nodes[watch->sessions++] = node;
            watch->fds[count++] = (struct pollfd){.fd = peer->sessions[node], .events = POLLRDHUP};
        }
    }
    pthread_mutex_unlock(&peer->lock);
    return count;
}

static void watch_act(struct verbs *verbs, const struct watch *watch) {
    struct verbs_peer *peer = verbs->peer;
    const struct pollfd *guests = watch->fds + WATCH_OTHERS, *sessions = guests + watch->guests;
    for (unsigned i = 0; i < watch->sessions; i++) {
        if (sessions[i].revents) {
            session_lost(verbs, watch->nodes[i]);
        }
    }
    uint64_t now_ns = rt_clock_ns();
    for (unsigned i = watch->guests; i-- > 0;) { /* closing one moves the last to its place */
        struct verbs_guest *guest = &peer->guests[i];
        bool is_late = !guest->is_known && now_ns > guest->deadline_ns;
        if (is_late || (guests[i].revents && !guest_read(verbs, guest))) {
            guest_close(verbs, guest);
        }
    }
    if (watch->fds[WATCH_LISTENER].revents) {
        guest_take_in(verbs);
    }
    if (watch->fds[WATCH_CM].revents) {
        verbs_cm_take(verbs);
    }
}

static void *watcher_main(void *arg) {
    struct verbs *verbs = arg;
    static _Thread_local struct watch watch;
    while (!atomic_load(&verbs->peer->is_closing)) {
        nfds_t count = watch_fill(verbs, &watch);
        if (poll(watch.fds, count, TICK_MS) > 0 && watch.fds[WATCH_EVENT].revents) {
            uint64_t ignored;
            ssize_t got = read(verbs->peer->event, &ignored, sizeof(ignored));
            (void)got;
        }
        watch_act(verbs, &watch);
    }
    return NULL;
}

static int watcher_start(struct verbs *verbs) {
    struct verbs_peer *peer = verbs->peer;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    peer->is_watching = pthread_create(&peer->watcher, NULL, watcher_main, verbs) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return peer->is_watching ? 0 : DM_ERR_NO_MEMORY;
}

/* ---- opening and closing ---------------------------------------------------------------------------------------- */

/* Both sides compute the same from what they were started with. */
static uint64_t fabric_hash(const struct verbs *verbs) {
    const struct dm_topology *topology = &verbs->rt.fabric->topology;
    const struct dm_fabric_config *config = &verbs->rt.fabric->config;
    const uint64_t parts[] = {topology->mns,
                              topology->servers,
                              topology->cns,
                              topology->mn_cores,
                              topology->server_cores,
                              topology->clients,
                              topology->clients_per_thread,
                              topology->mn_bytes,
                              topology->chip_bytes,
                              config->seed,
                              config->chunk_bytes,
                              config->processes->fingerprint};
    uint64_t hash = WIRE_VERSION;
    for (size_t i = 0; i < DM_ARRAY_LEN(parts); i++) {
        hash = dm_mix64(hash ^ parts[i]);
    }
    return hash;
}

int verbs_peers_plan(struct verbs *verbs, struct dm_err *err) {
    const struct dm_fabric *fabric = verbs->rt.fabric;
    const struct dm_processes *processes = fabric->config.processes;
    for (unsigned node = 0; node < fabric->node_count; node++) {
        verbs->hosted[node] = !processes || processes->hosted[node];
    }
    if (!processes) {
        return 0;
    }
    struct verbs_peer *peer = calloc(1, sizeof(*peer));
    if (!peer) {
        return DM_ERR_NO_MEMORY;
    }
    verbs->peer = peer;
    peer->processes = processes;
    peer->event = -1;
    pthread_mutex_init(&peer->lock, NULL);
    while (peer->own_node + 1 < fabric->node_count && !verbs->hosted[peer->own_node]) {
        peer->own_node++;
    }
    if (!processes->token || !wire_token_from(processes->token, peer->token)) {
        return dm_fail(err, DM_ERR_INVALID, "the token of a run with several processes has 1 to %d bytes", WIRE_TOKEN);
    }
    peer->fabric = fabric_hash(verbs);
    peer->sessions = malloc(((size_t)fabric->node_count + 1) * sizeof(*peer->sessions));
    peer->is_gone = calloc((size_t)fabric->node_count + 1, sizeof(*peer->is_gone));
    peer->places = calloc((size_t)fabric->node_count + 1, sizeof(*peer->places));
    for (unsigned node = 0; peer->sessions && node < fabric->node_count; node++) {
        peer->sessions[node] = -1;
    }
    return peer->sessions && peer->is_gone && peer->places ? 0 : DM_ERR_NO_MEMORY;
}

int verbs_peers_open(struct verbs *verbs, struct dm_err *err) {
    struct verbs_peer *peer = verbs->peer;
    if (!peer) {
        return 0;
    }
    peer->event = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (peer->event < 0) {
        return dm_fail(err, DM_ERR_IO, "verbs: no file descriptor: %s", strerror(errno));
    }
    DM_TRY(verbs_cm_listen(verbs, err));
    /* Processes of memory nodes wait for one another only when they need one another. */
    if (is_compute(verbs, peer->own_node)) {
        DM_TRY(verbs_sessions_open(verbs, err));
    }
    return watcher_start(verbs);
}

void verbs_peers_serve(struct verbs *verbs) {
    struct verbs_peer *peer = verbs->peer;
    if (peer && peer->processes->listener >= 0 && !atomic_exchange(&peer->is_serving, true)) {
        uint64_t one = 1;
        ssize_t ignored = write(peer->event, &one, sizeof(one));
        (void)ignored;
    }
}

void verbs_peers_close(struct verbs *verbs) {
    struct verbs_peer *peer = verbs->peer;
    if (!peer) {
        return;
    }
    atomic_store(&peer->is_closing, true);
    if (peer->is_watching) {
        uint64_t one = 1;
        ssize_t ignored = write(peer->event, &one, sizeof(one));
        (void)ignored;
        pthread_join(peer->watcher, NULL);
    }
    while (peer->guest_count > 0) {
        guest_close(verbs, &peer->guests[0]);
    }
    verbs_sessions_close(verbs);
    if (peer->event >= 0) {
        close(peer->event);
    }
    if (peer->processes->listener >= 0) {
        close(peer->processes->listener);
    }
}

void verbs_peers_free(struct verbs *verbs) {
    if (verbs->peer) {
        verbs_cm_close(verbs);
        pthread_mutex_destroy(&verbs->peer->lock);
        free(verbs->peer->sessions);
        free(verbs->peer->is_gone);
        free(verbs->peer->places);
    }
    free(verbs->peer);
}

unsigned verbs_peers(struct dm_fabric *fabric, bool *have_been) {
    struct verbs_peer *peer = verbs_of(fabric)->peer;
    *have_been = peer && atomic_load(&peer->had_compute_guests);
    return peer ? atomic_load(&peer->compute_guests) : 0;
}
