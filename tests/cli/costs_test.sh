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
assert sorted(made) == ["fg", "other", "points", "sherman"], sorted(made)
for costs in (made, kept):
    for parts in costs.pop("points").values():
        assert set(parts) <= {"bytes", "load_s", "run_s"} and all(value > 0 for value in parts.values()), parts
    for index, parts in costs.items():
        assert sorted(parts) == ["bytes", "load_s", "run_s"], (index, parts)
        assert all(value > 0 for part in parts.values() for value in part.values()), (index, parts)
# Sums over the quantities are near what was measured: these results differ by little but their host's noise.
assert made["sherman"]["run_s"] and made["sherman"]["bytes"], made
PY

# What was measured of a point replaces the sum: here 7 GB, of a point that takes some MB.
mkdir data
for name in "$DM_SOURCE_DIR"/*; do
    ln -s "$name" data/
done
rm data/plots
cp -r "$DM_SOURCE_DIR/plots" data/plots
expect 0 sweep --grid index=sherman --grid keys=2K,4K --dry-run --out measured
point=$(sed -n 's/^ *\([0-9a-f]\{16\}\) .*keys=2K$/\1/p' out)
[ -n "$point" ] || fail "$(cat out)"
grep -q "up to 0.. GB each" out || fail "$(cat out)"
python3 - "$point" data/plots/costs.json <<'PY'
import json, sys

costs = json.load(open(sys.argv[2], encoding="utf-8"))
costs["points"] = {sys.argv[1]: {"bytes": 7e9}}
json.dump(costs, open(sys.argv[2], "w", encoding="utf-8"))
PY
DMBENCH_DATA=$PWD/data
export DMBENCH_DATA
expect 0 sweep --grid index=sherman --grid keys=2K,4K --dry-run --out measured
grep -q "up to [7-9].. GB each" out || fail "$(cat out)"
