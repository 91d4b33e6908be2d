#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The report's script in headless Chromium (report_browser.py): numbers under the pointer are those of the result file, a
# click shows a command that gives them again, filters hide and show, readings switch, light and dark, no errors in the
# console, no horizontal overflow on a phone, and without script all pictures. Screenshots are kept in build/artefacts.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

# The report's script is tested here, not memory: run_tests.sh names a program without a sanitizer, which is faster.
DMBENCH=${DM_PLAIN_DMBENCH:-$DMBENCH}

for program in chromium chromedriver gnuplot; do
    command -v $program >/dev/null 2>&1 || missing "$program: the page was not tried"
done
# Debian's packages are of its own python3, which may not be the first one in PATH.
python=
for candidate in python3 /usr/bin/python3; do
    [ -n "$python" ] || ! "$candidate" -c 'import selenium' 2>/dev/null || python=$candidate
done
[ -n "$python" ] || missing "python3-selenium: the page was not tried"

# shellcheck source=tests/cli/report_plots.sh
. "$DM_SOURCE_DIR/tests/cli/report_plots.sh"
# Figures with three seeds have error bars; claims and readings have the first of them.
sed -i 's/"quick": {/"quick": {"seeds": 3, /' plots/figures/*.json
expect 0 figure all --plots plots
expect 0 claims --plots plots --run
"$DMBENCH" validate --json >results/validation.json || [ $? -eq 3 ] || fail "validate"
expect 0 report --plots plots

artefacts=${DM_ARTEFACTS:-$DM_BUILD_DIR/../artefacts}
mkdir -p "$artefacts"
"$python" "$DM_SOURCE_DIR/tests/cli/report_browser.py" "$work/results/report.html" "$artefacts" >commands || fail "see above"
# The commands that the page shows: a result runs again as it is.
[ "$(wc -l <commands)" -eq 2 ] || fail "commands: $(cat commands)"
sed -n 1p commands | grep -Eq '^dmbench run results/points/[0-9a-f]{16}\.json$' || fail "command: $(cat commands)"
result=$(sed -n '1s/^dmbench run //p' commands)
expect 0 run "$result" --out again.json
for file in "$result" again.json; do
    grep -o '"throughput_ops_per_s": [0-9.e+]*' "$file" | head -n 1
done | uniq | wc -l | grep -qx ' *1' || fail "the command gives other numbers"
sed -n 2p commands | grep -qx 'dmbench figure small --scale quick --out results' || fail "command: $(cat commands)"
