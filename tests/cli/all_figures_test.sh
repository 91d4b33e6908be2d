#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Every figure and claim of the repository, at a small fraction of the papers' sizes: all points run, all plots are drawn
# and every claim has a verdict; the report contains all of them. With DM_FIGURES_SAMPLE=NUMBER one figure in so many, others
# at each revision, and no claims: for builds with a sanitizer, where a point takes seconds.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

command -v gnuplot >/dev/null || missing gnuplot
figures=all
if [ -n "${DM_FIGURES_SAMPLE:-}" ]; then
    revision=$(git -C "$DM_SOURCE_DIR" rev-parse HEAD 2>/dev/null || date +%F)
    offset=$(($(printf '%s' "$revision" | cksum | cut -d ' ' -f 1) % DM_FIGURES_SAMPLE))
    figures=$("$DMBENCH" figure --plots "$DM_SOURCE_DIR/plots" --list | sed -n 's/^\([^ :]*\):.*/\1/p' |
        awk -v every="$DM_FIGURES_SAMPLE" -v offset="$offset" 'NR % every == offset')
    [ -n "$figures" ] || fail "no figures in the list"
    echo "a sample: $(echo "$figures" | tr "\n" " ")"
fi
# shellcheck disable=SC2086
expect 0 figure $figures --plots "$DM_SOURCE_DIR/plots" --scale 5000 --out results
for program in results/figures/*/*.gp; do
    for kind in png svg pdf; do
        [ -s "${program%.gp}.$kind" ] || fail "${program%.gp}.$kind is missing"
    done
    ! grep -q "are missing" "$program" || fail "$program: points are missing"
done
[ "$figures" = all ] || exit 0
expect 0 claims --plots "$DM_SOURCE_DIR/plots" --scale 5000 --out results --markdown
# No claim and no check lacks its points. Reasons, in parentheses, have figures of their own, which are not run here.
command -v python3 >/dev/null || missing "python3"
cannot=$(python3 -c '
import glob, json, sys
print(sum("not_run" in claim for file in glob.glob(sys.argv[1] + "/*.json") for claim in json.load(open(file))["claims"]))
' "$DM_SOURCE_DIR/plots/claims")
head -n 1 out | grep -qF ", $cannot not run (scale" || fail "claims are not run: $(head -n 1 out)"
lacks='(^|[^(])not run: [0-9]+ of [0-9]+ points of figure'
! grep -qE "$lacks" out || fail "$(grep -E "$lacks" out)"
expect 0 report --plots "$DM_SOURCE_DIR/plots" --scale 5000 --out results
[ -s results/report.html ] || fail "no report"
