/* SPDX-License-Identifier: Apache-2.0
 *
 * Manual pages in the macros of man(7).
 */
#include "harness/cli/man_page.h"

#include <ctype.h>
#include <string.h>

#include "common/err.h"
#include "harness/base/option_names.h"

enum { NAME_BYTES = 96, NOTES_BYTES = 1024 };

/* Text as roff prints it: a dot or a quote must not begin a line, and dashes must stay what a shell reads. */
static void text_put(const char *text, size_t length, FILE *out) {
    bool is_line_begin = true;
    for (size_t i = 0; i < length; i++) {
        if (is_line_begin && (text[i] == '.' || text[i] == '\'')) {
            fputs("\\&", out);
        }
        is_line_begin = text[i] == '\n';
        switch (text[i]) {
        case '\\':
            fputs("\\e", out);
            break;
        case '-':
            fputs("\\-", out);
            break;
        case '\'':
            fputs("\\(aq", out);
            break;
        case '`':
            fputs("\\(ga", out);
            break;
        case '^':
            fputs("\\(ha", out);
            break;
        case '~':
            fputs("\\(ti", out);
            break;
        default:
            fputc(text[i], out);
        }
    }
}

static void line_put(const char *text, FILE *out) {
    text_put(text, strlen(text), out);
    fputc('\n', out);
}

static void title_put(const char *name, FILE *out) {
    fprintf(out, ".TH \"");
    for (const char *at = name; *at; at++) {
        fputc(toupper((unsigned char)*at), out);
    }
    fprintf(out, "\" 1 \"\" \"dmbench %s\" \"User Commands\"\n", DM_VERSION);
}

/* Lines as they are, without filling. */
static void lines_put(const char *lines, const char *before, FILE *out) {
    fprintf(out, ".nf\n");
    for (const char *line = lines; *line;) {
        size_t length = strcspn(line, "\n");
        text_put(before, strlen(before), out);
        text_put(line, length, out);
        fputc('\n', out);
        line += length + (line[length] == '\n');
    }
    fprintf(out, ".fi\n");
}

static void paragraphs_put(const char *text, FILE *out) {
    for (const char *line = text; *line;) {
        size_t length = strcspn(line, "\n");
        fprintf(out, ".PP\n");
        text_put(line, length, out);
        fputc('\n', out);
        line += length + (line[length] == '\n');
    }
}

static void row_put(const struct hx_help_section *section, const struct dm_opt *row, FILE *out) {
    char typed[NAME_BYTES], notes[NOTES_BYTES];
    fprintf(out, ".TP\n\\fB");
    if (section->as) {
        snprintf(typed, sizeof(typed), "--%s %s", section->as, row->name);
    } else {
        hx_option_typed(row->name, typed, sizeof(typed));
    }
    text_put(typed, strlen(typed), out);
    fprintf(out, "\\fR \\fI%s\\fR\n", dm_opt_type_word(row));
    dm_opt_notes(row, notes, sizeof(notes));
    text_put(row->help ? row->help : "", row->help ? strlen(row->help) : 0, out);
    if (notes[0]) {
        fprintf(out, " (");
        text_put(notes, strlen(notes), out);
        fprintf(out, ")");
    }
    fprintf(out, "\n");
}

static void section_put(const struct hx_help_section *section, FILE *out) {
    fprintf(out, ".SS ");
    line_put(section->title, out);
    for (const struct hx_help_option *option = section->options; option && option->typed; option++) {
        size_t name = strcspn(option->typed, " ");
        fprintf(out, ".TP\n\\fB");
        text_put(option->typed, name, out);
        fprintf(out, "\\fR");
        text_put(option->typed + name, strlen(option->typed + name), out);
        fprintf(out, "\n");
        line_put(option->help, out);
    }
    for (const struct dm_opt *row = section->table; row && row->name; row++) {
        row_put(section, row, out);
    }
}

static void commands_put(FILE *out) {
    fprintf(out, ".SH COMMANDS\n");
    for (const struct hx_command *command = hx_commands; command->name; command++) {
        fprintf(out, ".TP\n\\fBdmbench\\-%s\\fR(1)\n", command->name);
        line_put(command->summary, out);
    }
}

static void program_put(FILE *out) {
    title_put("dmbench", out);
    fprintf(out, ".SH NAME\ndmbench \\- compare range indexes for disaggregated memory\n.SH SYNOPSIS\n"
                 "\\fBdmbench\\fR \\fICOMMAND\\fR [\\fIarguments\\fR]\n.SH DESCRIPTION\n");
    line_put(
        "Compares range indexes for disaggregated memory (trees, learned indexes and hash tables that clients reach "
        "with RDMA) on a simulated network in virtual time, on shared memory, or on RDMA hardware.",
        out);
    commands_put(out);
    fprintf(out, ".SH EXIT STATUS\n");
    line_put("0 done, 1 failed, 2 usage, 3 a check found something wrong, 130 interrupted.", out);
}

void hx_man_page_print(const struct hx_command *command, FILE *out) {
    if (!command) {
        program_put(out);
        return;
    }
    char name[NAME_BYTES];
    struct hx_help help = {.section_count = 0};
    command->describe(&help);
    snprintf(name, sizeof(name), "dmbench-%s", command->name);
    title_put(name, out);
    fprintf(out, ".SH NAME\n");
    text_put(name, strlen(name), out);
    fprintf(out, " \\- ");
    line_put(command->summary, out);
    fprintf(out, ".SH SYNOPSIS\n");
    lines_put(help.usage, "dmbench ", out);
    fprintf(out, ".SH DESCRIPTION\n");
    paragraphs_put(help.about, out);
    fprintf(out, ".SH OPTIONS\n");
    for (size_t i = 0; i < help.section_count; i++) {
        section_put(&help.sections[i], out);
    }
    if (help.examples) {
        fprintf(out, ".SH EXAMPLES\n");
        lines_put(help.examples, "", out);
    }
    if (help.status) {
        fprintf(out, ".SH EXIT STATUS\n");
        line_put(help.status, out);
    }
    fprintf(out, ".SH SEE ALSO\n\\fBdmbench\\fR(1)\n");
}
