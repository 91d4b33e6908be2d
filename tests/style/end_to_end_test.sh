#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The comparison of whole indexes with published results in the documentation is that of plots/end_to_end: docs/end-to-end.md
# has every experiment and point with its published value and, where it is out of its tolerance, the cause; README.md has its
# overview. `scripts/update_docs.sh --end-to-end` mends both.
. "$DM_SOURCE_DIR/tests/style/lib.sh"
need python3

python3 - <<'PYTHON' || complain "docs/end-to-end.md or README.md is older than plots/end_to_end, see above"
import glob
import json
import sys

page = open("docs/end-to-end.md", encoding="utf-8").read()
readme = open("README.md", encoding="utf-8").read()
wrong = []


def digits(value):
    return 0 if value >= 100 else 1 if value >= 10 else 2 if value >= 1 else 3


overview = page.split("\n\n", 2)[2].split("\n## ")[0].strip()
if "<!-- end-to-end -->\n" + overview + "\n<!-- end-to-end: end -->" not in readme:
    wrong.append("README.md: has another overview")
if page.count("\n## ") != len(glob.glob("plots/end_to_end/*.json")):
    wrong.append("docs/end-to-end.md: has another number of experiments")
for path in sorted(glob.glob("plots/end_to_end/*.json")):
    experiment = json.load(open(path, encoding="utf-8"))
    start = page.find(f"\n## {experiment['title']}\n")
    part = page[start:].split("\n## ")[1] if start >= 0 else ""
    rows = [line for line in part.split("\n") if line.startswith("| ")]
    for name in ("source", "settings", "differs"):
        if f"| {name} | {experiment[name]} |" not in rows:
            wrong.append(f"{path}: {name}: not there, or with other words")
    for point in experiment["points"]:
        published = f"{point['published']:.{digits(point['published'])}f}"
        row = [row for row in rows if row.startswith((f"| {point['label']} |", f"| {point['label']}, ")) and f"| {published} " in row]
        if not row:
            wrong.append(f"{path}: '{point['label']}': not there, or with another published value")
        elif "| **out** |" in row[0] and not ("cause" in point and point["cause"] in row[0]):
            wrong.append(f"{path}: '{point['label']}' is out, and the table does not have its cause")
        elif "not_run" in point and point["not_run"] not in row[0]:
            wrong.append(f"{path}: '{point['label']}': the table does not have the reason why it is not run")
print("\n".join(wrong))
sys.exit(len(wrong) > 0)
PYTHON
finish
