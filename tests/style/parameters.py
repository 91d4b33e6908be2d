# SPDX-License-Identifier: Apache-2.0
#
# parameters.py: prints docs/parameters.md, every number of transport/profiles with source, confidence, range and points.
import json
import pathlib
import re
import sys
import textwrap

ROOT = pathlib.Path(__file__).resolve().parents[2]
ROW = re.compile(r'X\((\w+), "([^"]*)", [^,]+, [^,]+, "([^"]*)"\)')
HEAD = """# Parameters of the simulated network

Made by `tests/style/parameters.py` from the profiles; a test compares. Confidence: H measured and read, m measured with
an unknown, L estimate. The range is what the sources allow; where a column is empty, the sources give one value. The
points are those of `dmbench validate` that decide the number; a number without points follows from its source alone.
What the numbers do is in [fabric-model.md](fabric-model.md).
"""


def parameters():
    """Name to (unit, meaning), in the order of the table."""
    text = (ROOT / "transport/core/profile.h").read_text(encoding="utf-8")
    text = text.replace('" \\\n', '"').replace("\\\n", "")
    return {name: (unit, meaning) for name, unit, meaning in ROW.findall(re.sub(r'"\s+"', "", text))}


def cell(text):
    return str(text).replace("|", "\\|")


def row(name, entry, unit):
    if not isinstance(entry, dict):
        entry = {"value": entry}
    source = entry.get("source", "")
    if "note" in entry:
        source += ". " + entry["note"]
    value = f"{entry['value']:g} {unit}" if unit not in ("", "0/1") else f"{entry['value']:g}"
    limits = "{:g} to {:g}".format(*entry["range"]) if "range" in entry else ""
    return "| {} | {} | {} | {} | {} | {} |".format(
        *map(cell, (name, value, limits, entry.get("confidence", ""), " ".join(entry.get("points", [])), source)))


def profile_lines(path, known):
    profile = json.loads(path.read_text(encoding="utf-8"))
    yield ""
    yield f"## {profile['name']}"
    yield ""
    text = profile["summary"] + "."
    if "inherits" in profile:
        text += f" All else is that of {profile['inherits']}."
    yield textwrap.fill(text, 120)
    yield ""
    yield "| parameter | value | range | confidence | points | source |"
    yield "|---|---|---|---|---|---|"
    for name, entry in profile["parameters"].items():
        yield row(name, entry, known[name][0])


def meaning_lines(known):
    yield ""
    yield "## Meaning"
    yield ""
    yield "| parameter | unit | meaning |"
    yield "|---|---|---|"
    for name, (unit, meaning) in known.items():
        yield f"| {name} | {unit} | {cell(meaning)} |"


def main():
    known = parameters()
    sys.stdout.write(HEAD)
    for line in meaning_lines(known):
        print(line)
    for path in sorted((ROOT / "transport/profiles").glob("*.json")):
        for line in profile_lines(path, known):
            print(line)


if __name__ == "__main__":
    main()
