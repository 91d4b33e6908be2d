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
        .work = DM_WORK_CACHE_PROBE, .work_units = 38, .count = 20000                                                  \
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
    { __VA_ARGS__ }

enum { JUDGES = false, CALIBRATES = true }; /* is_calibration */

static const char fusa[] = "Fusa, 128 threads, CX6", val[] = "SJTU val cluster notes", rdma_bench[] = "rdma_bench logs",
                  perftest[] = "perftest logs", xstore[] = "XStore OSDI'20", same_host[] = "CX6 same-host notes";

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
    POINT("V4", "READ batched, 1 machine", "cx6-100g-high", CALIBRATES, HX_MOPS, HX_NEAR, 66, 0.08, val, "V4", "READ",
          1, VAL(READ, 1), NOTHING),
    POINT("V4", "READ batched, 2 machines", "cx6-100g-high", JUDGES, HX_MOPS, HX_NEAR, 132, 0.08, val, "V4", "READ", 2,
          VAL(READ, 2), NOTHING),
    POINT("V4", "READ batched, 3 machines", "cx6-100g-high", CALIBRATES, HX_MOPS, HX_NEAR, 135, 0.08, val, "V4", "READ",
          3, VAL(READ, 3), NOTHING),
    POINT("V4", "WRITE batched, 1 machine", "cx6-100g-high", CALIBRATES, HX_MOPS, HX_NEAR, 57, 0.08, val, "V4", "WRITE",
          1, VAL(WRITE, 1), NOTHING),
    POINT("V4", "WRITE batched, 2 machines", "cx6-100g-high", JUDGES, HX_MOPS, HX_NEAR, 112, 0.08, val, "V4", "WRITE",
          2, VAL(WRITE, 2), NOTHING),
    POINT("V4", "WRITE batched, 3 machines", "cx6-100g-high", CALIBRATES, HX_MOPS, HX_NEAR, 123, 0.08, val, "V4",
          "WRITE", 3, VAL(WRITE, 3), NOTHING),
    POINT("V5", "FAA on one word, one queue pair", "cx6-100g", CALIBRATES, HX_MOPS, HX_NEAR, 2.15, 0.12, perftest,
          NO_CURVE, ONE_QP(FAA), NOTHING),
    POINT("V5", "FAA on one word, one queue pair", "cx5-100g", CALIBRATES, HX_MOPS, HX_NEAR, 2.15, 0.12, perftest,
          NO_CURVE, ONE_QP(FAA), NOTHING),
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
    POINT("V7", "CAS, distinct words over one word", "cx5-100g", CALIBRATES, HX_RATIO_MOPS, HX_NEAR, 25, 0.25,
          "Ziegler et al., SIGMOD'23", NO_CURVE, STRIDE(8), CONTENDED(CAS, DM_DRAM)),
    POINT("V8", "CAS on one word, on-chip over DRAM", "cx6-100g", CALIBRATES, HX_RATIO_MOPS, HX_NEAR, 4.24, 0.10,
          same_host, NO_CURVE, CONTENDED(CAS, DM_CHIP), CONTENDED(CAS, DM_DRAM)),
    POINT("V8", "CAS on one word, on-chip over DRAM", "cx5-100g", CALIBRATES, HX_RATIO_MOPS, HX_NEAR, 4.9, 0.10,
          "FORGE", NO_CURVE, CONTENDED(CAS, DM_CHIP), CONTENDED(CAS, DM_DRAM)),
    POINT("V9", "CAS batched, distinct, 1 machine", "cx6-100g-high", CALIBRATES, HX_MOPS, HX_NEAR, 25, 0.15, val, "V9",
          "CAS", 1, VAL_ATOMIC(CAS, 1), NOTHING),
    POINT("V9", "CAS batched, distinct, 2 machines", "cx6-100g-high", JUDGES, HX_MOPS, HX_NEAR, 44, 0.15, val, "V9",
          "CAS", 2, VAL_ATOMIC(CAS, 2), NOTHING),
    POINT("V9", "CAS batched, distinct, 3 machines", "cx6-100g-high", CALIBRATES, HX_MOPS, HX_NEAR, 48, 0.15, val, "V9",
          "CAS", 3, VAL_ATOMIC(CAS, 3), NOTHING),
    POINT("V9", "FAA batched, distinct, 1 machine", "cx6-100g-high", CALIBRATES, HX_MOPS, HX_NEAR, 20, 0.15, val, "V9",
          "FAA", 1, VAL_ATOMIC(FAA, 1), NOTHING),
    POINT("V9", "FAA batched, distinct, 2 machines", "cx6-100g-high", JUDGES, HX_MOPS, HX_NEAR, 40, 0.15, val, "V9",
          "FAA", 2, VAL_ATOMIC(FAA, 2), NOTHING),
    POINT("V9", "FAA batched, distinct, 3 machines", "cx6-100g-high", CALIBRATES, HX_MOPS, HX_NEAR, 48, 0.15, val, "V9",
          "FAA", 3, VAL_ATOMIC(FAA, 3), NOTHING),
    POINT("V9", "READ over CAS, batched, 3 machines", "cx6-100g-high", JUDGES, HX_RATIO_MOPS, HX_NEAR, 2.85, 0.12,
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
};
const size_t hx_published_curve_count = DM_ARRAY_LEN(hx_published_curves);

const char *hx_published_unit(enum hx_published_value value) {
    static const char *const units[] = {"M/s", "us", "Gbit/s", "", "", "us"};
    return units[value];
}

int hx_published_measure(const struct hx_published *point, double *model, struct dm_err *err) {
    struct hx_micro_fabric fabric = {.transport = "sim", .profile = point->profile, .seed = 1, .is_virtual = true};
    struct hx_micro_result a, b = {0};
    DM_TRY(hx_micro_run(&fabric, &point->a, &a, err));
    if (point->value >= HX_RATIO_MOPS) {
        DM_TRY(hx_micro_run(&fabric, &point->b, &b, err));
    }
    switch (point->value) {
    case HX_MOPS:
        *model = a.mops;
        break;
    case HX_LATENCY_US:
        *model = a.latency_us;
        break;
    case HX_GBITS:
        *model = a.mops * point->a.bytes * 8 / 1e3;
        break;
    case HX_RATIO_MOPS:
        *model = a.mops / b.mops;
        break;
    case HX_RATIO_LATENCY:
        *model = a.latency_us / b.latency_us;
        break;
    case HX_DIFFERENCE_US:
        *model = a.latency_us - b.latency_us;
        break;
    }
    return 0;
}

bool hx_published_holds(const struct hx_published *point, double model) {
    double ratio = model / point->published;
    return ratio >= 1 - point->tolerance && (point->bound == HX_AT_LEAST || ratio <= 1 + point->tolerance);
}
