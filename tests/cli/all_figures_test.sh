#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Every figure and claim of the repository, at a small fraction of the papers' sizes: all points run, all plots are drawn
# and every claim has a verdict; the report contains all of them.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

if ! command -v gnuplot >/dev/null 2>&1; then
    [ "${CI:-}" != true ] || fail "gnuplot is not installed"
    skip "gnuplot is not installed"
fi
expect 0 figure all --plots "$DM_SOURCE_DIR/plots" --scale 5000 --out results
for program in results/figures/*/*.gp; do
    for kind in png svg pdf; do
        [ -s "${program%.gp}.$kind" ] || fail "${program%.gp}.$kind is missing"
    done
    ! grep -q "are missing" "$program" || fail "$program: points are missing"
done
expect 0 claims --plots "$DM_SOURCE_DIR/plots" --scale 5000 --out results --markdown
! grep -q "points missing" out || fail "$(grep "points missing" out)"
expect 0 report --plots "$DM_SOURCE_DIR/plots" --scale 5000 --out results
[ -s results/report.html ] || fail "no report"
