#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# Prints docs/claims-history.md: the verdict of each claim at some revisions of docs/claims.md, and what was changed between
# the first and the last of them, as far as the files say it. It needs git and the project's history.
#
#   scripts/claims_history.py >docs/claims-history.md
import json
import re
import subprocess
import sys

# Revisions at which docs/claims.md was made anew, and what came in between.
STAGES = [
    ("549aa8d", "audit", "as the audits found it"),
    ("b4aea0a", "network", "the new model of the network and its clients"),
    ("f8a6312", "published", "the six indexes as published"),
    ("17753dc", "systems", "the systems that the papers compare with"),
    ("b877ed8", "set-ups", "figures as their papers ran them, readings, metrics of the papers, mistakes of indexes mended"),
    ("50ac0f8", "scale", "the papers' scale, and mistakes that reviewers found by reading"),
    ("", "today", "the page of today: claims compared with the papers sentence by sentence"),
]
SHORT = {"reproduced": "yes", "direction only": "direction", "not reproduced": "no", "unresolved": "unresolved", "not run": "-"}
# What of a figure does not change its results.
PROSE = {"title", "shows", "keeps", "from", "readings", "experiments", "plots", "id"}


def show(revision, path):
    name = revision + ":" + path if revision else ":" + path
    done = subprocess.run(["git", "show", name], capture_output=True, text=True, check=False)
    return done.stdout if done.returncode == 0 else ""


def verdicts(revision):
    """By id: the verdict as a short word, and whether a system was missing."""
    found = {}
    text = show(revision, "docs/claims.md")
    if not text:
        sys.exit(f"claims_history.py: no docs/claims.md at {revision}; the history is needed")
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.split("|")]
        if len(cells) < 6 or not re.fullmatch(r"[a-z]+-[a-z0-9-]+", cells[1]) or cells[1] in found:
            continue
        verdict = re.split(r"[;(]", cells[4])[0].strip()
        under = re.match(r"reproduced under (.*)", verdict)
        found[cells[1]] = ("yes, under " + under[1] if under else SHORT.get(verdict, verdict), "is not built here" in cells[3])
    return found


def claims(revision):
    names = subprocess.run(["git", "ls-tree", "-r", "--name-only", revision or "HEAD", "plots"], capture_output=True, text=True, check=True)
    found = {}
    for name in names.stdout.split():
        if re.fullmatch(r"plots/claims(/\w+)?\.json", name):
            for claim in json.loads(show(revision, name))["claims"]:
                found[claim["id"]] = claim
    return found


def reads(claim):
    figures = {claim.get("reads")} | {check.get("reads") for check in claim["checks"]}
    return sorted(figure for figure in figures if figure)


def metric(claim):
    keys = ("what", "value", "over", "expect", "direction", "tolerance", "holds")
    return [{key: check[key] for key in keys if key in check} for check in claim["checks"]]


def setup(revision, figure):
    text = show(revision, f"plots/figures/{figure}.json")
    return {key: value for key, value in json.loads(text).items() if key not in PROSE} if text else None


def changes(before, now, first, last, claim, old):
    """What the files say of a verdict that changed."""
    found = []
    if before[1] and not now[1]:
        found.append("systems built")
    if old is None or metric(old) != metric(claim):
        found.append("metric or expected value")
    if any(setup(first, figure) != setup(last, figure) for figure in reads(claim)):
        found.append("set-up")
    if now[0].startswith("yes, under"):
        found.append("reading")
    return ", ".join(found) or "index or network alone"


def main():
    tables = [verdicts(revision) for revision, _, _ in STAGES]
    first, last = STAGES[0][0], STAGES[-1][0]
    old, new = claims(first), claims(last)
    print("# Verdicts before and after\n")
    print("Made by `scripts/claims_history.py` from the history of [claims.md](claims.md). Indexes and the network were changed")
    print("before each column; the last column says what else was, of claims whose verdict is another one today: a system")
    print("that a part compares with, the metric or the expected value, the set-up of a figure, a reading.\n")
    print("| column | revision | after |\n|---|---|---|")
    for revision, name, what in STAGES:
        print(f"| {name} | {revision or 'this one'} | {what} |")
    print("\n| claims | " + " | ".join(name for _, name, _ in STAGES) + " |\n|---" + "|---" * len(STAGES) + "|")
    for label in ("yes", "yes, under", "direction", "no", "-"):
        counts = []
        for table in tables:
            kinds = [verdict if not verdict.startswith("yes, under") else "yes, under" for verdict, _ in table.values()]
            counts.append(sum(kind == label or (label == "-" and kind == "unresolved") for kind in kinds))
        shown = {"yes, under": "yes, under a reading", "-": "not run or unresolved"}.get(label, label)
        print(f"| {shown} | " + " | ".join(str(count) for count in counts) + " |")
    print("\n| claim | " + " | ".join(name for _, name, _ in STAGES) + " | changed |\n|---" + "|---" * (len(STAGES) + 1) + "|")
    for name, claim in new.items():
        row = [table.get(name, ("", False)) for table in tables]
        changed = "" if row[0][0] == row[-1][0] else changes(row[0], row[-1], first, last, claim, old.get(name))
        print(f"| {name} | " + " | ".join(verdict for verdict, _ in row) + f" | {changed} |")


if __name__ == "__main__":
    main()
