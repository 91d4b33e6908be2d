/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes the network of the results into the report: its parameters, its validation, and whole indexes on it beside
 * published results.
 */
#include "harness/study/report_network.h"

#include <math.h>
#include <string.h>

#include "common/opt_json.h"
#include "harness/study/html.h"
#include "transport/core/profile.h"

enum { PATH_BYTES = 4096, PROFILES_MAX = 16 };

static const char *text_of(const json_t *object, const char *name) {
    const char *text = json_string_value(json_object_get(object, name));
    return text != NULL ? text : "";
}

static double number_of(const json_t *object, const char *name) {
    return json_number_value(json_object_get(object, name));
}

/* A JSON file in the results' folder as a new object; NULL if it cannot be read. */
static json_t *load(const struct hx_page *page, const char *name) {
    char path[PATH_BYTES];
    struct dm_err err = {.text = ""};
    snprintf(path, sizeof(path), "%s/%s", page->folder, name);
    return dm_json_load(path, &err);
}

static void text_cell(FILE *out, const char *text) {
    fputs("<td>", out);
    hx_html_text(out, text);
    fputs("</td>", out);
}

/* ---- parameters ------------------------------------------------------------------------------------------------- */

struct profiles {
    struct dm_profile items[PROFILES_MAX];
    size_t count, points[PROFILES_MAX];
};

/* The profiles of the figures' points, and how many points each has. */
static void collect_profiles(const struct hx_page *page, struct profiles *profiles) {
    profiles->count = 0;
    for (size_t i = 0; i < page->points->count; i++) {
        const char *name = text_of(page->points->items[i].config, "profile");
        struct dm_err err = {.text = ""};
        size_t at = 0;
        while (at < profiles->count && strcmp(profiles->items[at].name, name) != 0) {
            at++;
        }
        if (at == profiles->count) {
            if (name[0] == '\0' || at == PROFILES_MAX || dm_profile_load(name, &profiles->items[at], &err) < 0 ||
                strcmp(profiles->items[at].name, name) != 0) {
                continue;
            }
            profiles->points[profiles->count++] = 0;
        }
        profiles->points[at]++;
    }
}

/* One number under every profile. */
static void parameter_row(FILE *out, const struct profiles *profiles, const char *name, const char *unit,
                          const char *meaning, size_t offset) {
    fprintf(out, "<tr><td><code>%s</code></td><td>", name);
    hx_html_text(out, meaning);
    fputs("</td><td>", out);
    hx_html_text(out, unit);
    fputs("</td>", out);
    for (size_t i = 0; i < profiles->count; i++) {
        double value;
        memcpy(&value, (const char *)&profiles->items[i] + offset, sizeof(value));
        fprintf(out, "<td class=\"n\">%.6g</td>", value);
    }
    fputs("</tr>\n", out);
}

static void put_parameters(const struct hx_page *page) {
    static const struct {
        const char *name, *unit, *meaning;
        size_t offset;
    } rows[] = {
#define X(name, unit, least, most, help) {#name, unit, help, offsetof(struct dm_profile, name)},
        DM_PROFILE_NUMBERS(X)
#undef X
    };
    struct profiles profiles;
    FILE *out = page->out;
    collect_profiles(page, &profiles);
    if (profiles.count == 0) {
        return;
    }
    fputs("<h3 id=\"parameters\">Its parameters</h3>\n<p>The numbers of each profile; "
          "<code>transport/profiles/NAME.json</code> has the source of each, how well it is known, and the range that "
          "sources give.</p>\n<details><summary>all parameters</summary><div class=\"wide\"><table><thead><tr>"
          "<th>parameter</th><th>meaning</th><th>unit</th>",
          out);
    for (size_t i = 0; i < profiles.count; i++) {
        fputs("<th class=\"n\">", out);
        hx_html_text(out, profiles.items[i].name);
        fprintf(out, "<br><span class=\"soft\">%zu points</span></th>", profiles.points[i]);
    }
    fputs("</tr></thead><tbody>\n", out);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        parameter_row(out, &profiles, rows[i].name, rows[i].unit, rows[i].meaning, rows[i].offset);
    }
    fputs("</tbody></table></div></details>\n", out);
}

/* ---- validation ------------------------------------------------------------------------------------------------- */

static void validation_row(FILE *out, const json_t *point) {
    fputs("<tr>", out);
    text_cell(out, text_of(point, "what"));
    text_cell(out, text_of(point, "profile"));
    fprintf(out, "<td class=\"n\">%.4g %s</td><td class=\"n\">%.4g</td><td class=\"n\">%.3f ± %.0f %%</td>",
            number_of(point, "published"), text_of(point, "unit"), number_of(point, "model"), number_of(point, "ratio"),
            number_of(point, "tolerance") * 100);
    text_cell(out, text_of(point, "kind"));
    text_cell(out, text_of(point, "verdict"));
    text_cell(out, text_of(point, "source"));
    fputs("</tr>\n", out);
}

static void put_validation(const struct hx_page *page) {
    json_t *validation = load(page, "validation.json");
    const json_t *points = json_object_get(validation, "points");
    fputs("<h3 id=\"validation\">Against published measurements</h3>\n", page->out);
    if (!json_is_array(points)) {
        fputs("<p class=\"missing\">Not here: `dmbench validate --json` into validation.json beside this page.</p>\n",
              page->out);
        json_decref(validation);
        return;
    }
    fprintf(page->out,
            "<p>%lld of %zu within their tolerance. The model's parameters are set from the rows marked calibration; "
            "the others test it. Claims of papers are no part of it.</p>\n<div class=\"wide\"><table><thead><tr>"
            "<th>what</th><th>profile</th><th class=\"n\">published</th><th class=\"n\">model</th>"
            "<th class=\"n\">ratio</th><th>use</th><th>is</th><th>source</th></tr></thead><tbody>\n",
            (long long)json_integer_value(json_object_get(validation, "within")), json_array_size(points));
    size_t at;
    json_t *point;
    json_array_foreach(points, at, point) {
        validation_row(page->out, point);
    }
    fputs("</tbody></table></div>\n", page->out);
    json_decref(validation);
}

/* ---- end to end ------------------------------------------------------------------------------------------------- */

struct experiment_counts {
    size_t points, within, holds, orders;
    double log_sum; /* of factors */
};

static struct experiment_counts experiment_count(const json_t *experiment) {
    struct experiment_counts counts = {.points = 0};
    size_t at;
    json_t *item;
    json_array_foreach(json_object_get(experiment, "points"), at, item) {
        const char *verdict = text_of(item, "verdict");
        bool run = strcmp(verdict, "in") == 0 || strcmp(verdict, "out") == 0;
        counts.points += run;
        counts.within += strcmp(verdict, "in") == 0;
        counts.log_sum += run ? fabs(log(number_of(item, "ratio"))) : 0;
    }
    json_array_foreach(json_object_get(experiment, "orders"), at, item) {
        const char *is = text_of(item, "is");
        counts.holds += strcmp(is, "holds") == 0;
        counts.orders += strcmp(is, "not judged") != 0 && strcmp(is, "tie") != 0;
    }
    return counts;
}

static void experiment_row(FILE *out, const json_t *experiment) {
    struct experiment_counts counts = experiment_count(experiment);
    fprintf(out, "<tr><td><a href=\"#experiment-%s\">", text_of(experiment, "id"));
    hx_html_text(out, text_of(experiment, "title"));
    fprintf(out, "</a></td><td class=\"n\">%zu</td><td class=\"n\">%zu</td>", counts.points, counts.within);
    if (counts.points > 0) {
        fprintf(out, "<td class=\"n\">%.2f</td>", exp(counts.log_sum / (double)counts.points));
    } else {
        fputs("<td class=\"n\">-</td>", out);
    }
    if (counts.orders > 0) {
        fprintf(out, "<td class=\"n\">%zu of %zu</td></tr>\n", counts.holds, counts.orders);
    } else {
        fputs("<td class=\"n\">-</td></tr>\n", out);
    }
}

static void experiment_point(FILE *out, const json_t *point) {
    const char *not_run = text_of(point, "not_run"), *differs = text_of(point, "differs");
    fputs("<tr>", out);
    text_cell(out, text_of(point, "label"));
    text_cell(out, text_of(point, "metric"));
    fprintf(out, "<td class=\"n\">%.4g</td>", number_of(point, "published"));
    if (not_run[0] != '\0') {
        fputs("<td class=\"n\">-</td><td class=\"n\">-</td><td>not run</td>", out);
        text_cell(out, not_run);
    } else {
        fprintf(out, "<td class=\"n\">%.4g</td><td class=\"n\">%.3f</td>", number_of(point, "ours"),
                number_of(point, "ratio"));
        text_cell(out, text_of(point, "verdict"));
        fputs("<td>", out);
        hx_html_text(out, text_of(point, "cause"));
        fputs(differs[0] != '\0' && text_of(point, "cause")[0] != '\0' ? "; " : "", out);
        hx_html_text(out, differs);
        fputs("</td>", out);
    }
    fputs("</tr>\n", out);
}

static void put_experiment(FILE *out, const json_t *experiment) {
    fprintf(out, "<details id=\"experiment-%s\"><summary>", text_of(experiment, "id"));
    hx_html_text(out, text_of(experiment, "title"));
    fputs("</summary><p class=\"soft\">Source: ", out);
    hx_html_text(out, text_of(experiment, "source"));
    fputs("</p><p class=\"soft\">Their conditions: ", out);
    hx_html_text(out, text_of(experiment, "settings"));
    fputs("</p><p class=\"soft\">Ours differ: ", out);
    hx_html_text(out, text_of(experiment, "differs"));
    fputs("</p><div class=\"wide\"><table><thead><tr><th>point</th><th>metric</th><th class=\"n\">published</th>"
          "<th class=\"n\">here</th><th class=\"n\">ratio</th><th>is</th><th>cause</th></tr></thead><tbody>\n",
          out);
    size_t at;
    json_t *point;
    json_array_foreach(json_object_get(experiment, "points"), at, point) {
        experiment_point(out, point);
    }
    fputs("</tbody></table></div></details>\n", out);
}

static void put_end_to_end(const struct hx_page *page) {
    json_t *whole = load(page, "end_to_end.json");
    const json_t *experiments = json_object_get(whole, "experiments");
    FILE *out = page->out;
    size_t at;
    json_t *experiment;
    fputs("<section id=\"end-to-end\"><h2>Beside real NICs</h2>\n", out);
    if (!json_is_array(experiments)) {
        fputs("<p class=\"missing\">Not here: <code>dmbench validate --end-to-end</code> writes end_to_end.json beside "
              "this page.</p></section>\n",
              out);
        json_decref(whole);
        return;
    }
    fputs(
        "<p>Whole indexes under the conditions of others' experiments on real NICs. No parameter is fitted to "
        "them.</p>\n<div class=\"wide\"><table><thead><tr><th>experiment</th><th class=\"n\">points run</th>"
        "<th class=\"n\">within tolerance</th><th class=\"n\">typical factor</th><th class=\"n\">orders that hold</th>"
        "</tr></thead><tbody>\n",
        out);
    json_array_foreach(experiments, at, experiment) {
        experiment_row(out, experiment);
    }
    fputs("</tbody></table></div>\n", out);
    json_array_foreach(experiments, at, experiment) {
        put_experiment(out, experiment);
    }
    fputs("</section>\n", out);
    json_decref(whole);
}

void hx_page_network(const struct hx_page *page) {
    fputs("<section id=\"network\"><h2>The simulated network</h2>\n", page->out);
    put_validation(page);
    put_parameters(page);
    fputs("</section>\n", page->out);
    put_end_to_end(page);
}
