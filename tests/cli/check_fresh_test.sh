#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# `dmbench check` over fresh seeds: different ones at every run. They are printed, so that findings can be
# replayed; known findings are kept elsewhere, as a seed or a test.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

first=$(date +%s)000
echo "seeds from $first on"
"$DMBENCH" check --index all --seeds 100 --first-seed "$first" --coverage off || fail "see above for what replays it"
"$DMBENCH" check --index all --transport local --seeds 3 --first-seed "$first" --coverage off || fail "see above"
