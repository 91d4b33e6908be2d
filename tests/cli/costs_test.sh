#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# scripts/costs.py fits what points cost to results, and what it prints is what plots/costs.json has.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
command -v python3 >/dev/null 2>&1 || skip "no python3"

expect 0 sweep --grid index=sherman,fg --grid keys=2K,4K --grid workload=c,e --grid ops=2K,4K --out sweep
python3 "$DM_SOURCE_DIR/scripts/costs.py" sweep/points >costs.json || fail "costs.py failed"
python3 - costs.json "$DM_SOURCE_DIR/plots/costs.json" <<'PY'
import json, sys

made, kept = (json.load(open(path, encoding="utf-8")) for path in sys.argv[1:])
assert sorted(made) == ["fg", "other", "sherman"], sorted(made)
for costs in (made, kept):
    for index, parts in costs.items():
        assert sorted(parts) == ["bytes", "load_s", "run_s"], (index, parts)
        assert all(value > 0 for part in parts.values() for value in part.values()), (index, parts)
# Sums over the quantities are near what was measured: these results differ by little but their host's noise.
assert made["sherman"]["run_s"] and made["sherman"]["bytes"], made
PY
