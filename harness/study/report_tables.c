/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes the numbers and settings of figures as tables of the report.
 */
#include "harness/study/report_tables.h"

#include <math.h>
#include <stdlib.h>

#include "harness/base/json.h"
#include "harness/study/figure_published.h"
#include "harness/study/html.h"

/* ---- numbers ---------------------------------------------------------------------------------------------------- */

/* What a table is made of. */
struct table {
    const struct hx_page *page;
    const struct hx_figure *figure;
    const struct hx_fig_plot *plot;
    const struct hx_fig_data *data;
};

/* The metrics of a row: x, if the plot has a metric there, and then each y. */
static size_t columns(const struct hx_fig_plot *plot) {
    return plot->y_count + plot->by_metric;
}

static const struct hx_fig_metric *column(const struct hx_fig_plot *plot, size_t at) {
    return plot->by_metric ? at == 0 ? &plot->x : &plot->y[at - 1] : &plot->y[at];
}

static void table_head(const struct table *table) {
    const struct hx_figure *figure = table->figure;
    FILE *out = table->page->out;
    fputs("<thead><tr>", out);
    fputs(figure->panel_count > 1 ? "<th></th><th>" : "<th>", out);
    hx_html_text(out, figure->x_label);
    fputs("</th>", out);
    for (size_t series = 0; series < figure->series_count; series++) {
        for (size_t at = 0; at < columns(table->plot); at++) {
            fputs("<th class=\"n\">", out);
            hx_html_text(out, figure->series[series].label);
            if (columns(table->plot) > 1) {
                const struct hx_fig_metric *metric = column(table->plot, at);
                fputs("<br>", out);
                hx_html_text(out, metric->label != NULL ? metric->label : metric->column);
            }
            fputs("</th>", out);
        }
    }
    fputs("</tr></thead><tbody>\n", out);
}

static void cell(const struct table *table, const struct hx_fig_metric *metric, size_t slot) {
    FILE *out = table->page->out;
    const struct hx_point *point = &table->page->points->items[hx_figure_point(table->figure, slot, 0)];
    struct hx_fig_value value = hx_fig_value(table->figure, table->data, metric, slot);
    if (!isfinite(value.middle)) {
        fputs("<td class=\"n\">-</td>", out);
        return;
    }
    fprintf(out, "<td class=\"n\"><a href=\"%s/%s.json\">%.4g</a>", hx_point_folder(point), point->hash, value.middle);
    if (value.low < value.high) {
        fprintf(out, " <span class=\"soft\">%.4g to %.4g</span>", value.low, value.high);
    }
    fputs("</td>", out);
}

static void case_cell(const struct table *table, size_t panel, size_t at) {
    const struct hx_figure *figure = table->figure;
    FILE *out = table->page->out;
    if (figure->panel_count > 1) {
        fputs("<td>", out);
        hx_html_text(out, figure->panels[panel].label);
        fputs("</td>", out);
    }
    fputs("<td>", out);
    if (figure->x_option != NULL) {
        fprintf(out, "%.6g", hx_figure_x(figure, table->page->points, hx_figure_at(figure, panel, 0, at), at));
    } else {
        hx_html_text(out, figure->cases[at].label);
    }
    fputs("</td>", out);
}

static void case_row(const struct table *table, size_t panel, size_t at) {
    const struct hx_figure *figure = table->figure;
    fputs("<tr>", table->page->out);
    case_cell(table, panel, at);
    for (size_t series = 0; series < figure->series_count; series++) {
        for (size_t i = 0; i < columns(table->plot); i++) {
            cell(table, column(table->plot, i), hx_figure_at(figure, panel, series, at));
        }
    }
    fputs("</tr>\n", table->page->out);
}

static void case_rows(const struct table *table) {
    table_head(table);
    for (size_t panel = 0; panel < table->figure->panel_count; panel++) {
        for (size_t at = 0; at < table->figure->case_count; at++) {
            case_row(table, panel, at);
        }
    }
}

/* A row for each slice of time of a point, of its first seed. */
static void slice_rows(const struct table *table, size_t slot, const char *label) {
    FILE *out = table->page->out;
    const json_t *result = table->data->results[slot * table->figure->repeat];
    const json_t *times = hx_json_find(result, table->plot->x.path);
    const json_t *values = hx_json_find(result, table->plot->y[0].path);
    for (size_t i = 0; i < json_array_size(times) && i < json_array_size(values); i++) {
        fputs("<tr><td>", out);
        hx_html_text(out, label);
        fprintf(out, "</td><td class=\"n\">%.4g</td><td class=\"n\">%.4g</td></tr>\n",
                json_number_value(json_array_get(times, i)) * table->plot->x.factor,
                json_number_value(json_array_get(values, i)) * table->plot->y[0].factor);
    }
}

static void time_rows(const struct table *table) {
    const struct hx_figure *figure = table->figure;
    FILE *out = table->page->out;
    fputs("<thead><tr><th></th><th class=\"n\">", out);
    hx_html_text(out, table->plot->x.label != NULL ? table->plot->x.label : table->plot->x.column);
    fputs("</th><th class=\"n\">", out);
    hx_html_text(out, table->plot->y_label);
    fputs("</th></tr></thead><tbody>\n", out);
    for (size_t slot = 0; slot < hx_figure_slots(figure); slot++) {
        slice_rows(table, slot, figure->series[slot / figure->case_count % figure->series_count].label);
    }
}

/* What the paper published, beside the figure's own. */
static void published_rows(const struct table *table) {
    const struct hx_figure *figure = table->figure;
    FILE *out = table->page->out;
    for (size_t i = 0; i < figure->published_count; i++) {
        const struct hx_fig_published *item = &figure->published[i];
        bool named = figure->x_option == NULL;
        double divisor = named ? 1 : hx_figure_divisor(figure, figure->x_option);
        if (table->plot != &figure->plots[item->plot]) {
            continue;
        }
        fputs("<tr class=\"published\"><td>", out);
        hx_html_text(out, figure->panels[item->panel].label);
        fprintf(out, "</td><td colspan=\"%zu\"><b>", figure->series_count * columns(table->plot) + 1);
        hx_html_text(out, item->label);
        fputs("</b>", out);
        for (size_t at = 0; at < hx_fig_published_count(item); at++) {
            fputs(at > 0 ? "; " : ": ", out);
            if (named && !table->plot->by_metric) {
                hx_html_text(out, json_string_value(json_array_get(item->x, at)));
            } else {
                fprintf(out, "%.4g", hx_fig_published_x(figure, item, at, divisor));
            }
            fprintf(out, " %.4g", hx_fig_published_y(item, at));
        }
        fputs("</td></tr>\n", out);
    }
}

void hx_page_values(const struct hx_page *page, const struct hx_figure *figure, const struct hx_fig_plot *plot,
                    const struct hx_fig_data *data) {
    const struct table table = {.page = page, .figure = figure, .plot = plot, .data = data};
    fputs("<details class=\"values\"><summary>numbers</summary><div class=\"wide\"><table>", page->out);
    if (plot->over_time) {
        time_rows(&table);
    } else {
        case_rows(&table);
    }
    published_rows(&table);
    fputs("</tbody></table></div></details>\n", page->out);
}

/* ---- settings --------------------------------------------------------------------------------------------------- */

static int setting_row(void *arg, const char *label, const char *option, const json_t *value, const char *from) {
    FILE *out = arg;
    char *text = json_is_string(value) ? NULL : json_dumps(value, JSON_ENCODE_ANY);
    fputs("<tr><td>", out);
    hx_html_text(out, label);
    fputs(label[0] != '\0' ? ": " : "", out);
    hx_html_text(out, option);
    fputs("</td><td>", out);
    hx_html_text(out, json_is_string(value) ? json_string_value(value) : text != NULL ? text : "");
    fputs("</td><td>", out);
    hx_html_text(out, from != NULL ? from : "");
    fputs("</td></tr>\n", out);
    free(text);
    return 0;
}

static void put_source(FILE *out, const char *source) {
    fputs(" <span class=\"soft\">(", out);
    hx_html_text(out, source);
    fputs(")</span>", out);
}

void hx_page_settings(const struct hx_page *page, const struct hx_figure *figure) {
    FILE *out = page->out;
    fputs("<details><summary>settings, readings and experiments</summary><div class=\"wide\"><table>"
          "<thead><tr><th>setting</th><th>value in the paper's sizes</th><th>from</th></tr></thead><tbody>\n",
          out);
    hx_fig_settings_each(figure->spec, setting_row, out);
    fputs("</tbody></table></div>\n<ul class=\"checks\">", out);
    for (size_t i = 0; i < figure->overlays.count; i++) {
        const struct hx_fig_overlay *overlay = &figure->overlays.items[i];
        fprintf(out, "<li>%s <b>%s</b>: ", overlay->from != NULL ? "reading" : "experiment", overlay->id);
        hx_html_text(out, overlay->says);
        if (overlay->from != NULL) {
            put_source(out, overlay->from);
        }
        fputs("</li>\n", out);
    }
    for (size_t i = 0; i < figure->published_count; i++) {
        fputs("<li>", out);
        hx_html_text(out, figure->published[i].label);
        put_source(out, figure->published[i].source);
        fputs("</li>\n", out);
    }
    fputs("</ul></details>\n", out);
}
