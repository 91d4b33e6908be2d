/* SPDX-License-Identifier: Apache-2.0
 *
 * The help text of a command.
 */
#include "harness/base/help.h"

#include <string.h>

#include "common/text.h"
#include "harness/base/args.h"
#include "harness/base/option_names.h"

enum { TYPED_WIDTH_MAX = 28 };

void hx_help_add(struct hx_help *help, struct hx_help_section section) {
    if (help->section_count < HX_HELP_SECTIONS_MAX) {
        help->sections[help->section_count++] = section;
    }
}

/* Each line behind `first` or, from the second on, behind `rest`. */
static void lines_print(const char *lines, const char *first, const char *rest, FILE *out) {
    for (const char *line = lines; *line;) {
        size_t length = strcspn(line, "\n");
        fprintf(out, "%s%.*s\n", line == lines ? first : rest, (int)length, line);
        line += length + (line[length] == '\n');
    }
}

static void paragraphs_print(const char *text, FILE *out) {
    for (const char *line = text; *line;) {
        size_t length = strcspn(line, "\n");
        dm_text_wrap(line, length, 0, 0, HX_HELP_COLUMNS, out);
        line += length + (line[length] == '\n');
    }
}

static void options_print(const struct hx_help_option *options, FILE *out) {
    int width = 0;
    for (const struct hx_help_option *option = options; option->typed; option++) {
        int length = (int)strlen(option->typed);
        width = length > width && length <= TYPED_WIDTH_MAX ? length : width;
    }
    for (const struct hx_help_option *option = options; option->typed; option++) {
        int printed = fprintf(out, "  %-*s  ", width, option->typed);
        size_t column = printed > 0 ? (size_t)printed : 0;
        dm_text_wrap(option->help, strlen(option->help), column, (size_t)width + 4, HX_HELP_COLUMNS, out);
    }
}

static void section_print(const struct hx_help_section *section, FILE *out) {
    fprintf(out, "\n%s:\n", section->title);
    if (section->options) {
        options_print(section->options, out);
    }
    if (section->table && section->as) {
        hx_parameters_help(section->as, section->table, out);
    } else if (section->table) {
        hx_args_help(section->table, out);
    }
}

void hx_help_print(const struct hx_help *help, FILE *out) {
    lines_print(help->usage, "Usage: dmbench ", "       dmbench ", out);
    fprintf(out, "\n");
    paragraphs_print(help->about, out);
    if (help->examples) {
        fprintf(out, "\nExamples:\n");
        lines_print(help->examples, "  ", "  ", out);
    }
    for (size_t i = 0; i < help->section_count; i++) {
        section_print(&help->sections[i], out);
    }
    if (help->status) {
        fprintf(out, "\n");
        char status[512];
        int length = snprintf(status, sizeof(status), "Exit status: %s", help->status);
        dm_text_wrap(status, length > 0 ? strlen(status) : 0, 0, 0, HX_HELP_COLUMNS, out);
    }
}

void hx_help_show(void (*describe)(struct hx_help *help)) {
    struct hx_help help = {.section_count = 0};
    describe(&help);
    hx_help_print(&help, stdout);
}
