/* SPDX-License-Identifier: Apache-2.0
 *
 * The terminal summary of a result.
 */
#include "harness/run/summary.h"

#include <stdbool.h>
#include <string.h>

enum { TEXT_BYTES = 32 };

/* The members of a result exist: this program wrote them, or they were checked when they were read. An absent member is
 * printed as nothing. */
static double number_of(const json_t *object, const char *name) {
    return json_number_value(json_object_get(object, name));
}

static const char *text_of(const json_t *object, const char *name) {
    const char *text = json_string_value(json_object_get(object, name));
    return text ? text : "";
}

/* A number with a unit of its size. */
static const char *scaled(double number, const char *const *units, size_t count, char *text, size_t capacity) {
    size_t unit = 0;
    while (number >= 1000 && unit + 1 < count) {
        number /= 1000;
        unit++;
    }
    const char *format = unit == 0 && number == (double)(long long)number ? "%.0f %s" : "%.2f %s";
    snprintf(text, capacity, format, number, units[unit]);
    return text;
}

const char *hx_bytes_text(double bytes, char *text, size_t capacity) {
    static const char *const units[] = {"B", "KB", "MB", "GB", "TB"};
    return scaled(bytes, units, sizeof(units) / sizeof(units[0]), text, capacity);
}

const char *hx_rate_text(double rate, char *text, size_t capacity) {
    static const char *const units[] = {"ops/s", "Kops/s", "Mops/s", "Gops/s"};
    return scaled(rate, units, sizeof(units) / sizeof(units[0]), text, capacity);
}

const char *hx_time_text(double ns, char *text, size_t capacity) {
    static const char *const units[] = {"ns", "us", "ms", "s"};
    return scaled(ns, units, sizeof(units) / sizeof(units[0]), text, capacity);
}

static void workload_print(const json_t *config, FILE *out) {
    if (*text_of(config, "replay")) {
        fprintf(out, "  workload    replay of %s", text_of(config, "replay"));
    } else if (*text_of(config, "trace")) {
        fprintf(out, "  workload    trace %s", text_of(config, "trace"));
    } else {
        fprintf(out, "  workload    %s: %s, %s", text_of(config, "workload"), text_of(config, "mix"),
                text_of(config, "distribution"));
    }
    fprintf(out, ", %.0f keys", number_of(config, "keys"));
    if (number_of(config, "key_size") > 8) {
        fprintf(out, " of %.0f B", number_of(config, "key_size"));
    }
    fprintf(out, ", %.0f B values\n", number_of(config, "value_size"));
    if (*text_of(config, "record")) {
        fprintf(out, "              recorded in %s\n", text_of(config, "record"));
    }
}

void hx_summary_what_print(const json_t *result, FILE *out) {
    const json_t *config = json_object_get(result, "config");
    const char *profile = text_of(config, "profile");
    int is_virtual = strcmp(text_of(result, "time_base"), "virtual") == 0;
    fprintf(out, "%s on %s%s%s, %s\n", text_of(config, "index"), text_of(config, "transport"), *profile ? " " : "",
            profile, is_virtual ? "simulated: virtual time" : "real time");
    workload_print(config, out);
    fprintf(out, "  cluster     %.0f compute, %.0f memory", number_of(config, "cns"), number_of(config, "mns"));
    if (number_of(config, "servers") > 0) {
        fprintf(out, ", %.0f index servers", number_of(config, "servers"));
    }
    fprintf(out, "; %.0f clients, %.0f to a thread; seed %.0f\n", number_of(config, "clients"),
            number_of(config, "coroutines"), number_of(config, "seed"));
}

static void percentiles_print(const json_t *latency, FILE *out) {
    char p50[TEXT_BYTES], p99[TEXT_BYTES];
    fprintf(out, " %12s %12s", hx_time_text(number_of(latency, "p50"), p50, sizeof(p50)),
            hx_time_text(number_of(latency, "p99"), p99, sizeof(p99)));
}

static void ops_print(const json_t *result, FILE *out) {
    bool is_open = json_object_get(result, "load") != NULL;
    fprintf(out, "\n  %-8s %12s %12s %12s", "", "count", "p50", "p99");
    if (is_open) {
        fprintf(out, " %12s %12s", "service p50", "p99");
    }
    fprintf(out, " %8s %8s %10s\n", "RTTs", "reads", "bytes");
    const char *name;
    json_t *op;
    json_object_foreach(json_object_get(result, "ops"), name, op) {
        fprintf(out, "  %-8s %12.0f", name, number_of(op, "count"));
        percentiles_print(json_object_get(op, "latency_ns"), out);
        if (is_open) {
            percentiles_print(json_object_get(op, "service_ns"), out);
        }
        fprintf(out, " %8.2f %8.2f %10.0f\n", number_of(op, "round_trips_mean"),
                number_of(json_object_get(op, "verbs_mean"), "read"),
                number_of(op, "bytes_read_mean") + number_of(op, "bytes_written_mean"));
    }
}

/* Those that were asked for. */
static void more_percentiles_print(const json_t *result, FILE *out) {
    const char *name, *percent;
    json_t *op, *ns;
    char text[TEXT_BYTES];
    json_object_foreach(json_object_get(result, "ops"), name, op) {
        json_object_foreach(json_object_get(op, "percentiles_ns"), percent, ns) {
            fprintf(out, "  %-8s %9s %% %12s\n", name, percent,
                    hx_time_text(json_number_value(ns), text, sizeof(text)));
        }
    }
}

/* Outcomes other than ok, which a reader must not overlook. */
static void outcomes_print(const json_t *result, FILE *out) {
    const char *name, *outcome;
    json_t *op, *count;
    json_object_foreach(json_object_get(result, "ops"), name, op) {
        json_object_foreach(json_object_get(op, "outcomes"), outcome, count) {
            if (strcmp(outcome, "ok") != 0) {
                fprintf(out, "  %s: %s %" JSON_INTEGER_FORMAT " times (%.3g %%)\n", name, outcome,
                        json_integer_value(count), 100 * json_number_value(count) / number_of(op, "count"));
            }
        }
    }
}

/* With read delegation and write combining: operations that used no network. */
static void shared_print(const json_t *result, FILE *out) {
    const json_t *rdwc = json_object_get(result, "rdwc");
    const char *name;
    json_t *op;
    const char *separator = "  shared     ";
    json_object_foreach(json_object_get(result, "ops"), name, op) {
        if (rdwc && json_object_get(op, "shared")) {
            fprintf(out, "%s %.1f %% of %ss", separator, 100 * number_of(op, "shared") / number_of(op, "count"), name);
            separator = ",";
        }
    }
    if (separator[0] == ',') {
        fprintf(out, " were answered by another client's operation%s\n",
                json_is_true(json_object_get(rdwc, "is_linearizable")) ? "" : "; this is not linearizable");
    }
}

static void memory_print(const json_t *result, FILE *out) {
    char text[TEXT_BYTES];
    fprintf(out, "  cache       %s a compute node\n",
            hx_bytes_text(number_of(result, "cache_bytes_per_cn"), text, sizeof(text)));
    fprintf(out, "  memory     ");
    const char *kind;
    json_t *bytes;
    const char *separator = " ";
    json_object_foreach(json_object_get(result, "memory_bytes"), kind, bytes) {
        if (json_number_value(bytes) > 0) {
            fprintf(out, "%s%s %s", separator, kind, hx_bytes_text(json_number_value(bytes), text, sizeof(text)));
            separator = ", ";
        }
    }
    fprintf(out, "%s\n", separator[0] == ',' ? "" : " none");
}

/* Time and memory that the run took on this machine. */
static void host_print(const json_t *result, FILE *out) {
    const json_t *host = json_object_get(json_object_get(result, "provenance"), "host");
    char rate[TEXT_BYTES], bytes[TEXT_BYTES];
    fprintf(out, "  host        %.2f s", number_of(host, "wall_s"));
    if (json_object_get(host, "simulated_ops_per_s")) {
        fprintf(out, ", simulated at %s", hx_rate_text(number_of(host, "simulated_ops_per_s"), rate, sizeof(rate)));
    }
    fprintf(out, ", %s at most\n", hx_bytes_text(number_of(host, "peak_rss_bytes"), bytes, sizeof(bytes)));
}

static void verify_print(const json_t *result, FILE *out) {
    const json_t *verify = json_object_get(result, "verify");
    if (!verify) {
        return;
    }
    if (number_of(verify, "broken") > 0) {
        fprintf(out, "  verify      BROKEN: %.0f problems; first: %s\n", number_of(verify, "broken"),
                text_of(verify, "first_problem"));
    } else {
        fprintf(out, "  verify      whole: %.0f keys, %.0f leaves, height %.0f, leaves %.0f %% full\n",
                number_of(verify, "keys"), number_of(verify, "leaves"), number_of(verify, "height"),
                100 * number_of(verify, "leaf_fill"));
    }
}

static void throughput_print(const json_t *result, FILE *out) {
    char text[TEXT_BYTES];
    double throughput = number_of(result, "throughput_ops_per_s");
    const json_t *measure = json_array_get(json_object_get(result, "phases"), 2);
    if (strcmp(text_of(result, "time_base"), "virtual") == 0 && number_of(measure, "duration_s") <= 0) {
        const json_t *host = json_object_get(json_object_get(result, "provenance"), "host");
        fprintf(out, "  throughput  no virtual time passed; %s of this host\n",
                hx_rate_text(number_of(host, "simulated_ops_per_s"), text, sizeof(text)));
        return;
    }
    fprintf(out, "  throughput  %s\n", hx_rate_text(throughput, text, sizeof(text)));
}

/* Of an open loop: the scheduled rate, and whether it was reached. */
static void load_print(const json_t *result, FILE *out) {
    const json_t *load = json_object_get(result, "load");
    char target[TEXT_BYTES], achieved[TEXT_BYTES], delay[TEXT_BYTES];
    if (!load) {
        return;
    }
    hx_rate_text(number_of(load, "target_ops_per_s"), target, sizeof(target));
    hx_rate_text(number_of(load, "achieved_ops_per_s"), achieved, sizeof(achieved));
    hx_time_text(number_of(load, "start_delay_max_ns"), delay, sizeof(delay));
    fprintf(out, "  load        open loop, %s arrivals at %s; latency counts from the scheduled start\n",
            text_of(json_object_get(result, "config"), "arrival"), target);
    if (!json_is_true(json_object_get(load, "is_reached"))) {
        fprintf(out, "              TARGET NOT REACHED: %s achieved, starts up to %s late\n", achieved, delay);
    }
}

/* Only what a reader must not overlook. */
static void settled_print(const json_t *result, FILE *out) {
    const json_t *settled = json_object_get(result, "settled");
    if (!json_is_object(settled) || json_is_true(json_object_get(settled, "is_settled"))) {
        return;
    }
    bool is_latency = strcmp(text_of(settled, "of"), "latency_ns") == 0;
    char first[TEXT_BYTES], second[TEXT_BYTES];
    const char *(*text)(double, char *, size_t) = is_latency ? hx_time_text : hx_rate_text;
    fprintf(out,
            "  NOT SETTLED the second half of the measurement has %s, the first %s; more --warmup may help, --interval "
            "shows the change\n",
            text(number_of(settled, "second_half"), second, sizeof(second)),
            text(number_of(settled, "first_half"), first, sizeof(first)));
}

static void partial_print(const json_t *result, FILE *out) {
    const json_t *measure = json_array_get(json_object_get(result, "phases"), 2);
    if (json_is_true(json_object_get(result, "is_partial"))) {
        fprintf(out, "  PARTIAL     interrupted: %.0f of %.0f operations were measured\n",
                number_of(measure, "operations"), number_of(json_object_get(result, "config"), "ops"));
    }
}

void hx_summary_print(const json_t *result, const char *file, FILE *out) {
    hx_summary_what_print(result, out);
    partial_print(result, out);
    throughput_print(result, out);
    load_print(result, out);
    settled_print(result, out);
    ops_print(result, out);
    more_percentiles_print(result, out);
    fprintf(out, "\n");
    outcomes_print(result, out);
    shared_print(result, out);
    const json_t *bottleneck = json_object_get(result, "bottleneck");
    if (json_is_object(bottleneck)) {
        fprintf(out, "  busiest     %s of %s node %.0f, %.1f %% of the time\n", text_of(bottleneck, "resource"),
                text_of(bottleneck, "role"), number_of(bottleneck, "node"), 100 * number_of(bottleneck, "busy"));
    }
    memory_print(result, out);
    verify_print(result, out);
    host_print(result, out);
    if (file) {
        fprintf(out, "  result      %s\n", file);
    }
}
