#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Who may include what: common <- transport <- indexes <- check <- harness; workloads knows only common; an index sees the
# two contracts, what indexes share and its own folder; within the harness base <- run <- points <- study, lab <- cli.
. "$DM_SOURCE_DIR/tests/style/lib.sh"
below_harness='^(common|transport|workloads|check)/|^indexes/(index|rdwc)\.h$'

# allowed FILE: an extended regular expression of the project headers that the file may include.
allowed() {
    case $1 in
    common/*) echo '^common/' ;;
    transport/*) echo '^(common|transport)/' ;;
    workloads/*) echo '^(common|workloads)/' ;;
    indexes/rdwc.*) echo '^(common/|transport/dm\.h$|indexes/(index|rdwc)\.h$)' ;;
    indexes/registry.c) echo '^indexes/(index\.h|indexes\.def)$' ;;
    indexes/index.h) echo '^(common/|transport/dm\.h$)' ;;
    indexes/shared/*) echo '^(common/|transport/dm\.h$|indexes/index\.h$|indexes/shared/)' ;;
    indexes/*)
        own=$(dirname "$1")
        echo "^(common/|transport/dm\\.h\$|indexes/index\\.h\$|indexes/shared/|$own/)"
        ;;
    harness/base/*) echo '^(common/|harness/base/)' ;;
    harness/run/*) echo "$below_harness|^harness/(base|run)/" ;;
    harness/points/*) echo "$below_harness|^harness/(base|run|points)/" ;;
    harness/study/*) echo "$below_harness|^harness/(base|run|points|study)/" ;;
    harness/lab/validate_cpu.c | harness/lab/train.c) # measure that very code
        echo "$below_harness|^harness/(base|run|points|lab)/|^indexes/shared/"
        ;;
    harness/lab/*) echo "$below_harness|^harness/(base|run|points|lab)/" ;;
    harness/cli/*) echo "$below_harness|^harness/" ;;
    check/*) echo '^(common|transport|workloads|check)/|^indexes/(index|rdwc)\.h$' ;;
    *) echo '.' ;;
    esac
}

# One pass over all files, since a process for each include takes longer than all else here. A name without a folder means
# a file beside the one that includes it.
files=$(sources '*.c' '*.h')
rules=$(mktemp "${TMPDIR:-/tmp}/dmbench_layering.XXXXXX")
trap 'rm -f "$rules"' EXIT
for file in $files; do
    echo "$file $(allowed "$file")"
done >"$rules"
# Names of files hold no blanks.
# shellcheck disable=SC2086
found=$(grep -HoE '^ *# *include *"[^"]*"' $files | sed 's/:.*"\([^"]*\)"$/ \1/' | awk '
    NR == FNR { rule[$1] = $2; next }
    {
        folder = $1
        sub("/[^/]*$", "", folder)
        if ((index($2, "/") ? $2 : folder "/" $2) !~ rule[$1]) print $1 ": must not include \"" $2 "\""
    }' "$rules" -)
[ -z "$found" ] || complain "$found"
# shellcheck disable=SC2013,SC2086
for file in $(grep -lE '^ *# *include *<(infiniband|rdma)/' $files); do
    case $file in
    transport/verbs/* | tests/conformance/transport_verbs_test.c | tests/unit/transport/fake_verbs.h | \
        tests/unit/transport/fake_work.h | tests/unit/transport/fake_mlx5.h) ;;
    *) complain "$file: only transport/verbs includes verbs headers" ;;
    esac
done
# shellcheck disable=SC2013,SC2086
for file in $(grep -lE '^ *# *include *(<jansson\.h>|"common/opt_json\.h")' $files); do
    case $file in
    common/opt_json.* | harness/* | check/* | transport/core/profile.* | tests/*) ;;
    *) complain "$file: only configuration and result code knows JSON" ;;
    esac
done
finish
