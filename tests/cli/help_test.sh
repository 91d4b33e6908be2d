#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Help texts, manual pages and completions, which are all made of the option tables.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

commands=$("$DMBENCH" --help | sed -n '/^Commands:/,/^$/s/^  \([a-z]*\) .*/\1/p')
[ "$(echo "$commands" | wc -l)" -ge 13 ] || fail "few commands: $commands"

# every help text: what it is for, options, exit statuses; no line is wider than 100 columns unless one word is
for command in $commands; do
    expect 0 "$command" --help
    holds out "Usage: dmbench $command"
    holds out "Exit status: 0"
    cp out help
    awk '/^Options:|^The command:/ { in_options = 1 } length > 100 && NF > 1 && !/\/.*\// { exit 1 }' out ||
        fail "lines of $command --help are longer than 100 columns: $(awk 'length > 100' out)"
    expect 0 help "$command"
    cmp -s out help || fail "'help $command' and '$command --help' differ"
done
expect 2 help rnu
holds err "did you mean 'run'?"
expect 0 help
holds out "completion"

# the version under all the names that users try
expect 0 --version
cp out version
for name in -V version; do
    expect 0 "$name"
    cmp -s out version || fail "$name is not --version"
done

# manual pages: every option of the help text is in them, and groff has nothing to say
for command in $commands; do
    expect 0 help --man "$command"
    cp out page.1
    "$DMBENCH" "$command" --help | sed -n 's/^  \(--[a-z-]*\).*/\1/p' | sort -u >options
    sed 's/\\-/-/g' page.1 >plain.1
    while read -r option; do
        case $option in --set | --transport-set) continue ;; esac
        grep -q -- "^.fB$option.f[RI]" plain.1 || fail "$option of $command is not in its manual page"
    done <options
    if command -v groff >/dev/null; then
        groff -ww -man -Tutf8 -P-c -P-b -P-u -P-o page.1 >formatted 2>problems || fail "groff cannot read the page of $command"
        [ ! -s problems ] || fail "the page of $command: $(cat problems)"
        grep -q "EXIT STATUS" formatted || fail "the page of $command is not whole"
    elif [ "${CI:-}" = true ]; then
        missing groff
    fi
done
expect 0 help --man
holds out "dmbench\\-run"
expect 2 help --man nosuch

# completion
expect 2 completion
holds err "name bash or zsh"
expect 2 completion fish
expect 0 completion zsh
cp out _dmbench
expect 0 completion bash
cp out dmbench.bash

cat >complete.bash <<'EOS'
# complete.bash PROGRAM WORD...: what completes the last word.
source ./dmbench.bash
COMP_WORDS=("$@")
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
compopt() { :; }
_dmbench
printf '%s\n' "${COMPREPLY[@]}"
EOS
# completes WANTED WORDS...: one of the completions of the last word is WANTED.
completes() {
    wanted=$1
    shift
    bash complete.bash "$DMBENCH" "$@" >completed 2>problems || fail "completion of '$*': $(cat problems)"
    [ ! -s problems ] || fail "completion of '$*': $(cat problems)"
    grep -qxF -e "$wanted" completed || fail "completion of '$*' has no '$wanted': $(cat completed)"
}
touch spec.json
completes sweep sw
completes --index run --ind
completes --help figure --h
completes sherman run --index sh
completes sherman run --index = sh
completes published run --rdwc p
completes sim run --transport ""
completes cx6-100g run --profile cx
completes chime-12 figure chime-1
completes combine= run --index sherman --set com
completes hotspot_share= run --index chime --set hot
completes clients= sweep --grid cli
completes spec.json run sp
completes spec.json run --out sp
completes zsh completion z
completes fixed run --arrival ""
bash complete.bash "$DMBENCH" run --clients "" >completed
[ -z "$(cat completed)" ] || fail "a number is completed: $(cat completed)"

command -v zsh >/dev/null || missing "zsh; bash, manual pages and help were checked"
cat >complete.zsh <<'EOS'
compadd() { shift 3; print -l -- "$@" }
_describe() { print -l -- "${(@P)@[-1]}" }
_files() { print -l -- *(N) }
compset() { : }
words=("$@")
CURRENT=$#
set --
source ./_dmbench
EOS
# zsh_completes WANTED WORDS...
zsh_completes() {
    wanted=$1
    shift
    zsh -f complete.zsh "$DMBENCH" "$@" >completed 2>problems || fail "zsh's completion of '$*': $(cat problems)"
    [ ! -s problems ] || fail "zsh's completion of '$*': $(cat problems)"
    grep -q -e "^$wanted" completed || fail "zsh's completion of '$*' has no '$wanted': $(cat completed)"
}
zsh_completes "sweep:run a grid" ""
zsh_completes "--index:the index" run --ind
zsh_completes "sherman" run --index ""
zsh_completes "published" run --rdwc ""
zsh_completes "published" run --rdwc=p
zsh_completes "hotspot_share=" run --index chime --set ""
zsh_completes "chime-12" figure ""
zsh_completes "spec.json" run --out ""
