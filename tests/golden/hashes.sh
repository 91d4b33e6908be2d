#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Prints a line for each simulated run of tests/golden: the hash of its whole result without provenance, and its options.
# What is not meant to change results must leave this table as it is; a commit that does change it says why.
#
#   tests/golden/hashes.sh build/release/dmbench >tests/golden/hashes.txt
set -eu
dmbench=${1:?the program}
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d "${TMPDIR:-/tmp}/dmbench_golden.XXXXXX")
trap 'rm -rf "$work"' EXIT

count=0
# line OPTIONS...: result number $count, whose options are line $count of the list.
line() {
    count=$((count + 1))
    "$dmbench" "$@" --out "$work/$count.json" >"$work/log" 2>&1 || [ -s "$work/$count.json" ] || {
        echo "hashes.sh: dmbench $* failed: $(cat "$work/log")" >&2
        exit 1
    }
    echo "$*" >>"$work/list"
}

common="--keys 20K --ops 8K --clients 24 --cns 3 --seed 7"
indexes=$("$dmbench" list indexes --json | python3 -c 'import json, sys
for index in json.load(sys.stdin)["indexes"]:
    if index["keeps_data"]:
        print(index["name"])')
scanning=$("$dmbench" list indexes --json | python3 -c 'import json, sys
print(*(i["name"] for i in json.load(sys.stdin)["indexes"] if "scan" in i["capabilities"]))')
for index in $indexes; do
    workloads="a b c d f load"
    case " $scanning " in *" $index "*) workloads="a b c d e f load" ;; esac
    for workload in $workloads; do
        # shellcheck disable=SC2086
        line run --index "$index" --workload $workload $common
    done
    for seed in 1 2 3 4 5 6; do
        line check --index "$index" --replay $seed
    done
done
while read -r options; do
    case $options in
    '' | '#'*) ;;
    *)
        # shellcheck disable=SC2086
        line run $options $common
        ;;
    esac
done <"$here/runs.txt"
python3 - "$work" <<'PY'
import hashlib, json, sys
for number, options in enumerate(open(f"{sys.argv[1]}/list", encoding="utf-8"), 1):
    with open(f"{sys.argv[1]}/{number}.json", encoding="utf-8") as file:
        data = json.load(file)
    data.pop("provenance", None)
    print(hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()[:16], options, end="")
PY
