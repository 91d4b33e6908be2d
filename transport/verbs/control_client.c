/* SPDX-License-Identifier: Apache-2.0
 *
 * The control connections that this process opens: one to the process of each node that is not its own. Requests and
 * answers alternate, and every wait is bounded.
 */
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "transport/verbs/verbs.h"

enum { RETRY_NS = 50000000, HUNG_UP = 1 };

#define NS_PER_S UINT64_C(1000000000)

/* ---- bytes ------------------------------------------------------------------------------------------------------ */

/* "host:port" or "[host]:port" in two parts. */
static bool address_split(const char *address, char *host, size_t capacity, const char **port) {
    const char *colon = strrchr(address, ':');
    size_t length = colon ? (size_t)(colon - address) : 0;
    if (!colon || length == 0 || length >= capacity || colon[1] == '\0') {
        return false;
    }
    bool is_bracketed = address[0] == '[' && length > 2 && address[length - 1] == ']';
    snprintf(host, capacity, "%.*s", (int)(is_bracketed ? length - 2 : length), address + is_bracketed);
    *port = colon + 1;
    return true;
}

static int address_find(const char *address, bool is_passive, struct addrinfo **found, struct dm_err *err) {
    char host[256];
    const char *port;
    if (!address_split(address, host, sizeof(host), &port)) {
        return dm_fail(err, DM_ERR_INVALID, "'%.100s' is not HOST:PORT", address);
    }
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = is_passive ? AI_PASSIVE : 0};
    int failed = getaddrinfo(host, port, &hints, found);
    return failed ? dm_fail(err, DM_ERR_INVALID, "'%.100s': %s", address, gai_strerror(failed)) : 0;
}

/* Longer than verbs take to fail: their error says more. */
uint64_t verbs_silence_ns(const struct verbs *verbs) {
    return 2 * verbs->options->timeout_ns;
}

static void set_limits(int fd, uint64_t timeout_ns) {
    struct timeval limit = {.tv_sec = (time_t)(timeout_ns / NS_PER_S),
                            .tv_usec = (suseconds_t)(timeout_ns % NS_PER_S / 1000)};
    int one = 1;
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
}

static int bytes_read(int fd, unsigned char *bytes, size_t count) {
    for (size_t at = 0; at < count;) {
        ssize_t got = recv(fd, bytes + at, count - at, 0);
        if (got <= 0 && !(got < 0 && errno == EINTR)) {
            return DM_ERR_PEER;
        }
        at += got > 0 ? (size_t)got : 0;
    }
    return 0;
}

static int refused(int code, struct dm_err *err) {
    if (code == DM_ERR_INVALID) {
        return dm_fail(err, DM_ERR_INVALID, "it was started for another run: options have to be the same");
    }
    return code == DM_ERR_PEER ? dm_fail(err, DM_ERR_INVALID, "it has another token: the files have to be the same")
                               : dm_fail(err, DM_ERR_PEER, "it refused: %s", dm_code_text(code));
}

/* Sends a request and reads the answer, which has to be of that kind. HUNG_UP: the other side closed the connection,
 * with the error set; it does that to the oldest of too many connections that have not shown the token. */
static int exchange(int fd, const struct wire_message *request, enum wire_kind wanted, struct wire_message *answer,
                    struct dm_err *err) {
    unsigned char bytes[WIRE_MAX];
    size_t count = verbs_wire_encode(request, bytes);
    if (send(fd, bytes, count, MSG_NOSIGNAL) != (ssize_t)count) {
        dm_fail(err, DM_ERR_PEER, "its control port does not take requests: %s", strerror(errno));
        return HUNG_UP;
    }
    errno = 0;
    if (bytes_read(fd, bytes, 4) < 0) {
        if (errno == EAGAIN || errno == ETIMEDOUT) {
            return dm_fail(err, DM_ERR_PEER, "its control port does not answer");
        }
        dm_fail(err, DM_ERR_PEER, "its control port hung up; is it a dmbench of this version?");
        return HUNG_UP;
    }
    int length = verbs_wire_length(bytes);
    if (length < 0 || bytes_read(fd, bytes, (size_t)length) < 0 ||
        verbs_wire_decode(bytes, (size_t)length, answer) < 0 ||
        (answer->kind != wanted && answer->kind != WIRE_REFUSED)) {
        return dm_fail(err, DM_ERR_CORRUPT, "what answers at its control port is not dmbench of this version");
    }
    return answer->kind == WIRE_REFUSED ? refused(answer->refused.code, err) : 0;
}

/* ---- sessions --------------------------------------------------------------------------------------------------- */

static int try_connect(const struct addrinfo *found, uint64_t timeout_ns) {
    for (const struct addrinfo *at = found; at; at = at->ai_next) {
        int fd = socket(at->ai_family, at->ai_socktype | SOCK_CLOEXEC, at->ai_protocol);
        if (fd < 0) {
            continue;
        }
        set_limits(fd, timeout_ns);
        if (connect(fd, at->ai_addr, at->ai_addrlen) == 0) {
            return fd;
        }
        int kept = errno;
        close(fd);
        errno = kept;
    }
    return -1;
}

static bool is_over(const struct verbs *verbs, uint64_t end_ns) {
    return verbs->rt.fabric->stop || rt_clock_ns() >= end_ns;
}

static void pause_before_retry(void) {
    struct timespec pause = {.tv_nsec = RETRY_NS};
    nanosleep(&pause, NULL);
}

/* Retries until the time has come: the other process may start later. */
static int socket_open(const struct verbs *verbs, const char *address, uint64_t end_ns, int *fd, struct dm_err *err) {
    struct addrinfo *found = NULL;
    DM_TRY(address_find(address, false, &found, err));
    while ((*fd = try_connect(found, verbs->options->timeout_ns)) < 0 && !is_over(verbs, end_ns)) {
        pause_before_retry();
    }
    freeaddrinfo(found);
    return *fd >= 0 ? 0 : dm_fail(err, DM_ERR_PEER, "cannot reach '%.100s': %s", address, strerror(errno));
}

/* What the other side offers must match the topology: every later address is checked against the topology alone. */
static int regions_take(struct verbs *verbs, unsigned node, const struct wire_message *welcome, struct dm_err *err) {
    const struct dm_topology *topology = &verbs->rt.fabric->topology;
    uint64_t chip_bytes = node < topology->mns ? topology->chip_bytes : 0;
    if (welcome->welcome.node != node || welcome->welcome.dram.bytes != topology->mn_bytes ||
        welcome->welcome.chip.bytes != chip_bytes) {
        return dm_fail(err, DM_ERR_CORRUPT, "it offers other memory than the topology has");
    }
    verbs->regions[node][DM_DRAM] = welcome->welcome.dram;
    verbs->regions[node][DM_CHIP] = welcome->welcome.chip;
    verbs->facts[node] = welcome->welcome.facts;
    verbs->control->peers[node].session = welcome->welcome.session;
    verbs->control->peers[node].cm_address = welcome->welcome.cm_address;
    return 0;
}

/* Each side shows that it has the token. HUNG_UP as above. */
static int greet(struct verbs *verbs, int fd, unsigned node, struct dm_err *err) {
    struct verbs_control *control = verbs->control;
    struct verbs_peer *peer = &control->peers[node];
    struct wire_message challenge, shown = {.kind = WIRE_PROOF_SHOWN}, welcome;
    uint8_t proof[WIRE_PROOF];
    peer->hello = (struct wire_message){.kind = WIRE_HELLO};
    peer->hello.hello.fabric = control->fabric;
    peer->hello.hello.node = node;
    peer->hello.hello.caller = control->own_node;
    if (verbs_nonce_make(peer->nonces.caller) < 0) {
        return dm_fail(err, DM_ERR_IO, "no random numbers");
    }
    memcpy(peer->hello.hello.nonce, peer->nonces.caller, WIRE_NONCE);
    int rc = exchange(fd, &peer->hello, WIRE_CHALLENGE, &challenge, err);
    if (rc != 0) {
        return rc;
    }
    memcpy(peer->nonces.server, challenge.challenge.nonce, WIRE_NONCE);
    if (verbs_proof_make(control->token, VERBS_PROOF_CALLER, &peer->nonces, &peer->hello, shown.proof_shown.proof) <
            0 ||
        verbs_proof_make(control->token, VERBS_PROOF_SERVER, &peer->nonces, &peer->hello, proof) < 0) {
        return dm_fail(err, DM_ERR_IO, "libcrypto computes no hash");
    }
    rc = exchange(fd, &shown, WIRE_WELCOME, &welcome, err);
    if (rc != 0) {
        return rc;
    }
    return verbs_wire_proof_equal(welcome.welcome.proof, proof)
               ? regions_take(verbs, node, &welcome, err)
               : dm_fail(err, DM_ERR_INVALID, "what answers at its control port does not have the token");
}

/* Until its process has registered its memory it does not answer, and that takes seconds for some GB. */
static int session_try(struct verbs *verbs, unsigned node, const char *address, uint64_t end_ns, int *fd,
                       struct dm_err *err) {
    uint64_t now_ns;
    DM_TRY(socket_open(verbs, address, end_ns, fd, err));
    now_ns = rt_clock_ns();
    set_limits(*fd, end_ns > now_ns + verbs->options->timeout_ns ? end_ns - now_ns : verbs->options->timeout_ns);
    int rc = greet(verbs, *fd, node, err);
    if (rc != 0) {
        close(*fd);
        return rc;
    }
    set_limits(*fd, verbs->options->timeout_ns);
    verbs_socket_watch(*fd, verbs_silence_ns(verbs));
    return 0;
}

static int session_open(struct verbs *verbs, unsigned node, struct dm_err *err) {
    struct verbs_control *control = verbs->control;
    if (control->sessions[node] >= 0) {
        return 0;
    }
    int fd = -1, rc;
    uint64_t end_ns = rt_clock_ns() + verbs->options->start_timeout_ns;
    const char *address = control->processes->addresses ? control->processes->addresses[node] : NULL;
    if (!address) {
        return dm_fail(err, DM_ERR_INVALID, "no address of its process is known");
    }
    while ((rc = session_try(verbs, node, address, end_ns, &fd, err)) == HUNG_UP && !is_over(verbs, end_ns)) {
        pause_before_retry();
    }
    if (rc != 0) {
        return rc == HUNG_UP ? DM_ERR_PEER : rc;
    }
    pthread_mutex_lock(&control->lock); /* the watcher looks for new ones */
    control->sessions[node] = fd;
    pthread_mutex_unlock(&control->lock);
    return 0;
}

int verbs_sessions_open(struct verbs *verbs, struct dm_err *err) {
    char name[VERBS_TEXT];
    for (unsigned node = 0; node < dm_first_cn(&verbs->rt.fabric->topology); node++) {
        int rc = verbs->hosted[node] ? 0 : session_open(verbs, node, err);
        if (rc < 0) {
            return dm_fail_in(err, rc, "verbs: %s", verbs_node_name(verbs, node, name, sizeof(name)));
        }
    }
    return 0;
}

void verbs_sessions_close(struct verbs *verbs) {
    const struct verbs_control *control = verbs->control;
    for (unsigned node = 0; control->sessions && node < verbs->rt.fabric->node_count; node++) {
        if (control->sessions[node] >= 0) {
            close(control->sessions[node]);
        }
    }
}

int verbs_session_ensure(struct verbs *verbs, unsigned node, struct dm_err *err) {
    struct verbs_control *control = verbs->control;
    if (!control || node >= dm_first_cn(&verbs->rt.fabric->topology)) {
        return dm_fail(err, DM_ERR_UNSUPPORTED, "compute nodes of other processes cannot be reached");
    }
    return session_open(verbs, node, err);
}

int verbs_session_connect(struct verbs *verbs, unsigned node, unsigned caller, const struct verbs_end *ours,
                          struct verbs_end *theirs, struct dm_err *err) {
    struct verbs_control *control = verbs->control;
    struct wire_message request = {.kind = WIRE_CONNECT}, answer;
    request.connect.node = node;
    request.connect.caller = caller;
    request.connect.end = *ours;
    int rc = exchange(control->sessions[node], &request, WIRE_CONNECTED, &answer, err);
    if (rc != 0) {
        return rc == HUNG_UP ? DM_ERR_PEER : rc;
    }
    *theirs = answer.connect.end;
    return 0;
}

/* ---- listening -------------------------------------------------------------------------------------------------- */

static int listen_on(const struct addrinfo *at, char *text, size_t capacity) {
    char host[128], port[16];
    int one = 1, fd = socket(at->ai_family, at->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, at->ai_protocol);
    struct sockaddr_storage name;
    socklen_t name_len = sizeof(name);
    if (fd < 0) {
        return -1;
    }
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    if (bind(fd, at->ai_addr, at->ai_addrlen) < 0 || listen(fd, SOMAXCONN) < 0 ||
        getsockname(fd, (struct sockaddr *)&name, &name_len) < 0 ||
        getnameinfo((const struct sockaddr *)&name, name_len, host, sizeof(host), port, sizeof(port),
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
        close(fd);
        return -1;
    }
    snprintf(text, capacity, strchr(host, ':') ? "[%s]:%s" : "%s:%s", host, port);
    return fd;
}

int verbs_listen(const char *address, int *listener, char *text, size_t capacity, struct dm_err *err) {
    struct addrinfo *found = NULL;
    DM_TRY(address_find(address, true, &found, err));
    *listener = -1;
    for (const struct addrinfo *at = found; at && *listener < 0; at = at->ai_next) {
        *listener = listen_on(at, text, capacity);
    }
    freeaddrinfo(found);
    return *listener >= 0 ? 0 : dm_fail(err, DM_ERR_IO, "cannot listen on '%.100s': %s", address, strerror(errno));
}
