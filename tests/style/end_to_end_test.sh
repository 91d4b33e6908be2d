#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The comparison of whole indexes with published results in the documentation is that of plots/end_to_end: docs/end-to-end.md
# has every experiment and point with its published value and, where it is out of its tolerance, the cause; README.md has its
# overview. docs/end-to-end-published.md is the same at the published sizes, and README.md has its counts.
# `scripts/update_docs.sh --end-to-end` mends the former, --scales the latter.
. "$DM_SOURCE_DIR/tests/style/lib.sh"
need python3

python3 - <<'PYTHON' || complain "docs/end-to-end.md or README.md is older than plots/end_to_end, see above"
import glob
import json
import sys

pages = {name: open(f"docs/{name}.md", encoding="utf-8").read() for name in ("end-to-end", "end-to-end-published")}
readme = open("README.md", encoding="utf-8").read()
wrong = []


def digits(value):
    return 0 if value >= 100 else 1 if value >= 10 else 2 if value >= 1 else 3


def judge(name, page):
    if page.count("\n## ") != len(glob.glob("plots/end_to_end/*.json")):
        wrong.append(f"docs/{name}.md: has another number of experiments")
    for path in sorted(glob.glob("plots/end_to_end/*.json")):
        experiment = json.load(open(path, encoding="utf-8"))
        start = page.find(f"\n## {experiment['title']}\n")
        part = page[start:].split("\n## ")[1] if start >= 0 else ""
        rows = [line for line in part.split("\n") if line.startswith("| ")]
        for member in ("source", "settings", "differs"):
            if f"| {member} | {experiment[member]} |" not in rows:
                wrong.append(f"docs/{name}.md, {path}: {member}: not there, or with other words")
        for point in experiment["points"]:
            judge_point(f"docs/{name}.md, {path}: '{point['label']}'", point, rows)


def judge_point(where, point, rows):
    published = f"{point['published']:.{digits(point['published'])}f}"
    starts = (f"| {point['label']} |", f"| {point['label']}, ")
    row = [row for row in rows if row.startswith(starts) and f"| {published} " in row]
    if not row:
        wrong.append(f"{where}: not there, or with another published value")
    elif "| **out** |" in row[0] and not ("cause" in point and point["cause"] in row[0]):
        wrong.append(f"{where} is out, and the table does not have its cause")
    elif "not_run" in point and point["not_run"] not in row[0]:
        wrong.append(f"{where}: the table does not have the reason why it is not run")


for mark, name, until in (("end-to-end", "end-to-end", "\n## "), ("published", "end-to-end-published", "\n\n")):
    judge(name, pages[name])
    overview = pages[name].split("\n\n", 2)[2].split(until)[0].strip()
    if f"<!-- {mark} -->\n{overview}\n<!-- {mark}: end -->" not in readme:
        wrong.append(f"README.md: has other counts than docs/{name}.md")
print("\n".join(wrong))
sys.exit(len(wrong) > 0)
PYTHON
finish
