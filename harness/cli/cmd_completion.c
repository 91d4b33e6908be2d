/* SPDX-License-Identifier: Apache-2.0
 *
 * `dmbench completion`: the completion of commands, options and values for a shell, made of the descriptions of the
 * commands. Names that depend on files or on other options are asked for when they are needed, with `dmbench list`.
 */
#include <stdio.h>
#include <string.h>

#include "harness/base/args.h"
#include "harness/base/errors.h"
#include "harness/base/help.h"
#include "harness/base/option_names.h"
#include "harness/cli/commands.h"
#include "harness/run/options.h"
#include "workloads/workload.h"

enum { NAME_BYTES = 96 };

/* One option of a command, whether it is a row of a table or not. */
struct option {
    char typed[NAME_BYTES];
    const char *help;
    const struct dm_opt *row; /* or NULL */
    const char *values;
};

typedef void option_visit(const char *command, const struct option *option, FILE *out);

static void section_visit(const char *command, const struct hx_help_section *section, option_visit *visit, FILE *out) {
    struct option option;
    for (const struct hx_help_option *extra = section->options; extra && extra->typed; extra++) {
        option = (struct option){.help = extra->help, .values = extra->values ? extra->values : "free"};
        snprintf(option.typed, sizeof(option.typed), "%.*s", (int)strcspn(extra->typed, " "), extra->typed);
        visit(command, &option, out);
    }
    for (const struct dm_opt *row = section->table; row && row->name && !section->as; row++) {
        option = (struct option){.help = row->help, .row = row, .values = row->values ? row->values : "free"};
        hx_option_typed(row->name, option.typed, sizeof(option.typed));
        visit(command, &option, out);
    }
}

static void options_visit(const struct hx_command *command, option_visit *visit, FILE *out) {
    struct hx_help help = {.section_count = 0};
    command->describe(&help);
    for (size_t i = 0; i < help.section_count; i++) {
        section_visit(command->name, &help.sections[i], visit, out);
    }
}

/* A line of the shell function that says what follows an option: choices, the name of something, or nothing. */
static void kind_put(const char *command, const struct option *option, FILE *out) {
    if (option->row && option->row->type == DM_OPT_BOOL) {
        return;
    }
    fprintf(out, "    '%s %s') echo '", command, option->typed);
    if (option->row && option->row->type == DM_OPT_ENUM) {
        for (const char *const *choice = option->row->choices; *choice; choice++) {
            fprintf(out, "%s%s", choice == option->row->choices ? "=" : " ", *choice);
        }
    } else {
        fprintf(out, "%s", option->values);
    }
    fprintf(out, "' ;;\n");
}

static void kinds_put(FILE *out) {
    fprintf(out, "# What the word after an option of a command is; with the command alone, what its words are.\n"
                 "_dmbench_kind() {\n    case \"$1 $2\" in\n");
    for (const struct hx_command *command = hx_commands; command->name; command++) {
        struct hx_help help = {.section_count = 0};
        command->describe(&help);
        options_visit(command, kind_put, out);
        if (help.words) {
            fprintf(out, "    '%s ') echo '%s' ;;\n", command->name, help.words);
        }
    }
    fprintf(out, "    esac\n}\n\n");
}

static void typed_put(const char *command, const struct option *option, FILE *out) {
    (void)command;
    fprintf(out, " %s", option->typed);
}

static void table_names_put(const struct dm_opt *table, FILE *out) {
    for (const struct dm_opt *row = table; row->name; row++) {
        fprintf(out, " %s=", row->name);
    }
}

/* Names that a grid of a sweep can have. */
static void grid_names_put(FILE *out) {
    fprintf(out, "_dmbench_grid='set. transport_set.");
    for (const struct hx_group *group = hx_run_groups; group->title; group++) {
        table_names_put(group->table, out);
    }
    table_names_put(wl_options, out);
    fprintf(out, "'\n\n");
}

/* The same in both shells: prints the words that a kind stands for. $1 the kind, $2 the program, then the line. */
static const char words_function[] =
    "_dmbench_words() {\n"
    "    local kind=$1 program=$2 index=sherman transport=sim before='' word\n"
    "    shift 2\n"
    "    for word in \"$@\"; do\n"
    "        case $before in\n"
    "        --index) index=$word ;;\n"
    "        --transport) transport=$word ;;\n"
    "        esac\n"
    "        case $word in\n"
    "        --index=*) index=${word#*'='} ;;\n"
    "        --transport=*) transport=${word#*'='} ;;\n"
    "        '=') ;;\n"
    "        *) before=$word ;;\n"
    "        esac\n"
    "    done\n"
    "    case $kind in\n"
    "    '='*) echo \"${kind#=}\" ;;\n"
    "    indexes | transports | profiles | workloads | figures) \"$program\" list \"$kind\" --names 2>/dev/null ;;\n"
    "    set) \"$program\" list indexes \"$index\" --names 2>/dev/null | sed 's/$/=/' ;;\n"
    "    transport_set) \"$program\" list transports \"$transport\" --names 2>/dev/null | sed 's/$/=/' ;;\n"
    "    option) echo \"$_dmbench_grid\" ;;\n"
    "    esac\n"
    "}\n\n";

static void options_function_put(FILE *out) {
    fprintf(out, "_dmbench_options() {\n    case $1 in\n");
    for (const struct hx_command *command = hx_commands; command->name; command++) {
        fprintf(out, "    %s) echo '--help", command->name);
        options_visit(command, typed_put, out);
        fprintf(out, "' ;;\n");
    }
    fprintf(out, "    esac\n}\n\n");
}

static void bash_put(FILE *out) {
    fprintf(out, "# bash completion of dmbench; made by `dmbench completion bash`\n# shellcheck shell=bash\n\n");
    kinds_put(out);
    grid_names_put(out);
    fprintf(out, "%s", words_function);
    options_function_put(out);
    fprintf(out, "_dmbench() {\n"
                 "    local current=${COMP_WORDS[COMP_CWORD]} option=${COMP_WORDS[COMP_CWORD - 1]} kind='' words=''\n"
                 "    COMPREPLY=()\n"
                 "    if [[ $COMP_CWORD -eq 1 ]]; then\n"
                 "        words='--help --version help");
    for (const struct hx_command *command = hx_commands; command->name; command++) {
        fprintf(out, " %s", command->name);
    }
    fprintf(out, "'\n"
                 "        mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$current\")\n"
                 "        return\n"
                 "    fi\n"
                 "    if [[ $current == '=' ]]; then\n"
                 "        current=\n"
                 "    elif [[ $option == '=' ]]; then\n"
                 "        option=${COMP_WORDS[COMP_CWORD - 2]}\n"
                 "    fi\n"
                 "    [[ $option == -* ]] && kind=$(_dmbench_kind \"${COMP_WORDS[1]}\" \"$option\")\n"
                 "    if [[ -z $kind && $current != -* ]]; then\n"
                 "        kind=$(_dmbench_kind \"${COMP_WORDS[1]}\" '')\n"
                 "    fi\n"
                 "    case $kind in\n"
                 "    file | workloads) mapfile -t COMPREPLY < <(compgen -f -- \"$current\") ;;\n"
                 "    folder) mapfile -t COMPREPLY < <(compgen -d -- \"$current\") ;;\n"
                 "    '') words=$(_dmbench_options \"${COMP_WORDS[1]}\") ;;\n"
                 "    esac\n"
                 "    if [[ $kind == file || $kind == folder ]]; then\n"
                 "        compopt -o filenames 2>/dev/null\n"
                 "        return\n"
                 "    fi\n"
                 "    [[ -n $kind ]] && words=$(_dmbench_words \"$kind\" \"${COMP_WORDS[0]}\" \"${COMP_WORDS[@]:1}\")\n"
                 "    mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -W \"$words\" -- \"$current\")\n"
                 "    [[ ${COMPREPLY[0]-} == *[=.] ]] && compopt -o nospace 2>/dev/null\n"
                 "    return 0\n"
                 "}\n\n"
                 "complete -F _dmbench dmbench\n");
}

/* 'name:meaning' of an array of zsh: a colon in the name and quotes are masked. */
static void described_put(const char *name, const char *meaning, FILE *out) {
    fprintf(out, "        '%s:", name);
    for (const char *at = meaning; *at; at++) {
        fprintf(out, *at == '\'' ? "'\\''" : "%c", *at);
    }
    fprintf(out, "'\n");
}

static void described_option_put(const char *command, const struct option *option, FILE *out) {
    (void)command;
    described_put(option->typed, option->help ? option->help : "", out);
}

static void zsh_put(FILE *out) {
    fprintf(out, "#compdef dmbench\n# zsh completion of dmbench; made by `dmbench completion zsh`\n\n");
    kinds_put(out);
    grid_names_put(out);
    fprintf(out,
            "%s_dmbench() {\n    local option kind\n    local -a described\n"
            "    if (( CURRENT == 2 )); then\n        described=(\n",
            words_function);
    for (const struct hx_command *command = hx_commands; command->name; command++) {
        described_put(command->name, command->summary, out);
    }
    fprintf(out,
            "        )\n        _describe command described\n        return\n    fi\n"
            "    option=${words[CURRENT-1]}\n"
            "    if [[ ${words[CURRENT]} == --*=* ]]; then\n"
            "        option=${words[CURRENT]%%%%=*}\n        compset -P '--[a-z_-]#='\n    fi\n"
            "    [[ $option == -* ]] && kind=$(_dmbench_kind \"${words[2]}\" \"$option\")\n"
            "    if [[ -z $kind && ${words[CURRENT]} != -* ]]; then\n"
            "        kind=$(_dmbench_kind \"${words[2]}\" '')\n    fi\n"
            "    case $kind in\n    file) _files ; return ;;\n    folder) _files -/ ; return ;;\n"
            "    ?*) compadd -S '' -- $(_dmbench_words \"$kind\" \"${words[1]}\" \"${(@)words[2,-1]}\") ; return ;;\n"
            "    esac\n    case ${words[2]} in\n");
    for (const struct hx_command *command = hx_commands; command->name; command++) {
        fprintf(out, "    %s)\n        described=(\n", command->name);
        options_visit(command, described_option_put, out);
        fprintf(out, "        ) ;;\n");
    }
    fprintf(out, "    esac\n    _describe -o option described\n}\n\n_dmbench \"$@\"\n");
}

/* ---- the command ------------------------------------------------------------------------------------------------ */

void hx_help_completion(struct hx_help *help) {
    help->usage = "completion bash|zsh";
    help->about = "Prints the completion of commands, options, choices, and of the names of indexes, workloads, "
                  "profiles, transports, figures and parameters, for a shell. An installed copy has both where the "
                  "shells look for them.";
    help->examples = "dmbench completion bash >~/.local/share/bash-completion/completions/dmbench\n"
                     "dmbench completion zsh >\"${fpath[1]}/_dmbench\"";
    help->status = "0 done, 2 usage.";
    help->words = "=bash zsh";
}

static int take_word(void *arg, const char *name, const char *value, struct dm_err *err) {
    const char **shell = arg;
    (void)name;
    if (*shell) {
        return hx_args_excess(value, err);
    }
    *shell = value;
    return 0;
}

static int completion_print(const char *shell, struct dm_err *err) {
    static const char *const shells[] = {"bash", "zsh"};
    if (!shell) {
        return dm_fail(err, DM_ERR_INVALID, "for which shell? name bash or zsh");
    }
    if (strcmp(shell, "bash") == 0) {
        bash_put(stdout);
    } else if (strcmp(shell, "zsh") == 0) {
        zsh_put(stdout);
    } else {
        return hx_fail_unknown(err, "shell", shell, shells, sizeof(shells) / sizeof(shells[0]));
    }
    return 0;
}

int hx_cmd_completion(int argc, char **argv) {
    static const struct dm_opt no_options[] = {DM_OPT_END};
    const char *shell = NULL;
    struct dm_err err = {.text = ""};
    struct hx_args args = {.table = no_options, .values = NULL, .take = take_word, .arg = &shell};
    int rc = hx_args_parse(&args, argc, argv, &err);
    if (rc > 0) {
        hx_help_show(hx_help_completion);
        return HX_DONE;
    }
    rc = rc < 0 ? rc : completion_print(shell, &err);
    return rc < 0 ? hx_report("completion", &err) : HX_DONE;
}
