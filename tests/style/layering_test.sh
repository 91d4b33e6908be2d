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

# A name without a folder means a file beside the one that includes it.
whole_name() {
    case $2 in
    */*) echo "$2" ;;
    *) echo "$(dirname "$1")/$2" ;;
    esac
}

for file in $(sources '*.c' '*.h'); do
    rule=$(allowed "$file")
    # Names of headers hold no blanks.
    # shellcheck disable=SC2013
    for include in $(sed -n 's/^ *# *include *"\([^"]*\)".*/\1/p' "$file"); do
        whole_name "$file" "$include" | grep -Eq "$rule" || complain "$file: must not include \"$include\""
    done
    case $file in
    transport/verbs/* | tests/conformance/transport_verbs_test.c | tests/unit/transport/fake_verbs.h | \
        tests/unit/transport/fake_work.h | tests/unit/transport/fake_mlx5.h) ;;
    *) ! grep -Eq '^ *# *include *<(infiniband|rdma)/' "$file" || complain "$file: only transport/verbs includes verbs headers" ;;
    esac
    case $file in
    common/opt_json.* | harness/* | check/* | transport/core/profile.* | tests/*) ;;
    *)
        ! grep -Eq '^ *# *include *(<jansson\.h>|"common/opt_json\.h")' "$file" ||
            complain "$file: only configuration and result code knows JSON"
        ;;
    esac
done
finish
