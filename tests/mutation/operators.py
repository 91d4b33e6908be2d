# SPDX-License-Identifier: Apache-2.0
#
# operators.py GROUP COUNT SEED FILE...: adds COUNT mutants of these sources to tests/mutation/GROUP.json, drawn from all
# that the rules below make. They are read before they are kept: those that cannot matter get a reason, or are deleted.
import hashlib
import json
import pathlib
import random
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Lines that cost time or count, or are about what a user asked for.
SKIPPED = re.compile(r"dm_charge|counts\[|assert|ix_sort_charge|prefetch|dm_fail|dm_phase|calloc|malloc|rc < 0 \? rc : (?:0|rc);|^\s*(?:/?\*|//|#|\{|\.)|enum \{")
# A rule: its name, what it looks for in a line, what replaces the match, what a sentence calls it.
RULES = [
    ("comparison", re.compile(r" < "), " <= ", "'<' includes equality"),
    ("comparison", re.compile(r" >= "), " > ", "'>=' excludes equality"),
    ("comparison", re.compile(r" > "), " >= ", "'>' includes equality"),
    ("comparison", re.compile(r" <= "), " < ", "'<=' excludes equality"),
    ("comparison", re.compile(r" == "), " != ", "'==' is turned"),
    ("comparison", re.compile(r" != "), " == ", "'!=' is turned"),
    ("condition", re.compile(r" && "), " || ", "'and' is 'or'"),
    ("condition", re.compile(r" \|\| "), " && ", "'or' is 'and'"),
    ("condition", re.compile(r"\(!(?=\w)"), "(", "a negation is dropped"),
    ("constant", re.compile(r" \+ 1\b"), "", "one too few"),
    ("constant", re.compile(r" - 1\b"), "", "one too many"),
    ("wait dropped", re.compile(r"dm_commit\("), "dm_commit_async(", "a wait is dropped"),
    ("retry skipped", re.compile(r"return \w+_AGAIN;"), "return DM_NOT_FOUND;", "an absent key is reported instead of another try"),
    ("statement", re.compile(r"^ +(?:\w+_)?(?:post|unlock|set|put|add|drop|release|leave|wake|mark)\w*\(.*\);$"), "", "a call is dropped"),
    ("statement", re.compile(r"^ +[\w>.\[\]-]+ [|&]?= [^;]+;$"), "", "an assignment is dropped"),
]


def function_of(lines, at):
    """The name of the function that a line is in."""
    for line in reversed(lines[:at]):
        found = re.match(r"^[a-z].*?(\w+)\(", line)
        if found:
            return found.group(1)
    return "file"


def unique(lines, at):
    """The line, with so many lines before it that the text occurs once; None if it is not worth it."""
    text = "\n".join(lines)
    for first in range(at, max(-1, at - 6), -1):
        old = "\n".join(lines[first : at + 1])
        if text.count(old) == 1:
            return first, old
    return None


def proposed(path):
    lines = path.read_text(encoding="utf-8").split("\n")
    for at, line in enumerate(lines):
        in_function = line.startswith("    ")
        if not in_function or SKIPPED.search(line):
            continue
        for name, pattern, new, says in RULES:
            for found in pattern.finditer(line):
                changed = line[: found.start()] + new + line[found.end() :]
                spot = unique(lines, at)
                if spot is None or (name == "statement" and re.match(r"^ +(?:const )?[\w ]+ \*?\w+ = ", line)):
                    continue
                first, old = spot
                kept = lines[first:at] + ([] if name == "statement" else [changed])
                digest = hashlib.sha256(f"{path.name}{at}{found.start()}{says}".encode()).hexdigest()[:4]
                yield {
                    "id": f"{path.stem.replace('_', '-')}-{name.replace(' ', '-')}-{digest}",
                    "file": str(path.relative_to(ROOT)),
                    "old": old + "\n",
                    "new": "".join(part + "\n" for part in kept),
                    "breaks": f"{function_of(lines, at)}: {says}",
                    "operator": "made: " + name,
                }


def main():
    group, count, seed = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    path = ROOT / f"tests/mutation/{group}.json"
    data = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {"mutants": []}
    have = {mutant["old"] for mutant in data["mutants"]}
    found = [mutant for name in sys.argv[4:] for mutant in proposed(ROOT / name) if mutant["old"] not in have]
    # As many of each rule as there are: comparisons are most of a source, and not most of its mistakes.
    random.Random(seed).shuffle(found)
    rank = {}
    for mutant in found:
        rank[mutant["operator"]] = rank.get(mutant["operator"], 0) + 1
        mutant["rank"] = rank[mutant["operator"]]
    chosen = sorted(found, key=lambda mutant: mutant["rank"])[:count]
    for mutant in chosen:
        del mutant["rank"]
        mutant["id"] = f"{group}-{mutant['id']}"
    data["mutants"] += chosen
    path.write_text(json.dumps(data, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(f"{len(chosen)} of {len(found)} added to {path.name}")


if __name__ == "__main__":
    main()
