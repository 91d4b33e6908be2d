#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# What `dmbench list` shows is what can be run, as text and as JSON.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

expect 0 list
for title in Indexes Workloads Profiles Transports Figures; do
    holds out "$title"
done
holds out "sherman"
holds out "cx6-100g"
expect 0 list indexes
holds out "null"
expect 0 list indexes sherman
holds out "--set "
holds out "paper:"
expect 0 list transports sim
expect 0 list profiles
grep -q 'hash [0-9a-f]\{16\}$' out || fail "profiles have no hash: $(cat out)"

# every line of indexes.def is listed
sed -n 's/^IX_INDEX(\([a-z0-9_]*\)).*/\1/p' "$DM_SOURCE_DIR/indexes/indexes.def" | while read -r name; do
    "$DMBENCH" list indexes | grep -q "^  $name " || fail "index $name is not listed"
done

expect 2 list indexs
holds err "did you mean 'indexes'?"
expect 2 list indexes shermann
holds err "did you mean 'sherman'?"
expect 2 list indexes sherman more
expect 2 list --jsn
expect 0 list --help
holds out "Examples"

command -v python3 >/dev/null || missing "python3; the text was checked"
"$DMBENCH" list --json >all.json
python3 - all.json <<'PY'
import json
import sys

everything = json.load(open(sys.argv[1], encoding="utf-8"))
assert set(everything) == {"indexes", "workloads", "profiles", "transports", "figures"}, sorted(everything)
sherman = next(index for index in everything["indexes"] if index["name"] == "sherman")
assert sherman["parameters"] and sherman["paper"]
assert sherman["capabilities"] == ["insert", "delete", "scan"], sherman["capabilities"]
clover = next(index for index in everything["indexes"] if index["name"] == "clover")
assert clover["capabilities"] == ["insert", "delete", "servers"], clover["capabilities"]
for parameter in sherman["parameters"]:
    assert {"name", "type", "default", "unit", "symbol", "help"} <= set(parameter), parameter
    assert parameter["help"], parameter
PY
