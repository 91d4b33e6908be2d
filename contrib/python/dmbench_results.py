# SPDX-License-Identifier: Apache-2.0
"""Reads results of dmbench: as dictionaries with the standard library alone, as data frames with pandas.

    import dmbench_results as dm
    frame = dm.frame("results/sweep")                    # a row a result; columns as in docs/results-format.md
    frame.groupby("config.clients")["throughput_ops_per_s"].median()
    dm.Histogram(dm.read("result.json")["ops"]["get"]["histogram"]).quantile(0.999)

Results that an interrupt cut short are left out unless they are asked for, and then have is_partial True.
"""
import csv
import json
import os

SCHEMA_VERSION = 2
SUB_BITS = 7  # values have 2^7 buckets a power of two


class ResultError(ValueError):
    """A file that is no result, or one of another version."""


# ---- files ------------------------------------------------------------------------------------------------------------


def read(path):
    """The result of a file, as it is there."""
    with open(path, encoding="utf-8") as file:
        try:
            result = json.load(file)
        except ValueError as error:
            raise ResultError(f"{path}: {error}") from None
    if not isinstance(result, dict) or "config_hash" not in result or "ops" not in result:
        raise ResultError(f"{path}: is not a result of dmbench run")
    if result.get("schema_version") != SCHEMA_VERSION:
        raise ResultError(f"{path}: has schema version {result.get('schema_version')}, this reads {SCHEMA_VERSION}")
    return result


def files(*paths):
    """The names of the JSON files that are meant by files, folders, and folders with points/ (of a sweep or figures)."""
    for path in paths:
        path = os.fspath(path)
        if not os.path.isdir(path):
            yield path
            continue
        points = os.path.join(path, "points")
        folder = points if os.path.isdir(points) else path
        for name in sorted(os.listdir(folder)):
            if name.endswith(".json"):
                yield os.path.join(folder, name)


def read_all(*paths, partial=False):
    """Pairs of a file's name and its result. Of folders, files that are no results are passed over."""
    named = {os.fspath(path) for path in paths}
    for name in files(*paths):
        try:
            result = read(name)
        except ResultError:
            if name in named:
                raise
            continue
        if partial or not result.get("is_partial", False):
            yield name, result


# ---- rows -------------------------------------------------------------------------------------------------------------


def flat(value, prefix=""):
    """Members of members by dotted paths; without lists, and without histograms."""
    found = {}
    for name, member in value.items():
        path = f"{prefix}{name}"
        if isinstance(member, dict):
            found.update(flat(member, path + "."))
        elif not isinstance(member, list) and name != "histogram":
            found[path] = member
    return found


def row(result, file=""):
    """A result as one dictionary: file, point, is_partial, and all members by their dotted paths."""
    found = {"file": file, "point": result["config_hash"], "is_partial": bool(result.get("is_partial", False))}
    found.update(flat({name: member for name, member in result.items() if name not in ("config_hash", "is_partial")}))
    return found


def rows(*paths, partial=False):
    """A list of the rows of all results of files and folders."""
    return [row(result, name) for name, result in read_all(*paths, partial=partial)]


def table(path):
    """The rows of a sweep's table.tsv, or of a map's CSV: numbers where there are numbers, None where there is no value."""

    def value(text):
        if text in ("", "NaN"):
            return None
        for kind in (int, float):
            try:
                return kind(text)
            except ValueError:
                pass
        return text

    with open(path, encoding="utf-8", newline="") as file:
        dialect = "excel" if os.fspath(path).endswith(".csv") else "excel-tab"
        return [{name: value(text) for name, text in line.items()} for line in csv.DictReader(file, dialect=dialect)]


def frame(*paths, partial=False):
    """The rows of files and folders, or of one table, as a pandas DataFrame."""
    import pandas

    if len(paths) == 1 and os.fspath(paths[0]).endswith((".tsv", ".csv")):
        return pandas.DataFrame(table(paths[0]))
    return pandas.DataFrame(rows(*paths, partial=partial))


# ---- histograms -------------------------------------------------------------------------------------------------------


def bucket_of(value):
    """The bucket of a value: its leading 8 bits, behind how many bits follow them."""
    shift = max(value.bit_length() - SUB_BITS - 1, 0)
    return (shift << SUB_BITS) + (value >> shift)


def bucket_range(bucket):
    """The lowest and the highest value of a bucket."""
    shift = max((bucket >> SUB_BITS) - 1, 0)
    low = (bucket - (shift << SUB_BITS)) << shift
    return low, low + (1 << shift) - 1


class Histogram:
    """Latencies in ns, from the text of a result. Histograms add up."""

    def __init__(self, text=""):
        self.min = self.max = self.sum = 0
        self.buckets = {}
        for word in text.split():
            if "=" in word:
                name, number = word.split("=")
                if name not in ("min", "max", "sum"):
                    raise ResultError(f"'{word}' is not of a histogram")
                setattr(self, name, int(number))
            else:
                bucket, count = word.split(":")
                self.buckets[int(bucket)] = int(count)
        self.count = sum(self.buckets.values())

    def __add__(self, other):
        both = Histogram()
        filled = [one for one in (self, other) if one.count]
        if filled:
            both.min = min(one.min for one in filled)
            both.max = max(one.max for one in filled)
        both.sum = self.sum + other.sum
        both.count = self.count + other.count
        both.buckets = dict(self.buckets)
        for bucket, count in other.buckets.items():
            both.buckets[bucket] = both.buckets.get(bucket, 0) + count
        return both

    def mean(self):
        """Exact: of the values themselves."""
        return self.sum / self.count if self.count else 0.0

    def quantile(self, share):
        """The value that `share` (0 to 1) of all do not exceed, at most 1/128 too high, as dmbench reports it."""
        if not self.count:
            return 0
        rank = min(max(int(share * self.count), 1), self.count)
        while rank < self.count and rank / self.count < share:
            rank += 1
        below = 0
        for bucket in sorted(self.buckets):
            below += self.buckets[bucket]
            if below >= rank:
                return min(bucket_range(bucket)[1], self.max)
        return self.max

    def cdf(self):
        """Pairs of a value and the share of all that do not exceed it, for a plot."""
        below = 0
        for bucket in sorted(self.buckets):
            below += self.buckets[bucket]
            yield min(bucket_range(bucket)[1], self.max), below / self.count
