#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Results by other sources are not taken for fresh ones: hashes of sources, and what --stale does with such results.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

# hashed TEXT: the hash of a component that has this one file.
hashed() {
    mkdir -p tree
    printf '%s' "$1" >tree/a.c
    echo "part a.c" >list
    "$DM_BUILD_DIR/source_hashes" list tree made.c || fail "source_hashes failed"
    sed -n 's/.*{"part", "\([0-9a-f]*\)"}.*/\1/p' made.c
}

# same A B, other A B: whether two texts count as one source.
same() {
    [ "$(hashed "$1")" = "$(hashed "$2")" ] || fail "counts as changed: $1 -> $2"
}
other() {
    [ "$(hashed "$1")" != "$(hashed "$2")" ] || fail "does not count as changed: $1 -> $2"
}
[ -n "$(hashed 'int a;')" ] || fail "no hash: $(cat made.c)"
same 'int a = 1; /* one */' 'int a=1;  // "one"
'
same 'int f(int a,
    int b);' 'int f( int a, int b );'
same '#define A 1 /* c */
int a;' '#define A   1
int    a;'
same '#define A \
    1
int a;' '#define A 1
int a;'
other 'int a = 1;' 'int a = 2;'
other 'a - -b' 'a--b'
other 'int a;' 'inta;'
other 'char *a = "x y";' 'char *a = "x  y";'
other 'char *a = "/* x */";' 'char *a = "";'
other 'char *a = "\"/*"; int b; /* */' 'char *a = "\"/*"; int c; /* */'
other '#define A 1
B' '#define A 1 B'
other "char a = '\"'; int b; char c = '\"';" "char a = '\"'; int d; char c = '\"';"

# A result has the hashes of what it depends on, and only of that.
cat >base.json <<'JSON'
{"index": "sherman", "workload": "a", "keys": "1K", "ops": "2K", "warmup": "0", "clients": 4}
JSON
expect 0 sweep base.json --grid index=sherman,fg --out sweep
sherman=$(grep -l '"sherman": "[0-9a-f]\{16\}"' sweep/points/*.json)
for part in common transport sim workloads run shared; do
    grep -q "\"$part\": \"[0-9a-f]\{16\}\"" "$sherman" || fail "no hash of $part: $(cat "$sherman")"
done
! grep -q '"fg": "' "$sherman" || fail "Sherman's result depends on FG"
expect 0 sweep base.json --grid index=sherman,fg --out sweep
holds err "2 points: 2 there already, 0 to run"

# Another Sherman made it: the plan says so, and the point is run again.
make_stale() {
    sed 's/"sherman": "[0-9a-f]*"/"sherman": "0123456789abcdef"/' "$sherman" >stale.json
    cp stale.json "$sherman"
}
make_stale
expect 0 sweep base.json --grid index=sherman,fg --out sweep --stale list
holds out "sherman  "
holds out "2 points in sweep, 1 stale"
expect 0 sweep base.json --grid index=sherman,fg --out sweep --dry-run
holds out "2 points in sweep/points, 1 to run"
holds out "  stale  index=sherman"
cmp -s stale.json "$sherman" || fail "a plan changed a result"
expect 0 sweep base.json --grid index=sherman,fg --out sweep --stale keep
holds err "2 points: 2 there already, 1 stale but kept, 0 to run"
cmp -s stale.json "$sherman" || fail "--stale keep changed a result"
expect 0 sweep base.json --grid index=sherman,fg --out sweep
holds err "2 points: 1 there already, 1 stale, 1 to run"
holds err "--stale list"
! grep -q 0123456789abcdef "$sherman" || fail "the stale point was not run again"

# Adopted, it is fresh, keeps what it was, and is no less valid.
make_stale
expect 0 sweep base.json --grid index=sherman,fg --out sweep --stale adopt --dry-run
holds out "2 points in sweep/points, 0 to run"
cmp -s stale.json "$sherman" || fail "a plan adopted a result"
expect 0 sweep base.json --grid index=sherman,fg --out sweep --stale adopt
holds err "1 adopted, 0 to run"
holds "$sherman" '"adopted"'
holds "$sherman" 0123456789abcdef
expect 0 sweep base.json --grid index=sherman,fg --out sweep
holds err "2 points: 2 there already, 0 to run"

# A result without hashes is stale, as results of before are.
command -v python3 >/dev/null || missing "python3; the rest was tested"
python3 - "$sherman" <<'PY' || fail "hashes cannot be dropped from $sherman"
import json, sys
with open(sys.argv[1], encoding="utf-8") as file:
    result = json.load(file)
del result["provenance"]["sources"], result["provenance"]["adopted"]
with open(sys.argv[1], "w", encoding="utf-8") as file:
    json.dump(result, file)
PY
expect 0 sweep base.json --grid index=sherman,fg --out sweep --stale list
holds out "not recorded"

expect 2 sweep base.json --grid index=sherman,fg --out sweep --stale never
holds err "--stale"
