#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fits what points cost, by index, to results that have been measured: plots/costs.json.

    scripts/costs.py results/points >plots/costs.json
    scripts/costs.py --bytes plots/costs.json results/points elsewhere/points >new.json
    scripts/costs.py --calibrate plots/costs.json --indexes all/points sample/points >new.json
    scripts/costs.py --points plots/costs.json again/points >new.json
    scripts/costs.py --untimed plots/costs.json pairs/points >new.json

Seconds and bytes are sums over quantities of a point, with coefficients that are not negative, so that sums over many
points are right; a point with an uncommon setting may cost several times as much. harness/points/points_cost.c computes
the same quantities. Seconds of an index are fitted to the results that state processor time, if these are enough. Under
"points", by the hash of its configuration, is what a large point was measured to cost where its sum is far from that.
With --bytes FILE seconds are those of that file. With --calibrate FILE a few results of a newer program are enough:
seconds are those of FILE times what these results took beside what FILE says of them, by index where there are some of
it; standard error has the ratios. --indexes names a folder of results that say of which index FILE's single points are.
With --points FILE all is that of FILE, but for the single points among the results.
With --untimed FILE all is that of FILE, but for the share of a timed operation's time that an untimed one of a warm-up
takes, by index: the folders have pairs of results, run on one host at one time, that differ in timed_warmup alone.
"""
import argparse
import collections
import glob
import json
import sys

SECONDS_LOAD = ["start", "key", "value_byte"]
KINDS = ["read", "update", "insert", "rmw", "scan"]
SECONDS_RUN = [*KINDS, "scan_entry"]
BYTES = ["start", "client", "key", "built", "touched", "value_byte", "inserted", "cache_byte"]


# A byte of a value takes a byte and some free space, which results with values of one size do not show; and no index
# takes a kilobyte for a key, which few results with inserts, of few keys, might say.
BOUNDS = {"value_byte": (1.0, 2.0), "built": (0.0, 1000.0), "touched": (0.0, 1000.0)}

# What is measured is kept if it is more than the first, and differs from its sum by more than the factor.
LARGE_BYTES, LARGE_SECONDS, FAR = 256e6, 10.0, 1.25

# So many results of an index that state processor time are enough to leave out those that do not; and so many are
# enough for a ratio of its own.
ENOUGH, ENOUGH_RATIO = 12, 3

# A ratio that is farther from the median of its index than by this factor is not counted.
UNUSUAL = 2

# Operations of a client in a sample of the warm-up.
SAMPLE_OPS = 64


def load(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def untimed(config):
    timed = config.get("timed_warmup", 0)
    samples = config.get("warmup_samples", 0) * SAMPLE_OPS * config["clients"]
    return max(config["warmup"] - timed - samples, 0) if timed else 0


def quantities(config, share):
    """An untimed operation counts as `share` of one. A delete counts as an update: few results have any."""
    mix = collections.defaultdict(float)
    for part in config["mix"].split(","):
        kind, by = part.split("=")
        mix[kind] = float(by)
    ops, reads = config["ops"] + config["warmup"], config.get("load_reads", 0)
    counted = ops - (1 - share) * untimed(config)
    keys = config["keys"]
    entry = config["value_size"] + config["key_size"]
    per_scan = (config["scan_min"] + config["scan_max"]) / 2
    found = {"start": 1.0, "client": config["clients"], "key": keys, "value_byte": keys * config["value_size"]}
    for kind in KINDS:
        found[kind] = counted * mix[kind]
    found["read"] += share * reads
    found["update"] += counted * mix["delete"]
    found["scan_entry"] = found["scan"] * per_scan
    found["inserted"] = ops * mix["insert"]
    found["cache_byte"] = config["cns"] * min(config["cache"], keys * entry)
    # Without inserts an index may make what a bulk load stores when it is first read.
    found["touched"] = min(keys, reads + ops + ops * mix["scan"] * per_scan)
    found["built"] = keys - found["touched"] if mix["insert"] > 0 else 0.0
    return found


def fit(names, rows, bounds=None, least=0.0):
    """Coefficients by coordinate descent on the squared errors of rows of (quantities, measured) over the measured;
    those that are not above `least` are left out."""
    bounds = bounds or {}
    low = [bounds.get(name, (0, 1e300))[0] for name in names]
    high = [bounds.get(name, (0, 1e300))[1] for name in names]
    scaled = [([row[name] / measured**0.5 for name in names], measured**0.5) for row, measured in rows if measured > 0]
    by = low[:]
    left = [aim - sum(map(float.__mul__, map(float, row), map(float, by))) for row, aim in scaled]
    squares = [sum(row[i] ** 2 for row, _ in scaled) for i in range(len(names))]
    for _ in range(3000):
        for i, square in enumerate(squares):
            if square <= 0:
                continue
            best = by[i] + sum(row[i] * rest for (row, _), rest in zip(scaled, left)) / square
            step = min(max(best, low[i]), high[i]) - by[i]
            by[i] += step
            left = [rest - step * row[i] for (row, _), rest in zip(scaled, left)]
    return {name: float(f"{value:.3g}") for name, value in zip(names, by) if value > least}


def load_seconds(host):
    """Processor time if the result states it: other programs of the host change that little."""
    return host.get("load_cpu_s", host["keys_s"] + host["load_s"])


def run_seconds(host):
    return host.get("run_cpu_s", host["run_s"])


def sample(points):
    return points[:: max(1, len(points) // 300)]


def fit_timed(names, seconds, timed, points):
    """Coefficients by the timed results; those of quantities that none of these has, by all."""
    costs = fit(names, [(row, seconds(host)) for row, host in timed])
    lacking = [name for name in names if not any(row[name] for row, _ in timed)]
    if any(row[name] for name in lacking for row, _ in points):
        everything = fit(names, [(row, seconds(host)) for row, host in points])
        costs.update({name: everything[name] for name in lacking if name in everything})
    return costs


def total(costs, part, row):
    return sum(by * row[name] for name, by in costs[part].items())


def is_far(measured, reckoned):
    return not reckoned / FAR < measured < reckoned * FAR


def measured_costs(costs, row, host):
    """The costs of a result that its sums are far from; seconds are those of processors alone."""
    found = {}
    peak = host["peak_rss_bytes"]
    if peak > LARGE_BYTES and is_far(peak, total(costs, "bytes", row)):
        found["bytes"] = peak
    if "run_cpu_s" in host:
        for part in ("load_s", "run_s"):
            took = host[part.replace("_s", "_cpu_s")]
            if took > LARGE_SECONDS and is_far(took, total(costs, part, row)):
                found[part] = float(f"{took:.3g}")
    return found


def said(costs, hash, index, row, part):
    """What the costs say of a point, which may be there itself."""
    own = costs["points"].get(hash, {})
    return own[part] if part in own else total(costs.get(index, costs["other"]), part, row)


def usual(pairs):
    """Pairs of (took, reckoned) without those whose ratio is far from the median: an uncommon setting, which has costs
    of its own."""
    ratios = sorted(took / reckoned for took, reckoned in pairs if reckoned > 0)
    middle = ratios[len(ratios) // 2] if ratios else 0
    low, high = middle / UNUSUAL, middle * UNUSUAL
    return [(took, reckoned) for took, reckoned in pairs if low * reckoned <= took <= high * reckoned]


def timed_only(results):
    """Those that state processor time."""
    return {hash: result for hash, result in results.items() if "run_cpu_s" in result[2]}


def calibrate(costs, results, indexes):
    """Multiplies seconds by the ratio of sums over usual results that state processor time. `indexes` has those of
    points that were not run again; without that, the ratio of all results is taken."""
    timed = timed_only(results)
    for part in ("load_s", "run_s"):
        pairs = collections.defaultdict(list)
        for hash, (index, row, host) in timed.items():
            for name in (index, "other"):
                pairs[name].append((host[part.replace("_s", "_cpu_s")], said(costs, hash, index, row, part)))
        ratios = {}
        for name in sorted(pairs):
            kept = usual(pairs[name])
            took, reckoned = (sum(pair[i] for pair in kept) for i in (0, 1))
            if len(pairs[name]) >= ENOUGH_RATIO and reckoned > 0:
                ratios[name] = took / reckoned
                sums = f"{len(kept)} results took {took:.1f} s, {ratios[name]:.3f} of {reckoned:.1f}"
                print(f"{part} {name}: {sums}", file=sys.stderr)
        for name in costs:
            if name != "points":
                ratio = ratios.get(name, ratios.get("other", 1.0))
                costs[name][part] = {key: float(f"{ratio * by:.3g}") for key, by in costs[name][part].items()}
        for hash, found in costs["points"].items():
            if part in found:
                ratio = ratios.get(indexes.get(hash), ratios.get("other", 1.0))
                found[part] = float(f"{ratio * found[part]:.3g}")
    measure_again(costs, timed)


def measure_again(costs, timed):
    """Gives the results' points what they took themselves, where it is far from their sums."""
    for hash, (index, row, host) in timed.items():
        kept = {part: by for part, by in costs["points"].pop(hash, {}).items() if part == "bytes"}
        found = {**kept, **measured_costs(costs.get(index, costs["other"]), row, host)}
        if found:
            costs["points"][hash] = found


def add_untimed(costs, results):
    """The share of a timed operation's time that an untimed one takes, by index: of pairs, weighted by such operations."""
    timed = {}
    for result in results:
        if not untimed(result["config"]):
            timed[other_options(result["config"])] = result
    sums = collections.defaultdict(lambda: [0.0, 0.0])
    for result in results:
        config = result["config"]
        pair = timed.get(other_options(config))
        if untimed(config) and pair:
            took, whole = (one["provenance"]["host"]["run_cpu_s"] for one in (result, pair))
            each = whole / (config["ops"] + config["warmup"])
            for name in (config["index"], "other"):
                sums[name][0] += took - each * (config["ops"] + config["warmup"] - untimed(config))
                sums[name][1] += each * untimed(config)
    shares = {name: took / whole for name, (took, whole) in sums.items()}
    for name, share in sorted(shares.items()):
        print(f"untimed {name}: {share:.3f} of a timed operation", file=sys.stderr)
    for name in costs:
        share = shares.get(name, shares.get("other"))
        if name != "points" and share:
            costs[name]["untimed"] = float(f"{min(max(share, 0), 1):.3g}")


def other_options(config):
    """All but what says which part of the warm-up is timed, as text."""
    left_out = ("timed_warmup", "warmup_samples", "mn_memory")
    return json.dumps({name: by for name, by in config.items() if name not in left_out})


def index_names(folder):
    """The index of each result of a folder, by the hash of its configuration."""
    names = {}
    for path in glob.glob(folder + "/*.json") if folder else []:
        result = load(path)
        names[result["config_hash"]] = result["config"]["index"]
    return names


def print_costs(costs):
    json.dump(costs, sys.stdout, indent=1, sort_keys=True)
    print()


def main():
    parser = argparse.ArgumentParser(description="fits what points cost to results")
    parser.add_argument("folders", nargs="+", help="folders of results")
    parser.add_argument("--bytes", metavar="FILE", help="fit bytes alone; seconds are those of this file")
    parser.add_argument("--calibrate", metavar="FILE", help="multiply seconds of this file by a ratio for each index")
    parser.add_argument("--points", metavar="FILE", help="take this file, and what the results' points took themselves")
    parser.add_argument("--untimed", metavar="FILE", help="take this file, and find what untimed operations take")
    parser.add_argument("--indexes", metavar="FOLDER", help="results that say which index a single point of FILE has")
    options = parser.parse_args()
    given = [name for name in (options.bytes, options.calibrate, options.points, options.untimed) if name]
    if len(given) > 1:
        parser.error("--bytes, --calibrate, --points and --untimed exclude one another")
    if options.indexes and not options.calibrate:
        parser.error("--indexes is for --calibrate")
    before = load(given[0]) if given else {}
    rows = collections.defaultdict(list)
    results, simulated = {}, []
    for path in sorted(path for folder in options.folders for path in glob.glob(folder + "/*.json")):
        result = load(path)
        config = result["config"]
        if config["transport"] != "sim":
            continue
        simulated.append(result)
        # Without a share, results with untimed operations say nothing of timed ones.
        share = before.get(config["index"], before.get("other", {})).get("untimed")
        if share is not None or not untimed(config):
            rows[config["index"]].append((quantities(config, share or 1), result["provenance"]["host"]))
            rows["other"].append(rows[config["index"]][-1])
            results[result["config_hash"]] = (config["index"], *rows[config["index"]][-1])
    if options.calibrate:
        calibrate(before, results, index_names(options.indexes))
        print_costs(before)
        return
    if options.points:
        measure_again(before, timed_only(results))
        print_costs(before)
        return
    if options.untimed:
        add_untimed(before, simulated)
        print_costs(before)
        return
    costs = {}
    for index, points in sorted(rows.items()):
        if options.bytes and index not in before:
            continue
        timed = [point for point in points if "run_cpu_s" in point[1]]
        timed = sample(timed if len(timed) >= ENOUGH else points)
        points = sample(points)
        if options.bytes:
            costs[index] = {part: by for part, by in before[index].items() if part != "bytes"}
        else:
            costs[index] = {
                "load_s": fit_timed(SECONDS_LOAD, load_seconds, timed, points),
                "run_s": fit_timed(SECONDS_RUN, run_seconds, timed, points),
            }
        costs[index]["bytes"] = fit(BYTES, [(row, host["peak_rss_bytes"]) for row, host in points], BOUNDS, 0.01)
    kept = {hash: measured_costs(costs.get(index, costs["other"]), *rest) for hash, (index, *rest) in results.items()}
    costs["points"] = {hash: found for hash, found in kept.items() if found}
    print_costs(costs)


if __name__ == "__main__":
    main()
