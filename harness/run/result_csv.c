/* SPDX-License-Identifier: Apache-2.0
 *
 * Results as comma-separated values.
 */
#include "harness/run/result_csv.h"

#include <string.h>

static const char *const config_columns[] = {"index", "transport", "profile", "workload",   "keys", "value_size", "cns",
                                             "mns",   "servers",   "clients", "coroutines", "rate", "seed",       NULL};
static const char *const latency_columns[] = {"mean", "min", "p50", "p90", "p99", "p99_9", "max", NULL};
static const char *const mean_columns[] = {"round_trips_mean", "bytes_read_mean", "bytes_written_mean", NULL};

void hx_csv_header(const struct hx_percentiles *percentiles, FILE *out) {
    for (const char *const *name = config_columns; *name; name++) {
        fprintf(out, "%s,", *name);
    }
    fprintf(out, "time_base,is_partial,throughput_ops_per_s,duration_s,operation,count");
    for (const char *const *name = latency_columns; *name; name++) {
        fprintf(out, ",latency_%s_ns", *name);
    }
    for (size_t i = 0; i < percentiles->count; i++) {
        fprintf(out, ",latency_%s_percent_ns", percentiles->at[i].text);
    }
    for (const char *const *name = mean_columns; *name; name++) {
        fprintf(out, ",%s", *name);
    }
    fprintf(out, "\n");
}

/* Text in quotes if it needs them, with quotes doubled. */
static void text_print(const char *text, FILE *out) {
    if (!strpbrk(text, ",\"\n")) {
        fputs(text, out);
        return;
    }
    fputc('"', out);
    for (; *text; text++) {
        fprintf(out, *text == '"' ? "\"\"" : "%c", *text);
    }
    fputc('"', out);
}

/* A member that is not there is an empty field. */
static void field_print(const json_t *value, FILE *out) {
    if (json_is_string(value)) {
        text_print(json_string_value(value), out);
    } else if (json_is_integer(value)) {
        fprintf(out, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
    } else if (json_is_real(value)) {
        fprintf(out, "%.10g", json_real_value(value));
    }
}

static void fields_print(const json_t *object, const char *const *names, const char *separator, FILE *out) {
    for (; *names; names++) {
        fputs(separator, out);
        field_print(json_object_get(object, *names), out);
        separator = ",";
    }
}

void hx_csv_print(const json_t *result, const struct hx_percentiles *percentiles, FILE *out) {
    const json_t *measure = json_array_get(json_object_get(result, "phases"), 2);
    const char *name;
    json_t *op;
    json_object_foreach(json_object_get(result, "ops"), name, op) {
        fields_print(json_object_get(result, "config"), config_columns, "", out);
        fputc(',', out);
        field_print(json_object_get(result, "time_base"), out);
        fprintf(out, ",%d,", json_is_true(json_object_get(result, "is_partial")));
        field_print(json_object_get(result, "throughput_ops_per_s"), out);
        fputc(',', out);
        field_print(json_object_get(measure, "duration_s"), out);
        fprintf(out, ",%s,", name);
        field_print(json_object_get(op, "count"), out);
        fields_print(json_object_get(op, "latency_ns"), latency_columns, ",", out);
        for (size_t i = 0; i < percentiles->count; i++) {
            fputc(',', out);
            field_print(json_object_get(json_object_get(op, "percentiles_ns"), percentiles->at[i].text), out);
        }
        fields_print(op, mean_columns, ",", out);
        fputc('\n', out);
    }
}
