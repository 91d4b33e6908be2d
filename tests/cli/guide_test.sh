#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The index of docs/adding-an-index.md works: every command of the page runs, `check` finds its wrong values and nothing
# else, and its code has the project's format. DMBENCH is a program with this index alone; the build takes the code out
# of the page. conformance/guide_test runs it against a reference map.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
page=$DM_SOURCE_DIR/docs/adding-an-index.md

sed -n 's/^    dmbench //p' "$page" >commands
[ "$(wc -l <commands)" -ge 5 ] || fail "the page has fewer commands than expected"
while read -r command; do
    wanted=0
    case $command in
    *check=off*) wanted=3 ;;
    esac
    # Words of these commands hold no blanks.
    # shellcheck disable=SC2086
    expect "$wanted" $command
done <commands
holds out "cannot be explained"

if command -v clang-format >/dev/null 2>&1; then
    cp "$DM_SOURCE_DIR/.clang-format" .
    awk -v out=example.c -v bare=1 -f "$DM_SOURCE_DIR/tests/cli/guide.awk" "$page"
    clang-format --dry-run -Werror example.c || fail "run clang-format over the code of the page"
fi
