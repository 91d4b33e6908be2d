#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Simulated results are what they were: tests/golden/hashes.txt holds their hashes. A change that is meant to alter results
# makes the table anew (see tests/golden/hashes.sh) and says why in its commit.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

command -v python3 >/dev/null || skip "python3 is not installed"
"$DM_SOURCE_DIR/tests/golden/hashes.sh" "$DMBENCH" >now.txt
diff "$DM_SOURCE_DIR/tests/golden/hashes.txt" now.txt >changed.txt ||
    fail "$(grep -c '^>' changed.txt) of $(wc -l <now.txt) results changed: $(sed -n 's/^> [0-9a-f]* //p' changed.txt | head -n 5)"
