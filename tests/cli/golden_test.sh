#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Simulated results are what they were: tests/golden/hashes.txt holds their hashes. A change that is meant to alter results
# makes the table anew (see tests/golden/hashes.sh) and says why in its commit.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

command -v python3 >/dev/null || missing python3
"$DM_SOURCE_DIR/tests/golden/hashes.sh" "$DMBENCH" >now.txt
# A new index has no lines in the table yet, and needs none.
changed=$(awk 'NR == FNR { now[substr($0, 18)] = $1; next } now[substr($0, 18)] != $1 { print substr($0, 18) }' \
    now.txt "$DM_SOURCE_DIR/tests/golden/hashes.txt")
[ -z "$changed" ] || fail "$(printf '%s\n' "$changed" | wc -l) results changed or vanished: $(printf '%s\n' "$changed" | head -n 5)"
