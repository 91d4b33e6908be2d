/* SPDX-License-Identifier: Apache-2.0
 *
 * Draws figures: tables, gnuplot programs and pictures, with what the papers claim as marks. A signal takes effect
 * between two pictures, so that every picture is complete.
 */
#include "harness/study/figure_draw.h"

#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/compiler.h"
#include "common/output_file.h"
#include "harness/base/interrupts.h"
#include "harness/study/claims_marks.h"
#include "harness/study/figure_plot.h"
#include "harness/study/figure_style.h"
#include "harness/study/figure_table.h"
#include "harness/study/gnuplot.h"

enum { PATH_BYTES = 4096 };

/* Formats a path; one that is too long becomes "", so that opening it fails. */
__attribute__((format(printf, 2, 3))) static void path_set(char path[PATH_BYTES], const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    if (vsnprintf(path, PATH_BYTES, format, arguments) >= PATH_BYTES) {
        path[0] = '\0';
    }
    va_end(arguments);
}

/* The styles of systems, and what plots/style.gp makes of them. */
static int write_style(const struct hx_drawing *drawing, struct dm_err *err) {
    char from[PATH_BYTES], to[PATH_BYTES], block[PATH_BYTES];
    json_t *styles = NULL;
    path_set(from, "%s/style.gp", drawing->plots);
    path_set(to, "%s/figures/style.gp", drawing->out);
    DM_TRY(hx_fig_styles_load(drawing->plots, &styles, err));
    FILE *in = fopen(from, "r");
    FILE *out = in != NULL ? dm_output_open(to, err) : NULL;
    if (out != NULL) {
        hx_fig_styles_write(styles, out);
    }
    for (size_t bytes; out != NULL && (bytes = fread(block, 1, sizeof(block), in)) > 0;) {
        fwrite(block, 1, bytes, out);
    }
    json_decref(styles);
    if (in == NULL) {
        return dm_fail(err, DM_ERR_IO, "%s: cannot read it", from);
    }
    fclose(in);
    return out != NULL ? dm_output_close(out, to, err) : DM_ERR_IO;
}

static int draw_plot(const struct hx_drawing *drawing, const struct hx_figure *figure, const struct hx_fig_plot *plot,
                     const struct hx_fig_data *data, const struct hx_fig_marks *marks, const char *folder,
                     struct dm_err *err) {
    char path[PATH_BYTES], program[PATH_BYTES];
    path_set(path, "%s/%s.tsv", folder, plot->id);
    DM_TRY(hx_fig_table(figure, plot, drawing->points, data, path, err));
    path_set(path, "%s/%s.gp", folder, plot->id);
    DM_TRY(hx_fig_program(figure, plot, drawing->points, data, marks, &drawing->look, path, err));
    hx_pictures_remove(folder, plot->id);
    if (drawing->no_plot) {
        printf("%s/%s.tsv\n", folder, plot->id);
        return 0;
    }
    path_set(program, "%s.gp", plot->id);
    int rc = hx_gnuplot(folder, program, err);
    if (rc < 0) {
        hx_pictures_remove(folder, plot->id);
        return rc;
    }
    const bool drawn[HX_PICTURE_KINDS] = {drawing->look.png, drawing->look.svg, drawing->look.pdf};
    for (size_t i = 0; i < HX_PICTURE_KINDS; i++) {
        if (drawn[i]) {
            printf("%s/%s.%s\n", folder, plot->id, hx_picture_kinds[i]);
        }
    }
    return 0;
}

static bool interrupted(void) {
    sigset_t pending;
    return sigpending(&pending) == 0 && (sigismember(&pending, SIGINT) == 1 || sigismember(&pending, SIGTERM) == 1 ||
                                         sigismember(&pending, SIGHUP) == 1);
}

/* A plot that cannot be drawn is reported; the others are drawn. */
static int draw_plots(const struct hx_drawing *drawing, const struct hx_figure *figure, const struct hx_fig_data *data,
                      const struct hx_fig_marks *marks, struct hx_undone *undone, struct dm_err *err) {
    char folder[PATH_BYTES];
    path_set(folder, "%s/figures/%s", drawing->out, figure->id);
    DM_TRY(hx_make_folder(folder, err));
    for (size_t i = 0; i < figure->plot_count; i++) {
        if (interrupted()) {
            return dm_fail(err, DM_ERR_STOPPED, "interrupted");
        }
        int rc = draw_plot(drawing, figure, &figure->plots[i], data, marks, folder, err);
        if (rc != DM_ERR_IO) {
            DM_TRY(rc);
            continue;
        }
        fprintf(stderr, "dmbench figure: %s\n", err->text);
        undone->plots++;
    }
    return 0;
}

static int draw_figure(const struct hx_drawing *drawing, const struct hx_figure *figure, struct hx_undone *undone,
                       struct dm_err *err) {
    char absent[512];
    struct hx_fig_data data;
    struct hx_fig_marks marks = {.count = 0};
    hx_fig_absent_text(figure, absent, sizeof(absent));
    if (absent[0] != '\0') {
        fprintf(stderr, "%s: %s\n", figure->id, absent);
    }
    if (hx_figure_slots(figure) == 0) {
        return 0; /* none of its systems is built: no picture instead of an empty one */
    }
    DM_TRY(hx_fig_data_load(figure, drawing->points, &data, err));
    int rc = drawing->claims != NULL ? hx_claims_marks(drawing->claims, figure, &marks, err) : 0;
    rc = rc < 0 ? rc : draw_plots(drawing, figure, &data, &marks, undone, err);
    if (data.missing > 0) {
        fprintf(stderr, "dmbench figure: %s: %zu of its points are missing; the panels that need them say so\n",
                figure->id, data.missing);
        undone->points += data.missing;
    }
    free(marks.items);
    hx_fig_data_fini(figure, &data);
    return rc;
}

int hx_figures_draw(const struct hx_drawing *drawing, struct hx_undone *undone, struct dm_err *err) {
    sigset_t signals, old;
    hx_interrupts(&signals);
    sigprocmask(SIG_BLOCK, &signals, &old);
    int rc = write_style(drawing, err);
    for (size_t i = 0; i < drawing->figure_count && rc == 0; i++) {
        rc = draw_figure(drawing, drawing->figures[i], undone, err);
    }
    struct timespec at_once = {0};
    while (rc == DM_ERR_STOPPED && sigtimedwait(&signals, NULL, &at_once) > 0) {
    }
    sigprocmask(SIG_SETMASK, &old, NULL);
    return rc;
}
