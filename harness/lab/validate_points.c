/* SPDX-License-Identifier: Apache-2.0
 *
 * Published micro-benchmark measurements, each with the set-up that repeats it here. The numbers are facts from the
 * sources named; docs/fabric-model.md lists which of them the profiles are calibrated on and which are only compared.
 */
#include "common/compiler.h"
#include "harness/lab/validate.h"

#define VERBS(kind, size) .verb = DM_VERB_##kind, .bytes = (size)
#define IDLE(kind, size)                                                                                               \
    { VERBS(kind, size), .count = 400 }
#define ONE_WAY(size)                                                                                                  \
    { .kind = HX_MICRO_ONE_WAY, VERBS(WRITE, size) }
/* SJTU's cluster: 12 threads per client machine, two batches in flight on each. */
#define VAL(kind, m)                                                                                                   \
    { VERBS(kind, 8), .machines = (m), .threads = 12, .coroutines = 2, .batch = 16, .addresses = 100000, .stride = 8 }
/* Atomics of one batch would be fenced, because the contract keeps their order; those of different clients are not. */
#define VAL_ATOMIC(kind, m)                                                                                            \
    { VERBS(kind, 8), .machines = (m), .threads = 12, .coroutines = 16, .addresses = 100000, .stride = 8 }
/* The loop of the original benchmark takes 60 to 150 ns per verb: here one access of memory. */
#define ONE_AT_A_TIME(m)                                                                                               \
    { VERBS(READ, 8), .machines = (m), .threads = 12, .work = DM_WORK_DRAM_ACCESS, .work_units = 1 }
#define ONE_QP(kind)                                                                                                   \
    { VERBS(kind, 8), .coroutines = 128, .addresses = 1, .stride = 8, .count = 12800 }
#define STRIDE(apart)                                                                                                  \
    {                                                                                                                  \
        VERBS(CAS, 8), .machines = 4, .threads = 32, .own_address = true, .addresses = 128, .stride = (apart),         \
                       .count = 60000                                                                                  \
    }
#define CONTENDED(kind, in)                                                                                            \
    { VERBS(kind, 8), .machines = 4, .threads = 32, .space = (in), .addresses = 1, .stride = 8, .count = 20000 }
#define PAYLOAD(size)                                                                                                  \
    { VERBS(READ, size), .machines = 6, .threads = 14, .batch = 4, .addresses = 10000, .stride = 256 }
/* XStore's authors: READs at random addresses of a table, 12 threads a machine. How many machines and coroutines is not
 * said; these fill the NIC. */
#define SIZED(size)                                                                                                    \
    { VERBS(READ, size), .machines = 7, .threads = 12, .coroutines = 8, .addresses = 100000, .stride = 1088 }
#define PAIRS(m, t)                                                                                                    \
    { VERBS(READ, 32), .machines = (m), .threads = (t), .addresses = 10000, .stride = 64 }
#define TREE(cores)                                                                                                    \
    {                                                                                                                  \
        .kind = HX_MICRO_CALL, .bytes = 16, .machines = 8, .threads = 24, .mn_cores = (cores),                         \
        .work = DM_WORK_DRAM_ACCESS, .work_units = 8                                                                   \
    }
#define RPC_CAS(cores)                                                                                                 \
    { .kind = HX_MICRO_CALL, .bytes = 16, .machines = 4, .threads = 24, .mn_cores = (cores) }
#define CHIME(size)                                                                                                    \
    { VERBS(READ, size), .machines = 10, .threads = 64, .addresses = 20000, .stride = 1024, .count = 100000 }
/* 4 compute nodes of 18 threads on 4 memory nodes: 18 threads for each. The cache lookup is their figure of 1 to 2 us.
 */
#define DOLPHIN(round_trips)                                                                                           \
    {                                                                                                                  \
        .kind = HX_MICRO_UPDATE, VERBS(WRITE, 1024), .threads = 18, .reads = (round_trips)-1,                          \
        .work = DM_WORK_CACHE_PROBE, .work_units = 83, .count = 20000                                                  \
    }

/* SMART's program: closed batches of `depth` verbs, a doorbell each. Its 48 cores have 96 hardware threads. */
#define SMART(kind, t, depth)                                                                                          \
    {                                                                                                                  \
        VERBS(kind, 8), .threads = (t), .coroutines = (depth), .closed = true, .addresses = 100000, .stride = 8,       \
                        .settings = {                                                                                  \
                            {"cn_cores", "48"}                                                                         \
                        }                                                                                              \
    }
/* RCuckoo's machines: 24 threads that share a number of requests in flight. */
#define IN_FLIGHT(kind, in, flying)                                                                                    \
    {                                                                                                                  \
        VERBS(kind, 8), .space = (in), .threads = 24, .coroutines = (flying) / 24, .own_address = true,                \
                        .addresses = 1024, .stride = 8                                                                 \
    }
#define CHIP_BOUND(kind)                                                                                               \
    {                                                                                                                  \
        VERBS(kind, 8), .space = DM_CHIP, .machines = 2, .threads = 24, .coroutines = 16, .addresses = 1024,           \
                        .stride = 64                                                                                   \
    }
#define ONE_WORD(kind, in)                                                                                             \
    { VERBS(kind, 8), .space = (in), .threads = 24, .coroutines = 16, .addresses = 1, .stride = 64, .count = 40000 }
#define QUEUE_PAIRS(kind, t, in_flight)                                                                                \
    { VERBS(kind, 8), .threads = (t), .coroutines = (in_flight), .addresses = 1024, .stride = 8, .count = 20000 }
#define INLINE_WRITES                                                                                                  \
    { VERBS(WRITE, 8), .machines = 2, .threads = 24, .coroutines = 16, .addresses = 1024, .stride = 64 }
/* An update of RACE as SMART measured it, 8 coroutines a thread: buckets, block, compare-and-swap of the slot. A thread
 * takes 4.3 us for one, of which 43 accesses are what posting, polling and switching three times leave. */
#define RACE(t, theta)                                                                                                 \
    {                                                                                                                  \
        .kind = HX_MICRO_SWAP, .bytes = 64, .threads = (t), .coroutines = 8, .reads = 1, .skew = (theta),              \
        .ranks = 100000000, .addresses = 1000000, .stride = 64, .work = DM_WORK_DRAM_ACCESS, .work_units = 43,         \
        .count = 40000                                                                                                 \
    }

#define BULK                                                                                                           \
    { VERBS(WRITE, 65536), .threads = 8, .count = 4000 }
#define BULK_SEND                                                                                                      \
    { .kind = HX_MICRO_CALL, .bytes = 16384, .threads = 32, .mn_cores = 8, .count = 20000 }
#define TREE_ALONE                                                                                                     \
    { .kind = HX_MICRO_CHARGE, .work = DM_WORK_DRAM_ACCESS, .work_units = 8 }
#define NOTHING                                                                                                        \
    { 0 }
#define NO_CURVE NULL, NULL, 0
#define POINT(...)                                                                                                     \
    { __VA_ARGS__, NULL }
/* One that is out of its tolerance, and why. */
#define POINT_WHY(cause, ...)                                                                                          \
    { __VA_ARGS__, cause }

enum { JUDGES = false, CALIBRATES = true }; /* is_calibration */

static const char fusa[] = "Fusa, 128 threads, CX6", val[] = "SJTU val cluster notes", rdma_bench[] = "rdma_bench logs",
                  perftest[] = "perftest logs", xstore[] = "XStore OSDI'20",
                  sizes[] = "SJTU-IPADS/xstore, data/rdma_raw.py", same_host[] = "CX6 same-host notes",
                  smart[] = "SMART ASPLOS'24, raw data", warm[] = "RCuckoo's raw data";

/* Why a point is out of its tolerance. */
static const char client_cpu[] = "the client's CPU bounds it: these machines post and poll slower than the profile's",
                  knee[] = "beyond 4 requests a thread that program's clients slow down for READ, WRITE and on-chip "
                           "memory alike; CAS, which the NIC bounds, does not",
                  other_host[] =
                      "an atomic's time on host memory is that of the host's PCIe: other sources of the same "
                      "NIC have 341 ns, 2.93 M/s on one word",
                  one_hold[] = "one time of an atomic for both kinds: it is that of CAS",
                  cx3_atomic[] = "ConnectX-3 takes 0.35 us longer for an atomic than for a READ; newer NICs do not",
                  chip_write[] = "writes of one on-chip word, 45 to 60 ns apart on devices, are not held up",
                  slow_switch[] =
                      "switching coroutines costs that program less than the 172 ns measured elsewhere: with "
                      "20 ns the ratios to published are 0.71 and 0.74",
                  small_reads[] =
                      "rates of small READs differ between two tables of the same cluster: V4's reach 135 M/s",
                  hot_word[] = "an atomic's time on these hosts is not published; with 980 ns, twice that of other "
                               "hosts, the four points would be 0.9, 1.0, 0.9 and 1.35";

const struct hx_published hx_published_points[] = {
    POINT("V1", "READ 64 B, idle", "cx6-100g", CALIBRATES, HX_LATENCY_US, HX_NEAR, 2.2, 0.05, "perftest and val notes",
          NO_CURVE, IDLE(READ, 64), NOTHING),
    POINT("V1", "READ 64 B, idle", "cx3-fdr", CALIBRATES, HX_LATENCY_US, HX_NEAR, 2.02, 0.15, perftest, "V1-cx3-read",
          "READ", 64, IDLE(READ, 64), NOTHING),
    POINT("V1", "READ 256 B, idle", "cx3-fdr", JUDGES, HX_LATENCY_US, HX_NEAR, 2.13, 0.15, perftest, "V1-cx3-read",
          "READ", 256, IDLE(READ, 256), NOTHING),
    POINT("V1", "READ 1 KB, idle", "cx3-fdr", JUDGES, HX_LATENCY_US, HX_NEAR, 2.70, 0.15, perftest, "V1-cx3-read",
          "READ", 1024, IDLE(READ, 1024), NOTHING),
    POINT("V1", "READ 2 KB, idle", "cx3-fdr", JUDGES, HX_LATENCY_US, HX_NEAR, 3.45, 0.15, perftest, "V1-cx3-read",
          "READ", 2048, IDLE(READ, 2048), NOTHING),
    POINT("V1", "READ 4 KB, idle", "cx3-fdr", JUDGES, HX_LATENCY_US, HX_NEAR, 4.02, 0.30, perftest, "V1-cx3-read",
          "READ", 4096, IDLE(READ, 4096), NOTHING),
    POINT("V1", "READ 8 KB less READ 64 B", "cx3-fdr", JUDGES, HX_DIFFERENCE_US, HX_NEAR, 3.06, 0.30, perftest,
          NO_CURVE, IDLE(READ, 8192), IDLE(READ, 64)),
    POINT("V1", "FAA over READ, idle", "cx6-100g", JUDGES, HX_RATIO_LATENCY, HX_NEAR, 0.985, 0.05, perftest, NO_CURVE,
          IDLE(FAA, 8), IDLE(READ, 8)),
    POINT("V1", "FAA over READ, idle", "cx5-100g", JUDGES, HX_RATIO_LATENCY, HX_NEAR, 0.985, 0.05, perftest, NO_CURVE,
          IDLE(FAA, 8), IDLE(READ, 8)),
    POINT("V1", "WRITE one way over READ, idle", "cx6-100g", JUDGES, HX_RATIO_LATENCY, HX_NEAR, 0.55, 0.15,
          "perftest logs: 0.50 to 0.60", NO_CURVE, ONE_WAY(64), IDLE(READ, 64)),
    POINT("V1", "WRITE one way over READ, idle", "cx5-100g", JUDGES, HX_RATIO_LATENCY, HX_NEAR, 0.55, 0.15,
          "perftest logs: 0.50 to 0.60", NO_CURVE, ONE_WAY(64), IDLE(READ, 64)),
    POINT("V1", "WRITE one way, 256 B less 128 B", "cx3-fdr", JUDGES, HX_DIFFERENCE_US, HX_NEAR, 0.62, 0.15, perftest,
          NO_CURVE, ONE_WAY(256), ONE_WAY(128)),
    POINT("V2", "WRITE 64 KB, RoCE, MTU 1024", "cx6-100g", JUDGES, HX_GBITS, HX_NEAR, 92.5, 0.02, perftest, NO_CURVE,
          BULK, NOTHING),
    POINT("V2", "SEND 16 KB (calls), RoCE, MTU 1024", "cx6-100g", JUDGES, HX_GBITS, HX_NEAR, 92.2, 0.02, perftest,
          NO_CURVE, BULK_SEND, NOTHING),
    POINT("V2", "WRITE 64 KB, InfiniBand, MTU 4096", "cx5-100g", JUDGES, HX_GBITS, HX_AT_LEAST, 97, 0.02, perftest,
          NO_CURVE, BULK, NOTHING),
    POINT("V3", "READ one at a time, 12 threads", "cx4-100g", JUDGES, HX_MOPS, HX_NEAR, 5.8, 0.05, val, "V3", "READ", 1,
          ONE_AT_A_TIME(1), NOTHING),
    POINT("V3", "READ one at a time, 2 x 12 threads", "cx4-100g", JUDGES, HX_MOPS, HX_NEAR, 11.4, 0.05, val, "V3",
          "READ", 2, ONE_AT_A_TIME(2), NOTHING),
    POINT("V3", "READ one at a time, 3 x 12 threads", "cx4-100g", JUDGES, HX_MOPS, HX_NEAR, 16.8, 0.05, val, "V3",
          "READ", 3, ONE_AT_A_TIME(3), NOTHING),
    POINT("V4", "READ batched, 1 machine", "cx4-100g", CALIBRATES, HX_MOPS, HX_NEAR, 66, 0.08, val, "V4", "READ", 1,
          VAL(READ, 1), NOTHING),
    POINT("V4", "READ batched, 2 machines", "cx4-100g", JUDGES, HX_MOPS, HX_NEAR, 132, 0.08, val, "V4", "READ", 2,
          VAL(READ, 2), NOTHING),
    POINT("V4", "READ batched, 3 machines", "cx4-100g", CALIBRATES, HX_MOPS, HX_NEAR, 135, 0.08, val, "V4", "READ", 3,
          VAL(READ, 3), NOTHING),
    POINT_WHY(client_cpu, "V4", "WRITE batched, 1 machine", "cx4-100g", CALIBRATES, HX_MOPS, HX_NEAR, 57, 0.08, val,
              "V4", "WRITE", 1, VAL(WRITE, 1), NOTHING),
    POINT("V4", "WRITE batched, 2 machines", "cx4-100g", JUDGES, HX_MOPS, HX_NEAR, 112, 0.08, val, "V4", "WRITE", 2,
          VAL(WRITE, 2), NOTHING),
    POINT("V4", "WRITE batched, 3 machines", "cx4-100g", CALIBRATES, HX_MOPS, HX_NEAR, 123, 0.08, val, "V4", "WRITE", 3,
          VAL(WRITE, 3), NOTHING),
    POINT("V5", "FAA on one word, one queue pair", "cx6-100g", CALIBRATES, HX_MOPS, HX_NEAR, 2.15, 0.12, perftest,
          NO_CURVE, ONE_QP(FAA), NOTHING),
    POINT_WHY(other_host, "V5", "FAA on one word, one queue pair", "cx5-100g", CALIBRATES, HX_MOPS, HX_NEAR, 2.15, 0.12,
              perftest, NO_CURVE, ONE_QP(FAA), NOTHING),
    POINT("V5", "FAA on one word, one queue pair", "cx3-fdr", CALIBRATES, HX_MOPS, HX_NEAR, 2.45, 0.12, perftest,
          NO_CURVE, ONE_QP(FAA), NOTHING),
    POINT("V6", "CAS 8 B apart", "cx6-100g", CALIBRATES, HX_MOPS, HX_NEAR, 42.3, 0.15, fusa, "V6", "CAS", 8, STRIDE(8),
          NOTHING),
    POINT("V6", "CAS 64 B apart", "cx6-100g", JUDGES, HX_MOPS, HX_NEAR, 42.3, 0.15, fusa, "V6", "CAS", 64, STRIDE(64),
          NOTHING),
    POINT("V6", "CAS 128 B apart", "cx6-100g", CALIBRATES, HX_MOPS, HX_NEAR, 42.3, 0.15, fusa, "V6", "CAS", 128,
          STRIDE(128), NOTHING),
    POINT("V6", "CAS 256 B apart", "cx6-100g", CALIBRATES, HX_MOPS, HX_NEAR, 32.6, 0.15, fusa, "V6", "CAS", 256,
          STRIDE(256), NOTHING),
    POINT("V6", "CAS 512 B apart", "cx6-100g", CALIBRATES, HX_MOPS, HX_NEAR, 16.3, 0.15, fusa, "V6", "CAS", 512,
          STRIDE(512), NOTHING),
    POINT("V6", "CAS 1 KB apart", "cx6-100g", JUDGES, HX_MOPS, HX_NEAR, 8.2, 0.15, fusa, "V6", "CAS", 1024,
          STRIDE(1024), NOTHING),
    POINT("V6", "CAS 4 KB apart", "cx6-100g", JUDGES, HX_MOPS, HX_NEAR, 2.04, 0.15, fusa, "V6", "CAS", 4096,
          STRIDE(4096), NOTHING),
    POINT_WHY(other_host, "V7", "CAS, distinct words over one word", "cx5-100g", CALIBRATES, HX_RATIO_MOPS, HX_NEAR, 25,
              0.25, "Ziegler et al., SIGMOD'23", NO_CURVE, STRIDE(8), CONTENDED(CAS, DM_DRAM)),
    POINT("V8", "CAS on one word, on-chip over DRAM", "cx6-100g", CALIBRATES, HX_RATIO_MOPS, HX_NEAR, 4.24, 0.10,
          same_host, NO_CURVE, CONTENDED(CAS, DM_CHIP), CONTENDED(CAS, DM_DRAM)),
    POINT_WHY(other_host, "V8", "CAS on one word, on-chip over DRAM", "cx5-100g", CALIBRATES, HX_RATIO_MOPS, HX_NEAR,
              4.9, 0.10, "FORGE", NO_CURVE, CONTENDED(CAS, DM_CHIP), CONTENDED(CAS, DM_DRAM)),
    POINT("V9", "CAS batched, distinct, 1 machine", "cx4-100g", CALIBRATES, HX_MOPS, HX_NEAR, 25, 0.15, val, "V9",
          "CAS", 1, VAL_ATOMIC(CAS, 1), NOTHING),
    POINT("V9", "CAS batched, distinct, 2 machines", "cx4-100g", JUDGES, HX_MOPS, HX_NEAR, 44, 0.15, val, "V9", "CAS",
          2, VAL_ATOMIC(CAS, 2), NOTHING),
    POINT("V9", "CAS batched, distinct, 3 machines", "cx4-100g", CALIBRATES, HX_MOPS, HX_NEAR, 48, 0.15, val, "V9",
          "CAS", 3, VAL_ATOMIC(CAS, 3), NOTHING),
    POINT_WHY(one_hold, "V9", "FAA batched, distinct, 1 machine", "cx4-100g", CALIBRATES, HX_MOPS, HX_NEAR, 20, 0.15,
              val, "V9", "FAA", 1, VAL_ATOMIC(FAA, 1), NOTHING),
    POINT_WHY(one_hold, "V9", "FAA batched, distinct, 2 machines", "cx4-100g", JUDGES, HX_MOPS, HX_NEAR, 40, 0.15, val,
              "V9", "FAA", 2, VAL_ATOMIC(FAA, 2), NOTHING),
    POINT("V9", "FAA batched, distinct, 3 machines", "cx4-100g", CALIBRATES, HX_MOPS, HX_NEAR, 48, 0.15, val, "V9",
          "FAA", 3, VAL_ATOMIC(FAA, 3), NOTHING),
    POINT("V9", "READ over CAS, batched, 3 machines", "cx4-100g", JUDGES, HX_RATIO_MOPS, HX_NEAR, 2.85, 0.12,
          "SJTU val cluster notes: 2.5 to 3.2", NO_CURVE, VAL(READ, 3), VAL_ATOMIC(CAS, 3)),
    POINT("V10", "READ 8 B, 6 machines", "cib-2x56g", CALIBRATES, HX_MOPS, HX_NEAR, 51.3, 0.06, rdma_bench, "V10",
          "READ", 8, PAYLOAD(8), NOTHING),
    POINT("V10", "READ 40 B", "cib-2x56g", JUDGES, HX_MOPS, HX_NEAR, 49.5, 0.06, rdma_bench, "V10", "READ", 40,
          PAYLOAD(40), NOTHING),
    POINT("V10", "READ 72 B", "cib-2x56g", CALIBRATES, HX_MOPS, HX_NEAR, 47.1, 0.06, rdma_bench, "V10", "READ", 72,
          PAYLOAD(72), NOTHING),
    POINT("V10", "READ 104 B", "cib-2x56g", JUDGES, HX_MOPS, HX_NEAR, 43.8, 0.06, rdma_bench, "V10", "READ", 104,
          PAYLOAD(104), NOTHING),
    POINT("V10", "READ 136 B", "cib-2x56g", CALIBRATES, HX_MOPS, HX_NEAR, 39.4, 0.06, rdma_bench, "V10", "READ", 136,
          PAYLOAD(136), NOTHING),
    POINT("V10", "READ 200 B", "cib-2x56g", JUDGES, HX_MOPS, HX_NEAR, 34.6, 0.06, rdma_bench, "V10", "READ", 200,
          PAYLOAD(200), NOTHING),
    POINT("V10", "READ 232 B", "cib-2x56g", CALIBRATES, HX_MOPS, HX_NEAR, 32.3, 0.06, rdma_bench, "V10", "READ", 232,
          PAYLOAD(232), NOTHING),
    POINT("V11", "READ 32 B, 154 queue pairs a NIC", "cib-2x56g", JUDGES, HX_MOPS, HX_NEAR, 47.7, 0.08, rdma_bench,
          NO_CURVE, PAIRS(11, 14), NOTHING),
    POINT("V11", "READ 32 B, 308 queue pairs over 154", "cib-2x56g", CALIBRATES, HX_RATIO_MOPS, HX_NEAR, 0.904, 0.08,
          rdma_bench, "V11-cib", "READ", 308, PAIRS(11, 28), PAIRS(11, 14)),
    POINT("V11", "READ 32 B, 616 queue pairs over 154", "cib-2x56g", CALIBRATES, HX_RATIO_MOPS, HX_NEAR, 0.769, 0.08,
          rdma_bench, "V11-cib", "READ", 616, PAIRS(11, 56), PAIRS(11, 14)),
    POINT("V11", "READ 32 B, 770 queue pairs over 154", "cib-2x56g", JUDGES, HX_RATIO_MOPS, HX_NEAR, 0.736, 0.08,
          rdma_bench, "V11-cib", "READ", 770, PAIRS(11, 70), PAIRS(11, 14)),
    POINT("V11", "READ 32 B, 924 queue pairs over 154", "cib-2x56g", JUDGES, HX_RATIO_MOPS, HX_NEAR, 0.713, 0.08,
          rdma_bench, "V11-cib", "READ", 924, PAIRS(11, 84), PAIRS(11, 14)),
    POINT("V11", "READ 32 B, 1078 queue pairs over 154", "cib-2x56g", CALIBRATES, HX_RATIO_MOPS, HX_NEAR, 0.688, 0.08,
          rdma_bench, "V11-cib", "READ", 1078, PAIRS(11, 98), PAIRS(11, 14)),
    POINT("V11", "READ 32 B, 48 queue pairs a NIC", "cx3-fdr", CALIBRATES, HX_MOPS, HX_NEAR, 11.1, 0.30, rdma_bench,
          "V11-cx3", "READ", 48, PAIRS(6, 8), NOTHING),
    POINT("V11", "READ 32 B, 88 queue pairs a NIC", "cx3-fdr", CALIBRATES, HX_MOPS, HX_NEAR, 7.7, 0.30, rdma_bench,
          "V11-cx3", "READ", 88, PAIRS(11, 8), NOTHING),
    POINT("V11", "READ 32 B, 176 queue pairs a NIC", "cx3-fdr", CALIBRATES, HX_MOPS, HX_NEAR, 2.7, 0.30, rdma_bench,
          "V11-cx3", "READ", 176, PAIRS(11, 16), NOTHING),
    POINT("V11", "READ 32 B, 352 queue pairs a NIC", "cx3-fdr", CALIBRATES, HX_MOPS, HX_NEAR, 1.5, 0.30, rdma_bench,
          "V11-cx3", "READ", 352, PAIRS(11, 32), NOTHING),
    POINT("V11", "READ 32 B, 616 queue pairs a NIC", "cx3-fdr", CALIBRATES, HX_MOPS, HX_NEAR, 1.4, 0.30, rdma_bench,
          "V11-cx3", "READ", 616, PAIRS(11, 56), NOTHING),
    POINT("V12", "tree lookup by call, 1 core", "cx4-100g", CALIBRATES, HX_MOPS, HX_NEAR, 0.95, 0.12, xstore, "V12",
          "calls", 1, TREE(1), NOTHING),
    POINT("V12", "tree lookup by call, 24 cores", "cx4-100g", JUDGES, HX_MOPS, HX_NEAR, 22.5, 0.12, xstore, "V12",
          "calls", 24, TREE(24), NOTHING),
    POINT("V12", "tree lookup by the core alone", "cx4-100g", CALIBRATES, HX_MOPS, HX_NEAR, 1.8, 0.12, xstore, NO_CURVE,
          TREE_ALONE, NOTHING),
    POINT("V12", "CAS by call, 1 core", "cx6-100g", CALIBRATES, HX_MOPS, HX_NEAR, 2.5, 0.12, "Fusa", NO_CURVE,
          RPC_CAS(1), NOTHING),
    POINT("V12", "CAS on the NIC over CAS by calls to 4 cores", "cx6-100g", JUDGES, HX_RATIO_MOPS, HX_NEAR, 4.7, 0.12,
          "Fusa", NO_CURVE, STRIDE(8), RPC_CAS(4)),
    POINT("V13", "item of 96 B over leaf of 32 of them", "cx6-100g", JUDGES, HX_RATIO_MOPS, HX_AT_LEAST, 5, 0.20,
          "SMART's plot of ART and B+ tree on r650", NO_CURVE, CHIME(96), CHIME(3072)),
    POINT("V13", "1 entry over 8 entries, keys of 64 B", "cx6-100g", JUDGES, HX_RATIO_MOPS, HX_AT_LEAST, 1.3, 0.20,
          "CHIME SOSP'24, figure 4c", NO_CURVE, CHIME(75), CHIME(600)),
    POINT("V13", "1 entry over 8 entries, keys of 8 B", "cx6-100g", JUDGES, HX_RATIO_MOPS, HX_AT_LEAST, 1.3, 0.20,
          "CHIME SOSP'24, figure 4c", NO_CURVE, CHIME(19), CHIME(152)),
    POINT("V14", "update in 2 round trips, 1 KB leaf", "cx5-100g", JUDGES, HX_LATENCY_US, HX_NEAR, 5.5, 0.15,
          "Dolphin, figure 7", NO_CURVE, DOLPHIN(2), NOTHING),
    POINT("V14", "update in 3 round trips less in 2", "cx5-100g", JUDGES, HX_DIFFERENCE_US, HX_NEAR, 1.95, 0.28,
          "Dolphin, section V.C: 1.4 to 2.5 us", NO_CURVE, DOLPHIN(3), DOLPHIN(2)),
    POINT("V15", "READ, 12 threads, 1 posted by each", "cx6-200g", CALIBRATES, HX_MOPS, HX_NEAR, 5.103, 0.15, smart,
          "V15", "1 posted", 12, SMART(READ, 12, 1), NOTHING),
    POINT("V15", "READ, 24 threads, 1 posted by each", "cx6-200g", JUDGES, HX_MOPS, HX_NEAR, 10.02, 0.15, smart, "V15",
          "1 posted", 24, SMART(READ, 24, 1), NOTHING),
    POINT("V15", "READ, 48 threads, 1 posted by each", "cx6-200g", JUDGES, HX_MOPS, HX_NEAR, 18.52, 0.15, smart, "V15",
          "1 posted", 48, SMART(READ, 48, 1), NOTHING),
    POINT_WHY(client_cpu, "V15", "READ, 96 threads, 1 posted by each", "cx6-200g", JUDGES, HX_MOPS, HX_NEAR, 32.89,
              0.15, smart, "V15", "1 posted", 96, SMART(READ, 96, 1), NOTHING),
    POINT_WHY(client_cpu, "V15", "READ, 12 threads, 8 posted by each", "cx6-200g", JUDGES, HX_MOPS, HX_NEAR, 21.8, 0.15,
              smart, "V15", "8 posted", 12, SMART(READ, 12, 8), NOTHING),
    POINT_WHY(client_cpu, "V15", "READ, 24 threads, 8 posted by each", "cx6-200g", JUDGES, HX_MOPS, HX_NEAR, 41.84,
              0.15, smart, "V15", "8 posted", 24, SMART(READ, 24, 8), NOTHING),
    POINT("V15", "READ, 48 threads, 8 posted by each", "cx6-200g", JUDGES, HX_MOPS, HX_NEAR, 75.47, 0.15, smart, "V15",
          "8 posted", 48, SMART(READ, 48, 8), NOTHING),
    POINT("V15", "READ, 72 threads, 8 posted by each", "cx6-200g", JUDGES, HX_MOPS, HX_NEAR, 98.62, 0.15, smart, "V15",
          "8 posted", 72, SMART(READ, 72, 8), NOTHING),
    POINT("V15", "READ, 96 threads, 8 posted by each", "cx6-200g", JUDGES, HX_MOPS, HX_NEAR, 110.96, 0.15, smart, "V15",
          "8 posted", 96, SMART(READ, 96, 8), NOTHING),
    POINT("V15", "READ, 12 threads, 16 posted by each", "cx6-200g", JUDGES, HX_MOPS, HX_NEAR, 31.1, 0.15, smart, "V15",
          "16 posted", 12, SMART(READ, 12, 16), NOTHING),
    POINT("V15", "READ, 24 threads, 16 posted by each", "cx6-200g", JUDGES, HX_MOPS, HX_NEAR, 60.8, 0.15, smart, "V15",
          "16 posted", 24, SMART(READ, 24, 16), NOTHING),
    POINT("V15", "READ, 48 threads, 16 posted by each", "cx6-200g", JUDGES, HX_MOPS, HX_NEAR, 102.5, 0.15, smart, "V15",
          "16 posted", 48, SMART(READ, 48, 16), NOTHING),
    POINT("V15", "READ, 60 threads, 16 posted by each", "cx6-200g", CALIBRATES, HX_MOPS, HX_NEAR, 111.0, 0.15, smart,
          "V15", "16 posted", 60, SMART(READ, 60, 16), NOTHING),
    POINT("V15", "READ, 72 threads, 16 posted by each", "cx6-200g", JUDGES, HX_MOPS, HX_NEAR, 107.1, 0.15, smart, "V15",
          "16 posted", 72, SMART(READ, 72, 16), NOTHING),
    POINT("V15", "READ, 96 threads, 16 posted by each", "cx6-200g", JUDGES, HX_MOPS, HX_NEAR, 80.1, 0.15, smart, "V15",
          "16 posted", 96, SMART(READ, 96, 16), NOTHING),
    POINT("V15", "READ, 12 threads, 32 posted by each", "cx6-200g", JUDGES, HX_MOPS, HX_NEAR, 40.4, 0.15, smart, "V15",
          "32 posted", 12, SMART(READ, 12, 32), NOTHING),
    POINT("V15", "READ, 24 threads, 32 posted by each", "cx6-200g", JUDGES, HX_MOPS, HX_NEAR, 77.0, 0.15, smart, "V15",
          "32 posted", 24, SMART(READ, 24, 32), NOTHING),
    POINT("V15", "READ, 48 threads, 32 posted by each", "cx6-200g", CALIBRATES, HX_MOPS, HX_NEAR, 104.0, 0.15, smart,
          "V15", "32 posted", 48, SMART(READ, 48, 32), NOTHING),
    POINT("V15", "READ, 60 threads, 32 posted by each", "cx6-200g", CALIBRATES, HX_MOPS, HX_NEAR, 85.7, 0.15, smart,
          "V15", "32 posted", 60, SMART(READ, 60, 32), NOTHING),
    POINT("V15", "READ, 72 threads, 32 posted by each", "cx6-200g", CALIBRATES, HX_MOPS, HX_NEAR, 73.2, 0.15, smart,
          "V15", "32 posted", 72, SMART(READ, 72, 32), NOTHING),
    POINT("V15", "READ, 96 threads, 32 posted by each", "cx6-200g", CALIBRATES, HX_MOPS, HX_NEAR, 55.0, 0.15, smart,
          "V15", "32 posted", 96, SMART(READ, 96, 32), NOTHING),
    POINT("V16", "READ, 8 threads, 8 posted, 16 registers", "cx6-200g-shared", JUDGES, HX_MOPS, HX_NEAR, 14.8, 0.2,
          smart, "V16", "8 posted", 8, SMART(READ, 8, 8), NOTHING),
    POINT("V16", "READ, 16 threads, 8 posted, 16 registers", "cx6-200g-shared", JUDGES, HX_MOPS, HX_NEAR, 29.0, 0.2,
          smart, "V16", "8 posted", 16, SMART(READ, 16, 8), NOTHING),
    POINT("V16", "READ, 24 threads, 8 posted, 16 registers", "cx6-200g-shared", JUDGES, HX_MOPS, HX_NEAR, 39.0, 0.2,
          smart, "V16", "8 posted", 24, SMART(READ, 24, 8), NOTHING),
    POINT("V16", "READ, 32 threads, 8 posted, 16 registers", "cx6-200g-shared", JUDGES, HX_MOPS, HX_NEAR, 39.1, 0.2,
          smart, "V16", "8 posted", 32, SMART(READ, 32, 8), NOTHING),
    POINT("V16", "READ, 48 threads, 8 posted, 16 registers", "cx6-200g-shared", JUDGES, HX_MOPS, HX_NEAR, 29.4, 0.2,
          smart, "V16", "8 posted", 48, SMART(READ, 48, 8), NOTHING),
    POINT("V16", "READ, 96 threads, 8 posted, 16 registers", "cx6-200g-shared", JUDGES, HX_MOPS, HX_NEAR, 19.2, 0.2,
          smart, "V16", "8 posted", 96, SMART(READ, 96, 8), NOTHING),
    POINT("V16", "READ, 8 threads, 16 posted, 16 registers", "cx6-200g-shared", JUDGES, HX_MOPS, HX_NEAR, 21.7, 0.2,
          smart, "V16", "16 posted", 8, SMART(READ, 8, 16), NOTHING),
    POINT("V16", "READ, 16 threads, 16 posted, 16 registers", "cx6-200g-shared", JUDGES, HX_MOPS, HX_NEAR, 41.5, 0.2,
          smart, "V16", "16 posted", 16, SMART(READ, 16, 16), NOTHING),
    POINT("V16", "READ, 24 threads, 16 posted, 16 registers", "cx6-200g-shared", CALIBRATES, HX_MOPS, HX_NEAR, 46.2,
          0.2, smart, "V16", "16 posted", 24, SMART(READ, 24, 16), NOTHING),
    POINT("V16", "READ, 32 threads, 16 posted, 16 registers", "cx6-200g-shared", CALIBRATES, HX_MOPS, HX_NEAR, 40.5,
          0.2, smart, "V16", "16 posted", 32, SMART(READ, 32, 16), NOTHING),
    POINT("V16", "READ, 48 threads, 16 posted, 16 registers", "cx6-200g-shared", CALIBRATES, HX_MOPS, HX_NEAR, 29.1,
          0.2, smart, "V16", "16 posted", 48, SMART(READ, 48, 16), NOTHING),
    POINT("V16", "READ, 64 threads, 16 posted, 16 registers", "cx6-200g-shared", CALIBRATES, HX_MOPS, HX_NEAR, 24.5,
          0.2, smart, "V16", "16 posted", 64, SMART(READ, 64, 16), NOTHING),
    POINT("V16", "READ, 96 threads, 16 posted, 16 registers", "cx6-200g-shared", CALIBRATES, HX_MOPS, HX_NEAR, 21.0,
          0.2, smart, "V16", "16 posted", 96, SMART(READ, 96, 16), NOTHING),
    POINT("V17", "READ, 24 in flight of 24 threads", "cx5-100g-roce", JUDGES, HX_MOPS, HX_NEAR, 8.89, 0.15, warm, "V17",
          "READ", 24, IN_FLIGHT(READ, DM_DRAM, 24), NOTHING),
    POINT("V17", "READ, 48 in flight of 24 threads", "cx5-100g-roce", JUDGES, HX_MOPS, HX_NEAR, 18.2, 0.15, warm, "V17",
          "READ", 48, IN_FLIGHT(READ, DM_DRAM, 48), NOTHING),
    POINT("V17", "READ, 96 in flight of 24 threads", "cx5-100g-roce", JUDGES, HX_MOPS, HX_NEAR, 35.3, 0.15, warm, "V17",
          "READ", 96, IN_FLIGHT(READ, DM_DRAM, 96), NOTHING),
    POINT_WHY(knee, "V17", "READ, 144 in flight of 24 threads", "cx5-100g-roce", JUDGES, HX_MOPS, HX_NEAR, 42.0, 0.15,
              warm, "V17", "READ", 144, IN_FLIGHT(READ, DM_DRAM, 144), NOTHING),
    POINT_WHY(knee, "V17", "READ, 192 in flight of 24 threads", "cx5-100g-roce", JUDGES, HX_MOPS, HX_NEAR, 53.9, 0.15,
              warm, "V17", "READ", 192, IN_FLIGHT(READ, DM_DRAM, 192), NOTHING),
    POINT_WHY(knee, "V17", "READ, 288 in flight of 24 threads", "cx5-100g-roce", JUDGES, HX_MOPS, HX_NEAR, 72.9, 0.15,
              warm, "V17", "READ", 288, IN_FLIGHT(READ, DM_DRAM, 288), NOTHING),
    POINT("V17", "READ, 384 in flight of 24 threads", "cx5-100g-roce", JUDGES, HX_MOPS, HX_NEAR, 86.7, 0.15, warm,
          "V17", "READ", 384, IN_FLIGHT(READ, DM_DRAM, 384), NOTHING),
    POINT("V17", "CAS, 24 in flight of 24 threads", "cx5-100g-roce", JUDGES, HX_MOPS, HX_NEAR, 8.71, 0.15, warm, "V17",
          "CAS", 24, IN_FLIGHT(CAS, DM_DRAM, 24), NOTHING),
    POINT("V17", "CAS, 48 in flight of 24 threads", "cx5-100g-roce", JUDGES, HX_MOPS, HX_NEAR, 18.3, 0.15, warm, "V17",
          "CAS", 48, IN_FLIGHT(CAS, DM_DRAM, 48), NOTHING),
    POINT("V17", "CAS, 96 in flight of 24 threads", "cx5-100g-roce", JUDGES, HX_MOPS, HX_NEAR, 35.7, 0.15, warm, "V17",
          "CAS", 96, IN_FLIGHT(CAS, DM_DRAM, 96), NOTHING),
    POINT("V17", "CAS, 168 in flight of 24 threads", "cx5-100g-roce", JUDGES, HX_MOPS, HX_NEAR, 51.8, 0.15, warm, "V17",
          "CAS", 168, IN_FLIGHT(CAS, DM_DRAM, 168), NOTHING),
    POINT("V17", "CAS, 264 in flight of 24 threads", "cx5-100g-roce", CALIBRATES, HX_MOPS, HX_NEAR, 51.2, 0.15, warm,
          "V17", "CAS", 264, IN_FLIGHT(CAS, DM_DRAM, 264), NOTHING),
    POINT("V17", "CAS, 360 in flight of 24 threads", "cx5-100g-roce", JUDGES, HX_MOPS, HX_NEAR, 50.6, 0.15, warm, "V17",
          "CAS", 360, IN_FLIGHT(CAS, DM_DRAM, 360), NOTHING),
    POINT("V17", "WRITE, 24 in flight of 24 threads", "cx5-100g-roce", JUDGES, HX_MOPS, HX_NEAR, 11.0, 0.15, warm,
          "V17", "WRITE", 24, IN_FLIGHT(WRITE, DM_DRAM, 24), NOTHING),
    POINT("V17", "WRITE, 96 in flight of 24 threads", "cx5-100g-roce", JUDGES, HX_MOPS, HX_NEAR, 41.3, 0.15, warm,
          "V17", "WRITE", 96, IN_FLIGHT(WRITE, DM_DRAM, 96), NOTHING),
    POINT_WHY(knee, "V17", "WRITE, 192 in flight of 24 threads", "cx5-100g-roce", JUDGES, HX_MOPS, HX_NEAR, 62.3, 0.15,
              warm, "V17", "WRITE", 192, IN_FLIGHT(WRITE, DM_DRAM, 192), NOTHING),
    POINT("V17", "WRITE, 384 in flight of 24 threads", "cx5-100g-roce", JUDGES, HX_MOPS, HX_NEAR, 107.5, 0.15, warm,
          "V17", "WRITE", 384, IN_FLIGHT(WRITE, DM_DRAM, 384), NOTHING),
    POINT("V18", "READ on chip, 24 in flight of 24 threads", "cx5-100g-roce", JUDGES, HX_MOPS, HX_NEAR, 10.2, 0.15,
          warm, "V18", "READ", 24, IN_FLIGHT(READ, DM_CHIP, 24), NOTHING),
    POINT_WHY(knee, "V18", "READ on chip, 192 in flight of 24 threads", "cx5-100g-roce", JUDGES, HX_MOPS, HX_NEAR, 60.6,
              0.15, warm, "V18", "READ", 192, IN_FLIGHT(READ, DM_CHIP, 192), NOTHING),
    POINT("V18", "READ on chip, 384 in flight of 24 threads", "cx5-100g-roce", CALIBRATES, HX_MOPS, HX_NEAR, 93.7, 0.15,
          warm, "V18", "READ", 384, IN_FLIGHT(READ, DM_CHIP, 384), NOTHING),
    POINT("V18", "CAS on chip, 24 in flight of 24 threads", "cx5-100g-roce", JUDGES, HX_MOPS, HX_NEAR, 10.3, 0.15, warm,
          "V18", "CAS", 24, IN_FLIGHT(CAS, DM_CHIP, 24), NOTHING),
    POINT_WHY(knee, "V18", "CAS on chip, 192 in flight of 24 threads", "cx5-100g-roce", JUDGES, HX_MOPS, HX_NEAR, 60.6,
              0.15, warm, "V18", "CAS", 192, IN_FLIGHT(CAS, DM_CHIP, 192), NOTHING),
    POINT("V18", "CAS on chip, 384 in flight of 24 threads", "cx5-100g-roce", CALIBRATES, HX_MOPS, HX_NEAR, 91.1, 0.15,
          warm, "V18", "CAS", 384, IN_FLIGHT(CAS, DM_CHIP, 384), NOTHING),
    POINT("V18", "READ on chip, 2 x 24 threads", "cx6-100g", JUDGES, HX_MOPS, HX_AT_LEAST, 91.9, 0.05, warm, NO_CURVE,
          CHIP_BOUND(READ), NOTHING),
    POINT("V18", "CAS on chip, 2 x 24 threads", "cx6-100g", JUDGES, HX_MOPS, HX_AT_LEAST, 88.6, 0.05, warm, NO_CURVE,
          CHIP_BOUND(CAS), NOTHING),
    POINT("V19", "CAS on one word", "cx5-100g-roce", CALIBRATES, HX_MOPS, HX_NEAR, 2.93, 0.05, warm, NO_CURVE,
          ONE_WORD(CAS, DM_DRAM), NOTHING),
    POINT_WHY(one_hold, "V19", "FAA on one word", "cx5-100g-roce", JUDGES, HX_MOPS, HX_NEAR, 2.54, 0.05, warm, NO_CURVE,
              ONE_WORD(FAA, DM_DRAM), NOTHING),
    POINT("V19", "CAS on one word on chip", "cx5-100g-roce", CALIBRATES, HX_MOPS, HX_NEAR, 8.97, 0.05, warm, NO_CURVE,
          ONE_WORD(CAS, DM_CHIP), NOTHING),
    POINT_WHY(one_hold, "V19", "FAA on one word on chip", "cx5-100g-roce", JUDGES, HX_MOPS, HX_NEAR, 7.72, 0.05, warm,
              NO_CURVE, ONE_WORD(FAA, DM_CHIP), NOTHING),
    POINT("V19", "CAS on one word on chip", "cx6-200g", CALIBRATES, HX_MOPS, HX_NEAR, 6.72, 0.05, warm, NO_CURVE,
          ONE_WORD(CAS, DM_CHIP), NOTHING),
    POINT("V19", "CAS on distinct words, one queue pair", "cx5-100g-roce", JUDGES, HX_MOPS, HX_NEAR, 2.88, 0.15, warm,
          NO_CURVE, QUEUE_PAIRS(CAS, 1, 16), NOTHING),
    POINT("V19", "CAS on distinct words, two queue pairs", "cx5-100g-roce", JUDGES, HX_MOPS, HX_NEAR, 5.74, 0.15, warm,
          NO_CURVE, QUEUE_PAIRS(CAS, 2, 16), NOTHING),
    POINT("V20", "READ of one word", "cx5-100g-roce", CALIBRATES, HX_MOPS, HX_NEAR, 23.1, 0.1, warm, NO_CURVE,
          ONE_WORD(READ, DM_DRAM), NOTHING),
    POINT("V20", "READ of one word on chip", "cx5-100g-roce", JUDGES, HX_MOPS, HX_NEAR, 93.1, 0.15, warm, NO_CURVE,
          ONE_WORD(READ, DM_CHIP), NOTHING),
    POINT("V20", "WRITE of one word", "cx5-100g-roce", JUDGES, HX_MOPS, HX_NEAR, 108.1, 0.15, warm, NO_CURVE,
          ONE_WORD(WRITE, DM_DRAM), NOTHING),
    POINT_WHY(chip_write, "V20", "WRITE of one word on chip", "cx5-100g-roce", JUDGES, HX_MOPS, HX_NEAR, 22.1, 0.15,
              warm, NO_CURVE, ONE_WORD(WRITE, DM_CHIP), NOTHING),
    POINT_WHY(chip_write, "V20", "WRITE of one word on chip", "cx6-100g", JUDGES, HX_MOPS, HX_NEAR, 16.5, 0.15, warm,
              NO_CURVE, ONE_WORD(WRITE, DM_CHIP), NOTHING),
    POINT("V21", "WRITE inline, 7 queue pairs and more", "cx5-100g-roce", CALIBRATES, HX_MOPS, HX_NEAR, 117.9, 0.03,
          warm, NO_CURVE, INLINE_WRITES, NOTHING),
    POINT("V21", "WRITE inline, 10 queue pairs and more", "cx6-200g", CALIBRATES, HX_MOPS, HX_NEAR, 152, 0.05, warm,
          NO_CURVE, INLINE_WRITES, NOTHING),
    POINT("V22", "READ 64 B, idle, half of them", "cx3-fdr", JUDGES, HX_P50_US, HX_NEAR, 2.02, 0.05, perftest, NO_CURVE,
          IDLE(READ, 64), NOTHING),
    POINT("V22", "READ 64 B, idle, 99 of 100", "cx3-fdr", JUDGES, HX_P99_US, HX_NEAR, 2.16, 0.05, perftest, NO_CURVE,
          IDLE(READ, 64), NOTHING),
    POINT_WHY(cx3_atomic, "V22", "FAA, idle, 99 of 100", "cx3-fdr", JUDGES, HX_P99_US, HX_NEAR, 2.56, 0.1, perftest,
              NO_CURVE, IDLE(FAA, 8), NOTHING),
    POINT("V23", "RACE update by theta 0.8 over uniform", "cx6-200g", JUDGES, HX_RATIO_MOPS, HX_NEAR, 1.016, 0.3, smart,
          "V23", "16 threads", 0.8, RACE(16, 0.8), RACE(16, 0)),
    POINT("V23", "RACE update by theta 0.9 over uniform", "cx6-200g", JUDGES, HX_RATIO_MOPS, HX_NEAR, 0.834, 0.3, smart,
          "V23", "16 threads", 0.9, RACE(16, 0.9), RACE(16, 0)),
    POINT_WHY(hot_word, "V23", "RACE update by theta 0.95 over uniform", "cx6-200g", JUDGES, HX_RATIO_MOPS, HX_NEAR,
              0.328, 0.3, smart, "V23", "16 threads", 0.95, RACE(16, 0.95), RACE(16, 0)),
    POINT_WHY(hot_word, "V23", "RACE update by theta 0.99 over uniform", "cx6-200g", JUDGES, HX_RATIO_MOPS, HX_NEAR,
              0.179, 0.3, smart, "V23", "16 threads", 0.99, RACE(16, 0.99), RACE(16, 0)),
    POINT("V23", "RACE update, theta 0.99, 2 threads over 1", "cx6-200g", JUDGES, HX_RATIO_MOPS, HX_NEAR, 2.3, 0.4,
          smart, "V23-threads", "theta 0.99", 2, RACE(2, 0.99), RACE(1, 0.99)),
    POINT_WHY(slow_switch, "V23", "RACE update, theta 0.99, 4 threads over 1", "cx6-200g", JUDGES, HX_RATIO_MOPS,
              HX_NEAR, 4.71, 0.4, smart, "V23-threads", "theta 0.99", 4, RACE(4, 0.99), RACE(1, 0.99)),
    POINT_WHY(slow_switch, "V23", "RACE update, theta 0.99, 8 threads over 1", "cx6-200g", JUDGES, HX_RATIO_MOPS,
              HX_NEAR, 6.64, 0.4, smart, "V23-threads", "theta 0.99", 8, RACE(8, 0.99), RACE(1, 0.99)),
    POINT("V23", "RACE update, theta 0.99, 12 threads over 1", "cx6-200g", JUDGES, HX_RATIO_MOPS, HX_NEAR, 4.0, 0.4,
          smart, "V23-threads", "theta 0.99", 12, RACE(12, 0.99), RACE(1, 0.99)),
    POINT_WHY(hot_word, "V23", "RACE update, theta 0.99, 16 threads over 1", "cx6-200g", JUDGES, HX_RATIO_MOPS, HX_NEAR,
              2.25, 0.4, smart, "V23-threads", "theta 0.99", 16, RACE(16, 0.99), RACE(1, 0.99)),
    POINT_WHY(small_reads, "V24", "READ 8 B", "cx4-100g", JUDGES, HX_MOPS, HX_NEAR, 107.4, 0.1, sizes, "V24", "READ", 8,
              SIZED(8), NOTHING),
    POINT_WHY(small_reads, "V24", "READ 16 B", "cx4-100g", JUDGES, HX_MOPS, HX_NEAR, 114.1, 0.1, sizes, "V24", "READ",
              16, SIZED(16), NOTHING),
    POINT_WHY(small_reads, "V24", "READ 64 B", "cx4-100g", JUDGES, HX_MOPS, HX_NEAR, 74.9, 0.1, sizes, "V24", "READ",
              64, SIZED(64), NOTHING),
    POINT("V24", "READ 128 B", "cx4-100g", JUDGES, HX_MOPS, HX_NEAR, 59.5, 0.1, sizes, "V24", "READ", 128, SIZED(128),
          NOTHING),
    POINT("V24", "READ 256 B", "cx4-100g", CALIBRATES, HX_MOPS, HX_NEAR, 37.0, 0.05, sizes, "V24", "READ", 256,
          SIZED(256), NOTHING),
    POINT("V24", "READ 384 B", "cx4-100g", JUDGES, HX_MOPS, HX_NEAR, 26.7, 0.05, sizes, "V24", "READ", 384, SIZED(384),
          NOTHING),
    POINT("V24", "READ 1 KB", "cx4-100g", CALIBRATES, HX_MOPS, HX_NEAR, 11.1, 0.05, sizes, "V24", "READ", 1024,
          SIZED(1024), NOTHING),
};
const size_t hx_published_count = DM_ARRAY_LEN(hx_published_points);

const struct hx_published_curve hx_published_curves[] = {
    {"V1-cx3-read", "payload (bytes)", "READ latency (us)", true},
    {"V3", "client machines", "READ rate, one at a time (M/s)", false},
    {"V4", "client machines", "batched rate (M/s)", false},
    {"V6", "distance of words (bytes)", "CAS rate (M/s)", true},
    {"V9", "client machines", "batched atomics (M/s)", false},
    {"V10", "payload (bytes)", "READ rate (M/s)", false},
    {"V11-cib", "queue pairs a NIC", "READ rate over that of 154 queue pairs", false},
    {"V11-cx3", "queue pairs a NIC", "READ rate (M/s)", false},
    {"V12", "cores", "tree lookups by call (M/s)", false},
    {"V15", "threads, a doorbell register each", "READ rate (M/s)", false},
    {"V16", "threads, 16 doorbell registers", "READ rate (M/s)", false},
    {"V17", "requests in flight", "rate on host memory (M/s)", false},
    {"V18", "requests in flight", "rate on on-chip memory (M/s)", false},
    {"V23", "Zipf constant", "updates over uniform ones", false},
    {"V23-threads", "threads", "updates over those of 1 thread", false},
    {"V24", "bytes of a READ", "READ rate (M/s)", false},
};
const size_t hx_published_curve_count = DM_ARRAY_LEN(hx_published_curves);
