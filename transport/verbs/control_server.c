/* SPDX-License-Identifier: Apache-2.0
 *
 * The control thread of a process in a run of several: it accepts control connections, answers those that have the
 * run's token, and notices when a process ends or its host is silent. A new connection has a bounded time and two
 * bounded messages to show that it has the token; before that it gets a random number and nothing else.
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

/* ---- incoming -----------------------------------------------------------------------------------------------------
 */

static bool is_compute(const struct verbs *verbs, unsigned node) {
    return node >= dm_first_cn(&verbs->rt.fabric->topology);
}

static void incoming_close(struct verbs *verbs, struct verbs_incoming *incoming) {
    struct verbs_control *control = verbs->control;
    close(incoming->fd);
    if (incoming->is_known && is_compute(verbs, incoming->caller)) {
        atomic_fetch_sub(&control->compute_peers, 1);
    }
    *incoming = control->arrivals.items[--control->arrivals.count];
}

static bool message_send(const struct verbs_incoming *incoming, const struct wire_message *message) {
    unsigned char bytes[WIRE_MAX];
    size_t count = verbs_wire_encode(message, bytes);
    return send(incoming->fd, bytes, count, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)count;
}

static bool refuse(const struct verbs_incoming *incoming, int code) {
    struct wire_message message = {.kind = WIRE_REFUSED, .refused = {.code = code}};
    return message_send(incoming, &message);
}

/* Answers the first message. False: the connection must be closed. */
static bool hello_answer(struct verbs_incoming *incoming, const struct wire_message *hello) {
    struct wire_message challenge = {.kind = WIRE_CHALLENGE};
    if (hello->kind != WIRE_HELLO || verbs_nonce_make(incoming->nonces.server) < 0) {
        return false;
    }
    incoming->has_called = true;
    incoming->hello = *hello;
    memcpy(incoming->nonces.caller, hello->hello.nonce, WIRE_NONCE);
    memcpy(challenge.challenge.nonce, incoming->nonces.server, WIRE_NONCE);
    return message_send(incoming, &challenge);
}

static bool has_token(const struct verbs_control *control, const struct verbs_incoming *incoming,
                      const struct wire_message *shown) {
    uint8_t proof[WIRE_PROOF];
    return shown->kind == WIRE_PROOF_SHOWN &&
           verbs_proof_make(control->token, VERBS_PROOF_CALLER, &incoming->nonces, &incoming->hello, proof) == 0 &&
           verbs_wire_proof_equal(proof, shown->proof_shown.proof);
}

static bool welcome_send(struct verbs *verbs, struct verbs_incoming *incoming) {
    struct wire_message welcome = {.kind = WIRE_WELCOME};
    uint8_t session[WIRE_NONCE];
    if (verbs_nonce_make(session) < 0 || verbs_proof_make(verbs->control->token, VERBS_PROOF_SERVER, &incoming->nonces,
                                                          &incoming->hello, welcome.welcome.proof) < 0) {
        return false;
    }
    memcpy(&incoming->session, session, sizeof(incoming->session));
    welcome.welcome.session = incoming->session;
    welcome.welcome.node = incoming->node;
    welcome.welcome.dram = verbs->regions[incoming->node][DM_DRAM];
    welcome.welcome.chip = verbs->regions[incoming->node][DM_CHIP];
    welcome.welcome.facts = verbs->facts[incoming->node];
    verbs_cm_offer(verbs, &welcome.welcome.cm_address);
    return message_send(incoming, &welcome);
}

/* Answers the second message. */
static bool proof_answer(struct verbs *verbs, struct verbs_incoming *incoming, const struct wire_message *shown) {
    struct verbs_control *control = verbs->control;
    const struct wire_message *hello = &incoming->hello;
    uint32_t node = hello->hello.node;
    if (!has_token(control, incoming, shown)) {
        refuse(incoming, DM_ERR_PEER);
        return false;
    }
    if (hello->hello.fabric != control->fabric || hello->hello.caller >= verbs->rt.fabric->node_count ||
        node >= dm_first_cn(&verbs->rt.fabric->topology) || !verbs->hosted[node]) {
        refuse(incoming, DM_ERR_INVALID);
        return false;
    }
    incoming->is_known = true;
    incoming->node = node;
    incoming->caller = hello->hello.caller;
    if (is_compute(verbs, incoming->caller)) {
        atomic_fetch_add(&control->compute_peers, 1);
        atomic_store(&control->had_compute_peers, true);
    }
    return welcome_send(verbs, incoming);
}

static bool connect_answer(struct verbs *verbs, struct verbs_incoming *incoming, const struct wire_message *request) {
    struct wire_message answer = {.kind = WIRE_CONNECTED};
    struct dm_err err = {0};
    if (request->kind != WIRE_CONNECT || request->connect.node != incoming->node ||
        request->connect.caller >= verbs->rt.fabric->node_count ||
        incoming->ends++ >= verbs_ends_max(verbs->rt.fabric)) {
        return false;
    }
    answer.connect.node = incoming->node;
    answer.connect.caller = request->connect.caller;
    int rc =
        verbs_accept(verbs, incoming->node, request->connect.caller, &request->connect.end, &answer.connect.end, &err);
    if (rc < 0) {
        verbs_failure_note(verbs, rc, "accepting a connection from node %u: %s", request->connect.caller, err.text);
        return refuse(incoming, rc);
    }
    return message_send(incoming, &answer);
}

static bool message_take(struct verbs *verbs, struct verbs_incoming *incoming, size_t length) {
    struct wire_message message;
    if (verbs_wire_decode(incoming->bytes + 4, length, &message) < 0) {
        return false;
    }
    if (incoming->is_known) {
        return connect_answer(verbs, incoming, &message);
    }
    return incoming->has_called ? proof_answer(verbs, incoming, &message) : hello_answer(incoming, &message);
}

/* Reads what has arrived, no more than the current message needs. False: the connection has ended or must be closed. */
static bool incoming_read(struct verbs *verbs, struct verbs_incoming *incoming) {
    size_t wanted = 4;
    if (incoming->got >= 4) {
        int length = verbs_wire_length(incoming->bytes);
        if (length < 0) {
            return false;
        }
        wanted = 4 + (size_t)length;
    }
    ssize_t got = recv(incoming->fd, incoming->bytes + incoming->got, wanted - incoming->got, MSG_DONTWAIT);
    if (got <= 0) {
        return got < 0 && (errno == EAGAIN || errno == EINTR);
    }
    incoming->got += (uint32_t)got;
    if (incoming->got == wanted && wanted > 4) {
        incoming->got = 0;
        return message_take(verbs, incoming, wanted - 4);
    }
    return true;
}

/* ---- the watcher ------------------------------------------------------------------------------------------------ */

static bool hosts_compute(const struct verbs *verbs) {
    bool hosts = false;
    for (unsigned node = dm_first_cn(&verbs->rt.fabric->topology); node < verbs->rt.fabric->node_count; node++) {
        hosts = hosts || verbs->hosted[node];
    }
    return hosts;
}

/* How the connection was lost distinguishes a process that ended from one that was killed, and from a descriptor that
 * was closed in this process. */
static const char *how_lost(int failed, short events) {
    return events & POLLNVAL ? "its connection was closed here"
           : failed          ? strerror(failed)
                             : "it closed its connection";
}

static void session_report(struct verbs *verbs, unsigned node, int fd, short events) {
    char name[VERBS_TEXT];
    int failed = 0;
    socklen_t bytes = sizeof(failed);
    (void)getsockopt(fd, SOL_SOCKET, SO_ERROR, &failed, &bytes);
    verbs_node_name(verbs, node, name, sizeof(name));
    if (failed == ETIMEDOUT || failed == EHOSTUNREACH || failed == ENETUNREACH) {
        verbs_failure_note(verbs, DM_ERR_PEER, "the host of %s is silent: %s", name, strerror(failed));
    } else {
        verbs_failure_note(verbs, DM_ERR_PEER, "the process of %s has ended: %s", name, how_lost(failed, events));
    }
}

/* Only a process with compute nodes reports it. When the compute side has left, servers end in any order, and one may
 * notice the end of another one before it notices that of the compute side. If a server ends too early, the compute
 * side reports it, and calls to that server fail here. */
static void session_lost(struct verbs *verbs, unsigned node, int fd, short events) {
    if (hosts_compute(verbs)) {
        session_report(verbs, node, fd, events);
    }
    atomic_store(&verbs->control->is_gone[node], true);
}

/* What the watcher polls: its event, the listener, the connection manager, incoming connections, own sessions. */
enum { WATCH_EVENT, WATCH_LISTENER, WATCH_CM, WATCH_OTHERS };
struct watch {
    struct pollfd fds[WATCH_OTHERS + VERBS_INCOMING + WIRE_NODES];
    unsigned nodes[WIRE_NODES]; /* of the sessions */
    unsigned incoming, sessions;
};

static nfds_t watch_fill(struct verbs *verbs, struct watch *watch) {
    struct verbs_control *control = verbs->control;
    nfds_t count = 0;
    watch->fds[count++] = (struct pollfd){.fd = control->event, .events = POLLIN};
    int listener = atomic_load(&control->is_serving) ? control->processes->listener : -1;
    bool accepts = rt_clock_ns() >= control->arrivals.accept_after_ns;
    watch->fds[count++] = (struct pollfd){.fd = accepts ? listener : -1, .events = POLLIN};
    watch->fds[count++] = (struct pollfd){.fd = listener >= 0 ? verbs_cm_fd(verbs) : -1, .events = POLLIN};
    watch->incoming = control->arrivals.count;
    for (unsigned i = 0; i < control->arrivals.count; i++) {
        watch->fds[count++] = (struct pollfd){.fd = control->arrivals.items[i].fd, .events = POLLIN};
    }
    watch->sessions = 0;
    pthread_mutex_lock(&control->lock);
    for (unsigned node = 0; node < verbs->rt.fabric->node_count; node++) {
        if (control->sessions[node] >= 0 && !atomic_load(&control->is_gone[node])) {
            watch->nodes[watch->sessions++] = node;
            watch->fds[count++] = (struct pollfd){.fd = control->sessions[node], .events = POLLRDHUP};
        }
    }
    pthread_mutex_unlock(&control->lock);
    return count;
}

static void watch_act(struct verbs *verbs, const struct watch *watch) {
    struct verbs_control *control = verbs->control;
    const struct pollfd *polled = watch->fds + WATCH_OTHERS, *sessions = polled + watch->incoming;
    for (unsigned i = 0; i < watch->sessions; i++) {
        if (sessions[i].revents) {
            session_lost(verbs, watch->nodes[i], sessions[i].fd, sessions[i].revents);
        }
    }
    uint64_t now_ns = rt_clock_ns();
    for (unsigned i = watch->incoming; i-- > 0;) { /* closing one moves the last one to its index */
        struct verbs_incoming *incoming = &control->arrivals.items[i];
        bool is_late = !incoming->is_known && now_ns > incoming->deadline_ns;
        if (is_late || (polled[i].revents && !incoming_read(verbs, incoming))) {
            incoming_close(verbs, incoming);
        }
    }
    if (watch->fds[WATCH_LISTENER].revents) {
        verbs_incoming_accept(&control->arrivals, control->processes->listener, now_ns);
    }
    if (watch->fds[WATCH_CM].revents) {
        verbs_cm_take(verbs);
    }
}

static void *watcher_main(void *arg) {
    struct verbs *verbs = arg;
    static _Thread_local struct watch watch;
    while (!atomic_load(&verbs->control->is_closing)) {
        nfds_t count = watch_fill(verbs, &watch);
        if (poll(watch.fds, count, TICK_MS) > 0 && watch.fds[WATCH_EVENT].revents) {
            uint64_t ignored;
            ssize_t got = read(verbs->control->event, &ignored, sizeof(ignored));
            (void)got;
        }
        watch_act(verbs, &watch);
    }
    return NULL;
}

static int watcher_start(struct verbs *verbs) {
    struct verbs_control *control = verbs->control;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    control->is_watching = pthread_create(&control->watcher, NULL, watcher_main, verbs) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return control->is_watching ? 0 : DM_ERR_NO_MEMORY;
}

/* ---- opening and closing ---------------------------------------------------------------------------------------- */

/* Hash of the configuration: processes of the same run compute the same. */
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

int verbs_control_plan(struct verbs *verbs, struct dm_err *err) {
    const struct dm_fabric *fabric = verbs->rt.fabric;
    const struct dm_processes *processes = fabric->config.processes;
    for (unsigned node = 0; node < fabric->node_count; node++) {
        verbs->hosted[node] = !processes || processes->hosted[node];
    }
    if (!processes) {
        return 0;
    }
    struct verbs_control *control = calloc(1, sizeof(*control));
    if (!control) {
        return DM_ERR_NO_MEMORY;
    }
    verbs->control = control;
    control->processes = processes;
    control->event = -1;
    pthread_mutex_init(&control->lock, NULL);
    while (control->own_node + 1 < fabric->node_count && !verbs->hosted[control->own_node]) {
        control->own_node++;
    }
    if (!processes->token || !verbs_wire_token_from(processes->token, control->token)) {
        return dm_fail(err, DM_ERR_INVALID, "the token of a run with several processes must have 1 to %d bytes",
                       WIRE_TOKEN);
    }
    control->fabric = fabric_hash(verbs);
    control->sessions = malloc(((size_t)fabric->node_count + 1) * sizeof(*control->sessions));
    control->is_gone = calloc((size_t)fabric->node_count + 1, sizeof(*control->is_gone));
    control->peers = calloc((size_t)fabric->node_count + 1, sizeof(*control->peers));
    control->arrivals.timeout_ns = verbs_silence_ns(verbs);
    for (unsigned node = 0; control->sessions && node < fabric->node_count; node++) {
        control->sessions[node] = -1;
    }
    return control->sessions && control->is_gone && control->peers ? 0 : DM_ERR_NO_MEMORY;
}

int verbs_control_open(struct verbs *verbs, struct dm_err *err) {
    struct verbs_control *control = verbs->control;
    if (!control) {
        return 0;
    }
    control->event = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (control->event < 0) {
        return dm_fail(err, DM_ERR_IO, "verbs: no file descriptor: %s", strerror(errno));
    }
    DM_TRY(verbs_cm_listen(verbs, err));
    /* Processes of memory nodes connect to each other only when they need to. */
    if (is_compute(verbs, control->own_node)) {
        DM_TRY(verbs_sessions_open(verbs, err));
    }
    return watcher_start(verbs);
}

void verbs_control_serve(struct verbs *verbs) {
    struct verbs_control *control = verbs->control;
    if (control && control->processes->listener >= 0 && !atomic_exchange(&control->is_serving, true)) {
        uint64_t one = 1;
        ssize_t ignored = write(control->event, &one, sizeof(one));
        (void)ignored;
    }
}

void verbs_control_close(struct verbs *verbs) {
    struct verbs_control *control = verbs->control;
    if (!control) {
        return;
    }
    atomic_store(&control->is_closing, true);
    if (control->is_watching) {
        uint64_t one = 1;
        ssize_t ignored = write(control->event, &one, sizeof(one));
        (void)ignored;
        pthread_join(control->watcher, NULL);
    }
    while (control->arrivals.count > 0) {
        incoming_close(verbs, &control->arrivals.items[0]);
    }
    verbs_sessions_close(verbs);
    if (control->event >= 0) {
        close(control->event);
    }
    if (control->processes->listener >= 0) {
        close(control->processes->listener);
    }
}

void verbs_control_free(struct verbs *verbs) {
    if (verbs->control) {
        verbs_cm_close(verbs);
        pthread_mutex_destroy(&verbs->control->lock);
        free(verbs->control->sessions);
        free(verbs->control->is_gone);
        free(verbs->control->peers);
    }
    free(verbs->control);
}

unsigned verbs_peers(struct dm_fabric *fabric, bool *have_been) {
    struct verbs_control *control = verbs_of(fabric)->control;
    *have_been = control && atomic_load(&control->had_compute_peers);
    return control ? atomic_load(&control->compute_peers) : 0;
}
