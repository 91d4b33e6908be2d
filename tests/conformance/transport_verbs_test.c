/* SPDX-License-Identifier: Apache-2.0
 *
 * What only `verbs` can show, on a real device: how failures are reported, that every wait is bounded, and what a
 * connection without the token gets at the control port. Skipped with the reason where there is no device.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include <poll.h>
#include <rdma/rdma_cma.h>

#include "conformance/transport_world.h"
#include "transport/verbs/verbs.h"

enum { NEVER = DM_METHOD_FIRST, ECHO };

static void open_with(struct tw *tw, const struct dm_setting *settings, size_t count,
                      const struct dm_processes *processes) {
    struct dm_fabric_config config = {.transport = "verbs",
                                      .topology = tw_topology(),
                                      .seed = TW_SEED,
                                      .chunk_bytes = TW_CHUNK_BYTES,
                                      .processes = processes,
                                      .settings = settings,
                                      .setting_count = count};
    *tw = (struct tw){.info = dm_transport_find("verbs"), .topology = config.topology};
    if (dm_fabric_open(&config, &tw->fabric, &tw->err) < 0) {
        fail_msg("%s", tw->err.text);
    }
}

/* Runs one client and expects the run's error to be of that code and to hold that text. */
static void run_failing(struct tw *tw, void (*body)(struct dm_ctx *ctx, struct tw_client *client), int code,
                        const char *text) {
    struct tw_client client = {0, 1, NULL, body};
    tw_spawn(tw, tw_first_cn(tw), 0, &client);
    int rc = dm_fabric_run(tw->fabric, &tw->err);
    tw_raise();
    assert_int_equal(rc, code);
    if (!strstr(tw->err.text, text)) {
        fail_msg("'%s' does not say '%s'", tw->err.text, text);
    }
}

/* ---- failures --------------------------------------------------------------------------------------------------- */

static void read_in_vain(struct dm_ctx *ctx, struct tw_client *client) {
    (void)client;
    uint64_t word;
    CHECK_EQ(dm_read(ctx, tw_word(1, 0), &word, 8), DM_ERR_IO);
    CHECK_EQ(dm_read(ctx, tw_word(1, 0), &word, 8), DM_ERR_IO); /* and again, at once */
    CHECK_EQ(dm_read(ctx, tw_word(0, 0), &word, 8), 0);
}

static void a_refused_verb_is_reported_with_the_node_and_the_status(void **state) {
    (void)state;
    struct tw tw;
    open_with(&tw, NULL, 0, NULL);
    verbs_of(tw.fabric)->regions[1][DM_DRAM].rkey ^= 0xff;
    run_failing(&tw, read_in_vain, DM_ERR_IO, "READ to memory node 1: remote access error");
    tw_close(&tw);
}

static void write_unsignalled_in_vain(struct dm_ctx *ctx, struct tw_client *client) {
    (void)client;
    uint64_t word = 1;
    dm_post_write(ctx, tw_word(2, 0), &word, 8);
    CHECK_EQ(dm_commit_async(ctx), 0);
    for (int rc = 0; rc == 0;) {
        rc = dm_read(ctx, tw_word(0, 0), &word, 8);
        CHECK(rc == 0 || rc == DM_ERR_IO);
    }
}

static void a_failure_of_unsignalled_work_is_returned_by_a_later_commit_to_any_node(void **state) {
    (void)state;
    struct tw tw;
    open_with(&tw, NULL, 0, NULL);
    verbs_of(tw.fabric)->regions[2][DM_DRAM].rkey ^= 0xff;
    run_failing(&tw, write_unsignalled_in_vain, DM_ERR_IO, "WRITE to memory node 2: remote access error");
    tw_close(&tw);
}

/* Each batch has its end, in order, and no atomic happens twice. */
enum { ORDERED_ROUNDS = 20000 };

static void commit_in_order(struct dm_ctx *ctx, struct tw_client *client) {
    (void)client;
    for (uint64_t round = 0; round < ORDERED_ROUNDS; round++) {
        uint64_t swapped = 0, added = 0;
        dm_post_cas(ctx, tw_word(0, 0), round, round + 1, &swapped);
        dm_post_faa(ctx, tw_word(0, 1), 1, &added);
        int rc = dm_commit(ctx);
        CHECK_EQ(rc, 0);
        CHECK_EQ(swapped, round);
        CHECK_EQ(added, round);
        if (rc < 0) {
            return;
        }
    }
    for (uint64_t round = 0; round < ORDERED_ROUNDS; round++) {
        uint64_t read = 0, written = round + 1;
        dm_post_faa(ctx, tw_word(0, 2), 1, NULL);
        dm_post_write(ctx, tw_word(0, 3), &written, 8);
        CHECK_EQ(dm_commit_async(ctx), 0);
        dm_post_read(ctx, tw_word(0, 4), &read, 8);
        dm_post_write(ctx, tw_word(0, 4), &written, 8);
        int rc = dm_commit(ctx);
        CHECK_EQ(rc, 0);
        CHECK_EQ(read, round);
        if (rc < 0) {
            return;
        }
    }
    CHECK_EQ(tw_read_word(ctx, tw_word(0, 2)), ORDERED_ROUNDS);
    CHECK_EQ(tw_read_word(ctx, tw_word(0, 3)), ORDERED_ROUNDS);
}

/* Returns the fences that the fabric counted. */
static uint64_t order_is_kept(const struct dm_setting *settings, size_t count) {
    struct tw tw;
    open_with(&tw, settings, count, NULL);
    tw_run_one(&tw, commit_in_order, NULL);
    uint64_t fences = strtoull(fabric_note(tw.fabric, "fences"), NULL, 10);
    tw_close(&tw);
    return fences;
}

/* Software RoCE with a short timer sends again much that was not lost. */
static void ordered_batches_complete_however_often_the_device_resends(void **state) {
    (void)state;
    static const struct dm_setting settings[] = {{"ack_timeout", "11"}};
    assert_int_equal(order_is_kept(settings, DM_ARRAY_LEN(settings)), 0);
}

/* As on a NIC; with a timer that never fires here. Each round has the fetch-and-add behind its compare-and-swap and the
 * write behind its fetch-and-add, and the write behind its read, if none of them shares a fence. */
static void fences_keep_the_order_too(void **state) {
    (void)state;
    static const struct dm_setting settings[] = {{"order", "fence"}, {"ack_timeout", "26"}};
    uint64_t fences = order_is_kept(settings, DM_ARRAY_LEN(settings));
    assert_in_range(fences, 3 * ORDERED_ROUNDS, 3 * ORDERED_ROUNDS + 2);
}

/* The other end goes away without a word. */
static void read_from_a_missing_node(struct dm_ctx *ctx, struct tw_client *client) {
    (void)client;
    uint64_t word;
    CHECK_EQ(dm_read(ctx, tw_word(0, 0), &word, 8), 0);
    struct verbs *verbs = verbs_of(dm_fabric_of(ctx));
    for (unsigned i = 0; i < TW_MN_CORES; i++) {
        struct verbs_thread *thread = (struct verbs_thread *)verbs->rt.fabric->nodes[0].threads[i];
        struct verbs_conn *conn = atomic_load(&thread->incoming);
        struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};
        CHECK(!conn || ibv_modify_qp(conn->qp, &attr, IBV_QP_STATE) == 0);
    }
    CHECK_EQ(dm_read(ctx, tw_word(0, 0), &word, 8), DM_ERR_PEER);
}

static void a_silent_peer_counts_as_failed_after_the_retries(void **state) {
    (void)state;
    static const struct dm_setting settings[] = {{"ack_timeout", "10"}, {"retries", "2"}};
    struct tw tw;
    open_with(&tw, settings, 2, NULL);
    run_failing(&tw, read_from_a_missing_node, DM_ERR_PEER, "READ to memory node 0: transport retry counter exceeded");
    tw_close(&tw);
}

static void call_in_vain(struct dm_ctx *ctx, struct tw_client *client) {
    (void)client;
    CHECK_EQ(dm_call(ctx, 0, NEVER, NULL, 0, NULL, NULL), DM_ERR_PEER);
}

static void a_call_without_an_answer_times_out(void **state) {
    (void)state;
    static const struct dm_setting settings[] = {{"call_timeout", "300ms"}};
    struct tw tw;
    open_with(&tw, settings, 1, NULL);
    tw_method(&tw, 0, NEVER, tw_handle_never, NULL);
    run_failing(&tw, call_in_vain, DM_ERR_PEER, "call to memory node 0: no answer within 0.3 s");
    tw_close(&tw);
}

/* Each reads from a node that takes it and from one that refuses it, in one batch. */
static void read_both(struct dm_ctx *ctx, struct tw_client *client) {
    (void)client;
    uint64_t good, bad;
    for (unsigned i = 0; i < 50; i++) {
        CHECK_EQ(dm_read(ctx, tw_word(0, 0), &good, 8), 0);
    }
    dm_post_read(ctx, tw_word(0, 0), &good, 8);
    dm_post_read(ctx, tw_word(1, 0), &bad, 8);
    int rc = dm_commit(ctx);
    CHECK(rc == DM_ERR_IO || rc == DM_ERR_PEER);
    CHECK_EQ(dm_read(ctx, tw_word(0, 0), &good, 8), 0);
}

static void contexts_that_share_a_doorbell_all_get_its_failure(void **state) {
    (void)state;
    enum { READERS = 40 }; /* on one thread; more than share a doorbell */
    struct tw tw;
    struct tw_client clients[READERS];
    open_with(&tw, NULL, 0, NULL);
    verbs_of(tw.fabric)->regions[1][DM_DRAM].rkey ^= 0xff;
    for (unsigned i = 0; i < READERS; i++) {
        clients[i] = (struct tw_client){i, READERS, NULL, read_both};
        tw_spawn(&tw, tw_first_cn(&tw), 0, &clients[i]);
    }
    int rc = dm_fabric_run(tw.fabric, &tw.err);
    tw_raise();
    assert_int_equal(rc, DM_ERR_IO);
    tw_close(&tw);
}

static void read_on_and_on(struct dm_ctx *ctx, void *arg) {
    _Atomic int *rc = arg;
    uint64_t word;
    while (*rc == 0) {
        *rc = dm_read(ctx, tw_word(0, 0), &word, 8);
    }
}

static void read_once(struct dm_ctx *ctx, struct tw_client *client) {
    (void)client;
    uint64_t word;
    CHECK_EQ(dm_read(ctx, tw_word(0, 0), &word, 8), 0);
}

static void time_between_runs_counts_for_no_limit(void **state) {
    (void)state;
    enum { LIMITS = 3, LIMIT_NS = 100000000 };
    static const struct dm_setting settings[] = {{"timeout", "100ms"}};
    struct tw tw;
    _Atomic int rc = 0;
    open_with(&tw, settings, 1, NULL);
    struct tw_client client = {0, 1, NULL, read_once};
    assert_int_equal(dm_spawn_background(tw.fabric, tw_first_cn(&tw), read_on_and_on, (void *)&rc), 0);
    for (int run = 0; run < 2; run++) {
        tw_spawn(&tw, tw_first_cn(&tw), 0, &client);
        assert_int_equal(dm_fabric_run(tw.fabric, &tw.err), 0);
        tw_raise();
        /* The read of the background context is most likely outstanding, and its thread checks the limits. */
        for (uint64_t end_ns = rt_clock_ns() + LIMITS * (uint64_t)LIMIT_NS; rt_clock_ns() < end_ns;) {
            sched_yield();
        }
        assert_int_equal(rc, 0);
    }
    tw_close(&tw);
}

static void a_missing_device_is_named(void **state) {
    (void)state;
    static const struct {
        struct dm_setting setting;
        const char *text;
    } cases[] = {
        {{"device", "no_such_device"}, "no device 'no_such_device'"},
        {{"port", "9"}, "none of number 9"},
        {{"gid", "200"}, "has no such address"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct dm_fabric_config config = {
            .transport = "verbs", .topology = tw_topology(), .settings = &cases[i].setting, .setting_count = 1};
        struct dm_fabric *fabric = NULL;
        struct dm_err err = {0};
        assert_true(dm_fabric_open(&config, &fabric, &err) < 0);
        assert_null(fabric);
        assert_non_null(strstr(err.text, cases[i].text));
    }
}

/* ---- the control port ------------------------------------------------------------------------------------------- */

struct port {
    struct tw tw;
    struct dm_processes processes;
    bool hosted[TW_MNS + TW_SERVERS + TW_CNS];
    char address[64];
    pthread_t thread;
    int rc;
};

static int serve_entry(struct dm_ctx *ctx, void *arg) {
    (void)arg;
    return dm_sleep(ctx, TW_HOUR_NS);
}

static void *serve_main(void *arg) {
    struct port *port = arg;
    int rc = 0;
    struct dm_err err = {0};
    port->rc = dm_fabric_do(port->tw.fabric, 0, serve_entry, NULL, &rc, &err);
    return NULL;
}

static int handle_echo(struct dm_ctx *ctx, void *arg, const void *req, uint32_t req_len, void *resp,
                       uint32_t *resp_len) {
    (void)ctx;
    (void)arg;
    memcpy(resp, req, req_len);
    *resp_len = req_len;
    return 7;
}

/* A process that has memory node 0 and nothing else. */
static void port_open(struct port *port) {
    *port = (struct port){.hosted = {true}};
    port->processes = (struct dm_processes){.count = 2, .hosted = port->hosted, .token = "the token"};
    struct dm_err err = {0};
    if (dm_listen("127.0.0.1:0", &port->processes.listener, port->address, sizeof(port->address), &err) < 0) {
        fail_msg("%s", err.text);
    }
    open_with(&port->tw, NULL, 0, &port->processes);
    tw_method(&port->tw, 0, ECHO, handle_echo, NULL);
    assert_int_equal(pthread_create(&port->thread, NULL, serve_main, port), 0);
}

static void port_close(struct port *port) {
    dm_fabric_stop(port->tw.fabric);
    pthread_join(port->thread, NULL);
    assert_int_equal(port->rc, DM_ERR_STOPPED);
    tw_close(&port->tw);
}

static int port_call(const struct port *port) {
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)strtoul(strchr(port->address, ':') + 1, NULL, 10)),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct timeval limit = {.tv_sec = 20};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_true(fd >= 0);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    assert_int_equal(connect(fd, (const struct sockaddr *)&to, sizeof(to)), 0);
    return fd;
}

static void send_all(int fd, const void *bytes, size_t count) {
    assert_int_equal(send(fd, bytes, count, MSG_NOSIGNAL), count);
}

static void send_message(int fd, const struct wire_message *message) {
    unsigned char bytes[WIRE_MAX];
    size_t count = verbs_wire_encode(message, bytes);
    send_all(fd, bytes, count);
}

/* The port hangs up, and has said nothing. */
static void expect_silence(int fd) {
    unsigned char byte;
    assert_true(recv(fd, &byte, 1, 0) <= 0);
    close(fd);
}

static struct wire_message expect_message(int fd, enum wire_kind kind) {
    unsigned char bytes[WIRE_MAX];
    struct wire_message message;
    assert_int_equal(recv(fd, bytes, 4, MSG_WAITALL), 4);
    int length = verbs_wire_length(bytes);
    assert_true(length > 0);
    assert_int_equal(recv(fd, bytes, (size_t)length, MSG_WAITALL), length);
    assert_int_equal(verbs_wire_decode(bytes, (size_t)length, &message), 0);
    assert_int_equal(message.kind, kind);
    return message;
}

static struct wire_message hello_of(const struct port *port) {
    struct wire_message hello = {.kind = WIRE_HELLO};
    memset(hello.hello.nonce, 0x42, WIRE_NONCE);
    hello.hello.fabric = verbs_of(port->tw.fabric)->control->fabric;
    hello.hello.caller = TW_MNS + TW_SERVERS;
    return hello;
}

/* Says HELLO, and proves to have the token to the number that comes back. */
static struct verbs_nonces greet_with(int fd, const struct wire_message *hello, const char *token) {
    struct wire_message shown = {.kind = WIRE_PROOF_SHOWN};
    struct verbs_nonces nonces;
    uint8_t key[WIRE_TOKEN];
    send_message(fd, hello);
    struct wire_message challenge = expect_message(fd, WIRE_CHALLENGE);
    memcpy(nonces.caller, hello->hello.nonce, WIRE_NONCE);
    memcpy(nonces.server, challenge.challenge.nonce, WIRE_NONCE);
    assert_true(verbs_wire_token_from(token, key));
    assert_int_equal(verbs_proof_make(key, VERBS_PROOF_CALLER, &nonces, hello, shown.proof_shown.proof), 0);
    send_message(fd, &shown);
    return nonces;
}

static void expect_refusal(int fd, int code) {
    struct wire_message refused = expect_message(fd, WIRE_REFUSED);
    assert_int_equal(refused.refused.code, code);
    expect_silence(fd);
}

static void a_proof_is_worth_nothing_on_another_connection_nor_from_the_server(void **state) {
    (void)state;
    struct port port;
    port_open(&port);
    struct wire_message hello = hello_of(&port), shown = {.kind = WIRE_PROOF_SHOWN};
    uint8_t key[WIRE_TOKEN], proof[WIRE_PROOF];
    assert_true(verbs_wire_token_from("the token", key));
    int first = port_call(&port), second = port_call(&port);
    struct verbs_nonces nonces = greet_with(first, &hello, "the token");
    struct wire_message welcome = expect_message(first, WIRE_WELCOME);
    assert_int_equal(verbs_proof_make(key, VERBS_PROOF_SERVER, &nonces, &hello, proof), 0);
    assert_true(verbs_wire_proof_equal(proof, welcome.welcome.proof));
    assert_int_equal(verbs_proof_make(key, VERBS_PROOF_CALLER, &nonces, &hello, shown.proof_shown.proof), 0);
    send_message(second, &hello);
    struct wire_message challenge = expect_message(second, WIRE_CHALLENGE);
    assert_memory_not_equal(challenge.challenge.nonce, nonces.server, WIRE_NONCE);
    send_message(second, &shown); /* that of the first one */
    expect_refusal(second, DM_ERR_PEER);
    close(first);
    port_close(&port);
}

static void connections_without_the_token_get_no_answer_and_those_with_it_still_do(void **state) {
    (void)state;
    struct port port;
    port_open(&port);
    struct wire_message hello = hello_of(&port), early = {.kind = WIRE_CONNECT};
    early.connect.end = (struct verbs_end){.mtu = 1, .slots = 1};
    int fd = port_call(&port);
    greet_with(fd, &hello, "another token");
    expect_refusal(fd, DM_ERR_PEER);
    fd = port_call(&port);
    send_message(fd, &hello);
    expect_message(fd, WIRE_CHALLENGE);
    send_message(fd, &early);
    expect_refusal(fd, DM_ERR_PEER);
    fd = port_call(&port);
    send_message(fd, &early);
    expect_silence(fd);
    fd = port_call(&port);
    send_all(fd, "GET / HTTP/1.0\r\n\r\n", 18);
    expect_silence(fd);
    fd = port_call(&port);
    send_all(fd, "\xff\xff\xff\x7f", 4);
    expect_silence(fd);
    fd = port_call(&port); /* says nothing at all: has a bounded time */
    expect_silence(fd);
    fd = port_call(&port);
    greet_with(fd, &hello, "the token");
    expect_message(fd, WIRE_WELCOME);
    close(fd);
    port_close(&port);
}

static void a_caller_with_the_token_gets_nothing_of_other_nodes_or_runs(void **state) {
    (void)state;
    struct port port;
    port_open(&port);
    struct wire_message hello = hello_of(&port);
    hello.hello.node = 1; /* another process's */
    int fd = port_call(&port);
    greet_with(fd, &hello, "the token");
    expect_refusal(fd, DM_ERR_INVALID);
    hello = hello_of(&port);
    hello.hello.fabric ^= 1;
    fd = port_call(&port);
    greet_with(fd, &hello, "the token");
    expect_refusal(fd, DM_ERR_INVALID);
    hello = hello_of(&port);
    fd = port_call(&port);
    greet_with(fd, &hello, "the token");
    expect_message(fd, WIRE_WELCOME);
    struct wire_message connect = {.kind = WIRE_CONNECT};
    connect.connect.node = 1;
    connect.connect.end = (struct verbs_end){.mtu = 1, .slots = 1};
    send_message(fd, &connect);
    expect_silence(fd);
    port_close(&port);
}

static void a_message_may_come_byte_by_byte(void **state) {
    (void)state;
    struct port port;
    port_open(&port);
    struct wire_message hello = hello_of(&port);
    unsigned char bytes[WIRE_MAX];
    size_t count = verbs_wire_encode(&hello, bytes);
    int fd = port_call(&port);
    for (size_t i = 0; i < count; i++) {
        send_all(fd, bytes + i, 1);
    }
    expect_message(fd, WIRE_CHALLENGE);
    close(fd);
    port_close(&port);
}

/* ---- connections between processes ------------------------------------------------------------------------------ */

static void use_the_other_process(struct dm_ctx *ctx, struct tw_client *client) {
    (void)client;
    uint64_t word = 0, answer = 0;
    uint32_t capacity = sizeof(answer);
    for (uint64_t i = 1; i <= 100; i++) {
        CHECK_EQ(dm_write(ctx, tw_word(0, 0), &i, 8), 0);
        CHECK_EQ(dm_read(ctx, tw_word(0, 0), &word, 8), 0);
        CHECK_EQ(word, i);
    }
    CHECK_EQ(dm_call(ctx, 0, ECHO, &word, sizeof(word), &answer, &capacity), 7);
    CHECK_EQ(answer, 100);
}

/* All nodes but memory node 0 are this process's. */
static void caller_run(const struct port *port, const char *method, const char *joined) {
    const struct dm_setting setting = {"connect", method};
    bool hosted[TW_MNS + TW_SERVERS + TW_CNS];
    const char *addresses[TW_MNS + TW_SERVERS] = {port->address};
    for (size_t i = 0; i < DM_ARRAY_LEN(hosted); i++) {
        hosted[i] = i > 0;
    }
    struct dm_processes processes = {
        .process = 1, .count = 2, .hosted = hosted, .addresses = addresses, .token = "the token", .listener = -1};
    struct tw tw;
    open_with(&tw, &setting, 1, &processes);
    struct tw_client client = {0, 1, NULL, use_the_other_process};
    tw_spawn(&tw, tw_first_cn(&tw), 0, &client);
    int rc = dm_fabric_run(tw.fabric, &tw.err);
    tw_raise();
    if (rc < 0) {
        fail_msg("connect=%s: %s", method, tw.err.text);
    }
    assert_string_equal(fabric_note(tw.fabric, "connect"), joined);
    tw_close(&tw);
}

static void processes_are_joined_by_either_method(void **state) {
    (void)state;
    struct port port;
    port_open(&port);
    caller_run(&port, "cm", "cm");
    caller_run(&port, "tcp", "tcp");
    caller_run(&port, "either", "cm");
    port_close(&port);
}

/* Opens the compute side of a run whose memory node 0 is at the address, in vain; how long that took. */
static uint64_t open_in_vain(const char *address, const char *start_timeout, const char *text) {
    const struct dm_setting settings[] = {{"timeout", "50ms"}, {"start_timeout", start_timeout}};
    bool hosted[TW_MNS + TW_SERVERS + TW_CNS];
    const char *addresses[TW_MNS + TW_SERVERS] = {address};
    for (size_t i = 0; i < DM_ARRAY_LEN(hosted); i++) {
        hosted[i] = i >= TW_MNS + TW_SERVERS;
    }
    const struct dm_processes processes = {
        .process = 1, .count = 2, .hosted = hosted, .addresses = addresses, .token = "the token", .listener = -1};
    const struct dm_fabric_config config = {.transport = "verbs",
                                            .topology = tw_topology(),
                                            .seed = TW_SEED,
                                            .chunk_bytes = TW_CHUNK_BYTES,
                                            .processes = &processes,
                                            .settings = settings,
                                            .setting_count = DM_ARRAY_LEN(settings)};
    struct dm_fabric *fabric = NULL;
    struct dm_err err = {0};
    uint64_t begin_ns = rt_clock_ns();
    assert_int_equal(dm_fabric_open(&config, &fabric, &err), DM_ERR_PEER);
    if (!strstr(err.text, "memory node 0") || !strstr(err.text, text)) {
        fail_msg("'%s' does not say '%s'", err.text, text);
    }
    return rt_clock_ns() - begin_ns;
}

/* A server registers its memory before it answers, which takes longer than a verb may. */
static void a_process_that_starts_late_has_a_limit_of_its_own(void **state) {
    (void)state;
    char address[64];
    int listener;
    struct dm_err err = {0};
    assert_int_equal(dm_listen("127.0.0.1:0", &listener, address, sizeof(address), &err), 0);
    assert_true(open_in_vain(address, "600ms", "does not answer") >= 600000000);
    close(listener);
    assert_true(open_in_vain(address, "300ms", "cannot reach") >= 300000000);
}

/* Processes of two memory nodes, each of whose threads calls the other's at the same moment. */
struct crossing {
    struct tw tw[2];
    struct dm_processes processes[2];
    bool hosted[2][TW_MNS + TW_SERVERS + TW_CNS];
    char address[2][64];
    const char *addresses[TW_MNS + TW_SERVERS];
    pthread_barrier_t start;
    _Atomic unsigned done;
    int rc[2];
};

struct crosser {
    struct crossing *crossing;
    unsigned node;
};

static void call_across(struct dm_ctx *ctx, void *arg) {
    const struct crosser *own = arg;
    uint64_t word = own->node, answer = 0;
    uint32_t capacity = sizeof(answer);
    pthread_barrier_wait(&own->crossing->start);
    CHECK_EQ(dm_call(ctx, 1 - own->node, ECHO, &word, sizeof(word), &answer, &capacity), 7);
    CHECK_EQ(answer, own->node);
    atomic_fetch_add(&own->crossing->done, 1);
    while (atomic_load(&own->crossing->done) < 2 * TW_MN_CORES) { /* the others still call this one */
        if (dm_sleep(ctx, 1000000) < 0) {
            return;
        }
    }
}

static void *cross_main(void *arg) {
    struct crosser *own = arg;
    struct tw *tw = &own->crossing->tw[own->node];
    own->crossing->rc[own->node] = dm_fabric_run(tw->fabric, &tw->err);
    if (own->crossing->rc[own->node] < 0) {
        dm_fabric_stop(own->crossing->tw[1 - own->node].fabric);
    }
    return NULL;
}

static void crossing_open(struct crossing *crossing, const char *method) {
    const struct dm_setting settings[] = {{"connect", method}, {"timeout", "5s"}};
    struct dm_err err = {0};
    for (unsigned node = 0; node < 2; node++) {
        struct dm_processes *processes = &crossing->processes[node];
        crossing->hosted[node][node] = true;
        *processes = (struct dm_processes){.process = node,
                                           .count = 2,
                                           .hosted = crossing->hosted[node],
                                           .addresses = crossing->addresses,
                                           .token = "the token"};
        if (dm_listen("127.0.0.1:0", &processes->listener, crossing->address[node], 64, &err) < 0) {
            fail_msg("%s", err.text);
        }
        crossing->addresses[node] = crossing->address[node];
        open_with(&crossing->tw[node], settings, DM_ARRAY_LEN(settings), processes);
        tw_method(&crossing->tw[node], node, ECHO, handle_echo, NULL);
    }
}

static void cross(const char *method) {
    struct crossing crossing = {.done = 0};
    struct crosser crossers[2];
    pthread_t threads[2];
    crossing_open(&crossing, method);
    pthread_barrier_init(&crossing.start, NULL, 2 * TW_MN_CORES);
    for (unsigned node = 0; node < 2; node++) {
        crossers[node] = (struct crosser){&crossing, node};
        for (unsigned i = 0; i < TW_MN_CORES; i++) {
            assert_int_equal(dm_spawn(crossing.tw[node].fabric, node, i, call_across, &crossers[node]), 0);
        }
        assert_int_equal(pthread_create(&threads[node], NULL, cross_main, &crossers[node]), 0);
    }
    for (unsigned node = 0; node < 2; node++) {
        pthread_join(threads[node], NULL);
    }
    for (unsigned node = 0; node < 2; node++) {
        if (crossing.rc[node] < 0) {
            fail_msg("connect=%s, memory node %u: %s", method, node, crossing.tw[node].err.text);
        }
    }
    tw_raise();
    for (unsigned node = 0; node < 2; node++) {
        tw_close(&crossing.tw[node]);
    }
    pthread_barrier_destroy(&crossing.start);
}

static void processes_may_connect_to_each_other_at_the_same_moment(void **state) {
    (void)state;
    for (unsigned round = 0; round < 3; round++) {
        cross("cm");
        cross("tcp");
    }
}

/* Events of one identifier, in order; 0 when none comes. */
static enum rdma_cm_event_type next_event(struct rdma_event_channel *channel) {
    struct pollfd fd = {.fd = channel->fd, .events = POLLIN};
    struct rdma_cm_event *event;
    assert_int_equal(poll(&fd, 1, 20000), 1);
    assert_int_equal(rdma_get_cm_event(channel, &event), 0);
    enum rdma_cm_event_type kind = event->event;
    rdma_ack_cm_event(event);
    return kind;
}

/* What a knock of those bytes gets. */
static enum rdma_cm_event_type knock_with(const struct port *port, const unsigned char *bytes, uint8_t count) {
    const struct verbs *verbs = verbs_of(port->tw.fabric);
    struct rdma_event_channel *channel = rdma_create_event_channel();
    struct rdma_cm_id *id = NULL;
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(verbs->control->cm.port)};
    memcpy(&to.sin_addr, verbs->ports[verbs->port_count - 1].gid.raw + 12, 4);
    struct rdma_conn_param param = {.private_data = bytes,
                                    .private_data_len = count,
                                    .responder_resources = 1,
                                    .initiator_depth = 1,
                                    .qp_num = 0x777};
    assert_non_null(channel);
    assert_int_equal(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP), 0);
    assert_int_equal(rdma_resolve_addr(id, NULL, (struct sockaddr *)&to, 5000), 0);
    assert_int_equal(next_event(channel), RDMA_CM_EVENT_ADDR_RESOLVED);
    assert_int_equal(rdma_resolve_route(id, 5000), 0);
    assert_int_equal(next_event(channel), RDMA_CM_EVENT_ROUTE_RESOLVED);
    assert_int_equal(rdma_connect(id, &param), 0);
    enum rdma_cm_event_type answer = next_event(channel);
    rdma_destroy_id(id);
    rdma_destroy_event_channel(channel);
    return answer;
}

static void the_connection_manager_rejects_requests_without_the_token(void **state) {
    (void)state;
    struct port port;
    port_open(&port);
    struct wire_message hello = hello_of(&port), right = {.kind = WIRE_CM_REQUEST};
    unsigned char bytes[WIRE_MAX];
    uint8_t key[WIRE_TOKEN];
    assert_true(verbs_wire_token_from("the token", key));
    int fd = port_call(&port);
    struct verbs_nonces nonces = greet_with(fd, &hello, "the token");
    right.cm_request.session = expect_message(fd, WIRE_WELCOME).welcome.session;
    right.cm_request.caller = TW_MNS + TW_SERVERS;
    right.cm_request.slots = 1;
    right.cm_request.mtu = IBV_MTU_1024;
    struct wire_message wrongs[] = {right, right, right, right, right};
    wrongs[0].cm_request.session ^= 1;
    wrongs[1].cm_request.node = 1; /* another process's */
    wrongs[2].cm_request.caller = 200;
    for (size_t i = 0; i < DM_ARRAY_LEN(wrongs); i++) {
        assert_int_equal(verbs_proof_request(key, &nonces, &wrongs[i], wrongs[i].cm_request.proof), 0);
    }
    wrongs[3].cm_request.proof[0] ^= 1;
    wrongs[4].cm_request.slots = 2; /* not what the proof is for */
    assert_int_equal(verbs_proof_request(key, &nonces, &right, right.cm_request.proof), 0);
    for (size_t i = 0; i < DM_ARRAY_LEN(wrongs); i++) {
        verbs_wire_encode(&wrongs[i], bytes);
        assert_int_equal(knock_with(&port, bytes + 4, WIRE_CM_REQUEST_BYTES), RDMA_CM_EVENT_REJECTED);
    }
    verbs_wire_encode(&right, bytes);
    assert_int_equal(knock_with(&port, bytes + 4, WIRE_TOKEN), RDMA_CM_EVENT_REJECTED);
    assert_int_equal(knock_with(&port, NULL, 0), RDMA_CM_EVENT_REJECTED);
    assert_int_equal(knock_with(&port, bytes + 4, WIRE_CM_REQUEST_BYTES), RDMA_CM_EVENT_CONNECT_RESPONSE);
    close(fd);
    port_close(&port);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_refused_verb_is_reported_with_the_node_and_the_status),
        cmocka_unit_test(a_failure_of_unsignalled_work_is_returned_by_a_later_commit_to_any_node),
        cmocka_unit_test(ordered_batches_complete_however_often_the_device_resends),
        cmocka_unit_test(fences_keep_the_order_too),
        cmocka_unit_test(a_silent_peer_counts_as_failed_after_the_retries),
        cmocka_unit_test(a_call_without_an_answer_times_out),
        cmocka_unit_test(contexts_that_share_a_doorbell_all_get_its_failure),
        cmocka_unit_test(time_between_runs_counts_for_no_limit),
        cmocka_unit_test(a_missing_device_is_named),
        cmocka_unit_test(a_process_that_starts_late_has_a_limit_of_its_own),
        cmocka_unit_test(connections_without_the_token_get_no_answer_and_those_with_it_still_do),
        cmocka_unit_test(a_proof_is_worth_nothing_on_another_connection_nor_from_the_server),
        cmocka_unit_test(a_caller_with_the_token_gets_nothing_of_other_nodes_or_runs),
        cmocka_unit_test(a_message_may_come_byte_by_byte),
        cmocka_unit_test(processes_are_joined_by_either_method),
        cmocka_unit_test(processes_may_connect_to_each_other_at_the_same_moment),
        cmocka_unit_test(the_connection_manager_rejects_requests_without_the_token),
    };
    if (!test_runs_on(dm_transport_find("verbs"))) {
        return 77;
    }
    return test_run("transport: verbs", tests, sizeof(tests) / sizeof(tests[0]));
}
