#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The claims in the documentation are those that were judged last: README.md has the counts of docs/claims.md, which has
# every claim of plots/claims/ with its words, and a reason for each that is not reproduced. scripts/update_docs.sh
# mends both. An experiment of a figure belongs to a reason: one that no reason evaluates is never run.
. "$DM_SOURCE_DIR/tests/style/lib.sh"
need python3

# The counts are a line of docs/claims.md, and folded between marks in README.md.
counts_of() {
    sed '/^<!-- claims: end -->/,$d' "$1" | awk '/^[0-9]+ claims:/ { inside = 1 } !NF { inside = 0 } inside' | tr '\n' ' '
}
# Those of paper scale are the second of two folded items of docs/claims.md.
readme_paper=$(sed -n '/^<!-- claims-paper -->/,/^<!-- claims-paper: end -->/p' README.md | grep -v '^<!--' | tr '\n' ' ')
page_paper=$(awk '/^- [0-9]+ claims:/ { item++ } !NF { item = 0 } item == 2 { sub(/^(- |  )/, ""); print }' docs/claims.md |
    tr '\n' ' ')
[ -n "$page_paper" ] || complain "docs/claims.md: no counts of paper scale"
[ "$readme_paper" = "$page_paper" ] || complain "README.md has other counts of paper scale than docs/claims.md"
[ -n "$(counts_of docs/claims.md)" ] || complain "docs/claims.md: no counts"
[ "$(counts_of README.md)" = "$(counts_of docs/claims.md)" ] || complain "README.md has other counts than docs/claims.md"
python3 - <<'PYTHON' || complain "docs/claims.md is older than plots/claims/, see above"
import glob
import json
import sys

rows = {}
for line in open("docs/claims.md", encoding="utf-8"):
    cells = line.replace("\\|", "\0").split("|")
    if len(cells) == 7:
        rows[cells[1].strip()] = [cell.replace("\0", "|").strip() for cell in cells]
missing = 0
files = sorted(glob.glob("plots/claims/*.json"))
for claim in (claim for file in files for claim in json.load(open(file, encoding="utf-8"))["claims"]):
    row = rows.get(claim["id"])
    reasons = [reason["text"] for reason in claim.get("because", []) if reason.get("scale", "quick") == "quick"]
    if row is None or row[2] != claim["text"] or (row[5] and not all(text in row[5] for text in reasons)):
        print(f"{claim['id']}: not there, or with other words")
        missing += 1
    elif "analysis" in claim or (row[5] and not reasons):
        print(f"{claim['id']}: a reason in prose, without an expression that is evaluated")
        missing += 1
    elif not row[5] and row[4].startswith(("direction only", "not reproduced", "unresolved")):
        print(f"{claim['id']}: '{row[4]}' without a reason")
        missing += 1
sys.exit(missing > 0)
PYTHON
python3 - <<'PYTHON' || complain "no reason evaluates the experiments above: use or remove them"
import glob
import json
import re
import sys

used = set()
for file in glob.glob("plots/claims/*.json"):
    for claim in json.load(open(file, encoding="utf-8"))["claims"]:
        for reason in claim.get("because", []):
            expression = reason.get("value", "") + reason.get("holds", "")
            figure = reason.get("reads", claim.get("reads"))
            used |= {(figure, name) for name in re.findall(r"with\(\s*([^,\s]+)\s*,", expression)}
unused = [
    (figure["id"], experiment["id"])
    for figure in (json.load(open(file, encoding="utf-8")) for file in sorted(glob.glob("plots/figures/*.json")))
    for experiment in figure.get("experiments", [])
    if (figure["id"], experiment["id"]) not in used
]
for figure, experiment in unused:
    print(f"{figure}: {experiment}")
sys.exit(len(unused) > 0)
PYTHON
finish
