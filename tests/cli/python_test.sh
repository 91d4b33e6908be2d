#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# contrib/python: the reader agrees with the program on every percentile and, compiled here, with the histogram in C; partial
# results are marked; the example works. With pandas also its data frames.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
command -v python3 >/dev/null || missing python3
PYTHONPATH=$DM_SOURCE_DIR/contrib/python
PYTHONDONTWRITEBYTECODE=1
export PYTHONPATH PYTHONDONTWRITEBYTECODE

mkdir points
for index in sherman chime; do
    expect 0 run --index $index --workload a --keys 5K --ops 3K --clients 8 --out points/$index.json
done
sed 's/"bottleneck"/"is_partial": true, "bottleneck"/' points/chime.json >points/cut.partial.json
echo '{"a": 1}' >points/other.json
expect 0 sweep --grid index=sherman,chime --grid clients=2,4 --grid ops=1K --grid keys=1K --out sweep

cat >values.c <<'C'
#include <stdio.h>
#include "common/hist.h"
static struct dm_hist hist;
static void one(uint64_t value) {
    static char text[256];
    dm_hist_clear(&hist);
    dm_hist_record(&hist, value);
    dm_hist_encode(&hist, text, sizeof(text));
    printf("%llu %s\n", (unsigned long long)value, text);
}
int main(void) {
    for (uint64_t value = 0; value < 5000; value++) {
        one(value);
    }
    for (unsigned bits = 8; bits < 64; bits++) {
        for (uint64_t part = 0; part < 256; part += 5) {
            uint64_t value = (UINT64_C(1) << bits) + (part << (bits - 8));
            one(value - 1);
            one(value);
        }
    }
    return 0;
}
C
"${CC:-cc}" -std=c17 -D_GNU_SOURCE -I"$DM_SOURCE_DIR" -o values values.c "$DM_SOURCE_DIR/common/hist.c" 2>cc.log ||
    fail "cannot compile: $(cat cc.log)"
./values >values.txt

cat >check.py <<'PY'
import dmbench_results as dm

for line in open("values.txt", encoding="utf-8"):
    value, text = line.split(" ", 1)
    value, hist = int(value), dm.Histogram(text)
    (bucket,) = hist.buckets
    assert dm.bucket_of(value) == bucket, (value, bucket)
    low, high = dm.bucket_range(bucket)
    assert low <= value <= high and high - low <= value / 128, (value, low, high)
    assert dm.bucket_range(bucket + 1)[0] == high + 1 and dm.bucket_of(low) == dm.bucket_of(high) == bucket
    assert hist.min == hist.max == hist.sum == hist.quantile(0.5) == value and hist.count == 1

shares = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p99_9": 0.999}
whole = dm.Histogram()
for name, result in dm.read_all("points"):
    for op in result["ops"].values():
        hist = dm.Histogram(op["histogram"])
        latency = op["latency_ns"]
        assert hist.count == op["count"] and hist.min == latency["min"] and hist.max == latency["max"]
        assert abs(hist.mean() - latency["mean"]) < 1e-6 * latency["mean"]
        for member, share in shares.items():
            assert hist.quantile(share) == latency[member], (name, member, hist.quantile(share), latency[member])
        pairs = list(hist.cdf())
        assert pairs == sorted(pairs) and pairs[-1] == (hist.max, 1)
        both = whole + hist
        assert both.count == whole.count + hist.count and both.max == max(whole.max, hist.max)
        assert both.min == min(one.min for one in (whole, hist) if one.count)
        whole = both
assert dm.Histogram().quantile(0.5) == 0 and dm.Histogram().mean() == 0

rows = dm.rows("points")
assert len(rows) == 2 and not any(row["is_partial"] for row in rows), [row["file"] for row in rows]
assert [row["is_partial"] for row in dm.rows("points", partial=True)] == [False, True, False]
row = next(row for row in rows if row["config.index"] == "sherman")
assert row["file"] == "points/sherman.json" and row["config.clients"] == 8 and row["ops.get.count"] > 0
assert len(row["point"]) == 16 and "ops.get.histogram" not in row and row["throughput_ops_per_s"] > 0
assert len(dm.rows("sweep")) == 4 and len(dm.rows(".")) == 2
table = dm.table("sweep/table.tsv")
assert {(line["index"], line["clients"]) for line in table} == {(i, c) for i in ("sherman", "chime") for c in (2, 4)}, table
by_point = {row["point"]: row for row in dm.rows("sweep")}
for line in table:
    assert abs(by_point[line["point"]]["throughput_ops_per_s"] / line["throughput_ops_per_s"] - 1) < 1e-9
for wrong in ("points/other.json", "values.c"):
    try:
        dm.read(wrong)
        raise SystemExit(f"{wrong} was read")
    except dm.ResultError as error:
        assert wrong in str(error)
PY
python3 check.py || fail "the reader is wrong"

python3 "$DM_SOURCE_DIR/contrib/python/example.py" "$DMBENCH" example >out 2>err || fail "example.py: $(cat err)"
holds out "64 clients"
holds out "P99.9"
[ "$(find example/points -name '*.json' | wc -l)" -eq 6 ] || fail "the example has other points"

# The one of the system has the packages of the system.
python=python3
$python -c 'import pandas' 2>/dev/null || python=/usr/bin/python3
$python -c 'import pandas' 2>/dev/null || missing "pandas; everything else was checked"
$python - <<'PY'
import dmbench_results as dm

frame = dm.frame("sweep")
assert len(frame) == 4 and frame["throughput_ops_per_s"].min() > 0
pivot = frame.pivot_table(index="config.clients", columns="config.index", values="throughput_ops_per_s")
assert list(pivot.index) == [2, 4] and sorted(pivot.columns) == ["chime", "sherman"]
assert len(dm.frame("sweep/table.tsv")) == 4 and dm.frame("points", partial=True)["is_partial"].sum() == 1
PY
