#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# After a warm-up of which two thirds do not meet the model of the network every index has the throughput and the round
# trips that it has after one that does: gets, updates and inserts of each index that keeps data, within 3 %, and updates
# of skewed keys, which depend on who meets whom, within 10 %. It prints all ratios. It takes some four minutes.
set -eu
work=$(mktemp -d "${TMPDIR:-/tmp}/dmbench_untimed.XXXXXX")
trap 'rm -rf "$work"' EXIT
cd "$work"

indexes=$("$DMBENCH" list indexes --json | python3 -c 'import json, sys
print(*(index["name"] for index in json.load(sys.stdin)["indexes"] if index["keeps_data"]))')
# run FILE INDEX WORKLOAD OPTIONS...
run() {
    file=$1 index=$2 workload=$3
    shift 3
    "$DMBENCH" run --index "$index" --workload "$workload" --cns 4 --clients 96 --keys 300K --cache 2MB --ops 200K \
        --warmup 600K --transport-set same_host=true --quiet "$@" --out "$file" >log 2>&1 || {
        cat log >&2
        exit 1
    }
}
for index in $indexes; do
    for workload in c load a; do
        run "timed.$index.$workload" "$index" "$workload"
        run "untimed.$index.$workload" "$index" "$workload" --timed-warmup 200K
    done
done
python3 - "$indexes" <<'PY'
import json, sys

def load(mode, index, workload):
    with open(f"{mode}.{index}.{workload}", encoding="utf-8") as file:
        result = json.load(file)
    ops = [kind for kind in result["ops"].values() if kind["count"] > 0]
    trips = sum(kind["round_trips_mean"] * kind["count"] for kind in ops)
    return result["throughput_ops_per_s"], trips / sum(kind["count"] for kind in ops)

out = 0
print("throughput and round trips after a warm-up that is partly untimed, over those after a timed one")
for index in sys.argv[1].split():
    for workload in ("c", "load", "a"):
        timed, untimed = (load(mode, index, workload) for mode in ("timed", "untimed"))
        ratios = [b / a for a, b in zip(timed, untimed)]
        is_out = any(abs(ratio - 1) > (0.1 if workload == "a" else 0.03) for ratio in ratios)
        out += is_out
        print(f"{index:10} {workload:5} {ratios[0]:.4f} {ratios[1]:.4f}{' OUT' if is_out else ''}")
if out:
    sys.exit(f"{out} are out")
PY
