#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# docs/parameters.md is what the profiles say, and every number that comes with the program has a source and a
# confidence.
. "$DM_SOURCE_DIR/tests/style/lib.sh"

need python3
python3 tests/style/parameters.py | cmp -s - docs/parameters.md ||
    complain "docs/parameters.md is old: python3 tests/style/parameters.py >docs/parameters.md"
python3 - <<'PY' || complain "numbers without a source or a confidence"
import glob, json, sys

bad = 0
for path in sorted(glob.glob("transport/profiles/*.json")):
    with open(path, encoding="utf-8") as file:
        for name, entry in json.load(file)["parameters"].items():
            if not isinstance(entry, dict) or not entry.get("source") or "confidence" not in entry:
                print(f"{path}: {name}: no source or no confidence")
                bad = 1
sys.exit(bad)
PY
finish
