# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
#
# What the black-box tests share. Sourced; needs DMBENCH and DM_SOURCE_DIR. Everything happens in a folder of its own,
# which goes away at the end.
set -eu
: "${DMBENCH:?the program to test}" "${DM_SOURCE_DIR:?the source tree}"

work=$(mktemp -d "${TMPDIR:-/tmp}/dmbench_test.XXXXXX")
trap 'rm -rf "$work"' EXIT
cd "$work"

fail() {
    echo "FAILED: $*" >&2
    exit 1
}

# skip REASON
skip() {
    echo "skipped: $*"
    exit 77
}

# expect STATUS WORDS...: runs dmbench with the words; output in `out`, errors in `err`.
expect() {
    wanted=$1
    shift
    status=0
    "$DMBENCH" "$@" >out 2>err || status=$?
    [ "$status" -eq "$wanted" ] || fail "dmbench $*: status $status instead of $wanted; stderr: $(cat err)"
}

# holds FILE TEXT
holds() {
    grep -qF -- "$2" "$1" || fail "'$2' is not in: $(cat "$1")"
}
