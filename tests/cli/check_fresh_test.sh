#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# `dmbench check` over fresh seeds: different ones at every run. A finding is kept in the build's folder `findings`, where
# no later run overwrites it, with the seeds that replay it; known findings are kept elsewhere, as a world or a test.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

first=$(date +%s)000
findings=$DM_BUILD_DIR/findings
echo "seeds from $first on"

# check_fresh WORDS...
check_fresh() {
    "$DMBENCH" check --index all "$@" --first-seed "$first" --coverage off >out 2>&1 && return
    mkdir -p "$findings"
    { echo "dmbench check --index all $* --first-seed $first --coverage off" && cat out; } >>"$findings/$first.txt"
    fail "kept in $findings/$first.txt: $(cat out)"
}
check_fresh --seeds 100
check_fresh --transport local --seeds 3
