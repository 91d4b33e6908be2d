#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# scripts/tune.sh for real: the program that it builds says so and has the results of any other build, to the byte; and a
# second call takes no notes again.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
case $("$DMBENCH" --version) in *"gcc "*) ;; *) skip "tune.sh needs gcc" ;; esac

"$DM_SOURCE_DIR/scripts/tune.sh" "$work/tuned" 2>err || fail "$(cat err)"
"$work/tuned/dmbench" --version | grep -q "Release, tuned" || fail "$("$work/tuned/dmbench" --version)"
[ "$(find "$work/tuned/tune" -name '*.gcda' | wc -l)" -gt 100 ] || fail "hardly any notes: $(find "$work/tuned/tune")"
"$DM_SOURCE_DIR/tests/golden/hashes.sh" "$work/tuned/dmbench" >hashes
diff hashes "$DM_SOURCE_DIR/tests/golden/hashes.txt" || fail "results differ"
"$DM_SOURCE_DIR/scripts/tune.sh" "$work/tuned" 2>err || fail "$(cat err)"
! grep -q "to note" err || fail "notes were taken again: $(cat err)"
