#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# scripts/packages.txt is enough: every command that scripts and sources start is provided by one of its packages, and
# apt can install the list on a system that has nothing.
. "$DM_SOURCE_DIR/tests/style/lib.sh"
need python3
sources '*.sh' '*.c' | xargs python3 tests/style/commands.py scripts/packages.txt .ci/run ||
    complain "commands that no package of scripts/packages.txt provides, see above"
duplicates=$(awk -F'|' '!/^#/ { gsub(/ /, "", $2); print $2 }' scripts/packages.txt | sort | uniq -d)
[ -z "$duplicates" ] || complain "listed twice: $duplicates"
awk -F'|' '!/^#/ && NF && NF != 4 { bad = 1 } END { exit bad }' scripts/packages.txt ||
    complain "scripts/packages.txt: a line that has not four columns"

if [ "$failures" -eq 0 ]; then
    if ! command -v apt-get >/dev/null 2>&1; then
        echo "skipped: no apt-get here to resolve the list with"
        exit 77
    fi
    if ! find /var/lib/apt/lists -name '*_Packages*' 2>/dev/null | grep -q .; then
        echo "skipped: apt has no package lists here (apt-get update was never run)"
        exit 77
    fi
    empty=$(mktemp)
    trap 'rm -f "$empty"' EXIT
    # One name a word.
    # shellcheck disable=SC2046
    apt-get -s -q --no-install-recommends -o Dir::State::status="$empty" install $(scripts/setup.sh --list run test long) \
        >"$empty.out" 2>&1 || complain "apt cannot install the list on an empty system: $(tail -n 3 "$empty.out")"
    rm -f "$empty.out"
fi
finish
