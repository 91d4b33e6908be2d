#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# `dmbench check`: its output and status for correct indexes and wrong variants, replays, histories.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

expect 0 check --help
holds out "Examples:"
holds out "--seeds"

# a right index
expect 0 check --index sherman --seeds 50
holds out "sherman: 50 seeds from 1 on"
holds out "nothing found"
expect 0 check --seeds 5
expect 0 check --index sherman --seeds 40 --first-seed 500 --jobs 2 --json
python3 -c 'import json; top = json.load(open("out")); one = top["findings"][0]
assert not top["wrong"] and one["seeds"] == 40 and one["first_seed"] == 500 and "leaf_split" in one["counters"]'
expect 0 check --index sherman --time 200ms
expect 0 check --index sherman --seeds 5 --seed-time 0
expect 0 check --index sherman --seeds 5 --seed-time 1h

# a variant that is known to be wrong: the finding, its minimum and its history
expect 3 check --index sherman --set torn=absent --out failing.json --trace failing.perfetto.json
python3 -c 'import json; names = {event["name"] for event in json.load(open("failing.perfetto.json")) if event["ph"] == "X"}
assert {"read", "write"} <= names, names'
holds out "WRONG"
holds out "cannot be explained"
replay=$(sed -n 's/^  replay: *dmbench //p' out)
minimum=$(sed -n 's/^  minimum: *dmbench //p' out)
[ -n "$replay" ] || fail "no command to replay: $(cat out)"
[ -n "$minimum" ] || fail "no command for the minimum: $(cat out)"
holds out "without a fault"
# shellcheck disable=SC2086
expect 3 $minimum
# shellcheck disable=SC2086
expect 3 $replay --shrink-runs 0
expect 3 check --history failing.json
holds out "cannot be explained"
expect 3 check --index sherman --set torn=absent --json
python3 -c 'import json; top = json.load(open("out"))
assert top["wrong"] and "--replay" in top["findings"][0]["finding"]["replay"]'

# a minimum that needs a fault names it
expect 3 check --index smart --set lease_takes=lock --set lease_us=20 --replay 399
holds out "with fault 0: 50 % of the verbs to memory node 1 are delayed by 20000 ns"

# a replay that finds nothing, and its history
expect 0 check --index sherman --replay 3 --out fine.json
expect 0 check --history fine.json
holds out "nothing found"
expect 0 check --index sherman --replay 3 --out again.json
cmp fine.json again.json || fail "the same seed gave two histories"

# rare events that cannot happen
expect 3 check --index sherman --set hand_over=off --seeds 20 --coverage on
holds out "never happened"

# seeds at a time in real time
expect 0 check --index fg --transport local --seeds 6 --jobs 3
holds out "fg: 6 seeds from 1 on"

# bad input
expect 2 check --index shermann
holds err "did you mean 'sherman'?"
expect 2 check --index sherman --set nonsense=1
holds err "nonsense"
expect 2 check --set torn=absent
holds err "--index"
expect 2 check --index sherman --set torn
holds err "NAME=VALUE"
expect 2 check --index null
holds err "keeps no data"
expect 2 check --transport simm
# Two processes need a device; `tests/rxe/hosts_test.sh` has one.
expect 2 check --mn 127.0.0.1:7000
holds err "--mn: two processes need --transport verbs"
expect 2 check --mn 127.0.0.1:7000 --listen 127.0.0.1:7000
holds err "--listen: this process serves, or --mn: it checks; not both"
expect 2 check --part steps:1
holds err "--replay"
expect 2 check --index sherman --replay 3 --part nonsense
holds err "nonsense"
# Faults that the user gives replace those of the worlds and explain what such faults do. Memory that a world lets end is
# no fault of the network and stays explained (seed 11 of FG).
expect 0 check --index fg --transport-set "faults=delay:p=0.01,by=1us" --seeds 12
expect 0 check --index chime --transport-set "faults=stop:client=0,verb=5" --seeds 6
expect 0 check --index sherman --transport-set "faults=error:client=0,verb=9" --seeds 6
expect 2 check --index sherman --transport-set nonsense=1
holds err "nonsense"
expect 1 check --world nowhere.json --json
expect 2 check --seedz 3
holds err "did you mean --seeds?"
expect 1 check --history absent.json
printf '{"kind": "dmbench history", "schema_version": 1, "index": "x", "seed": 1, "initial": [],\n "operations": [\n%s]}\n' \
    '{"client": 0, "op": "delete", "key": 1, "invoke": 9, "response": 8, "outcome": "ok"}' >bad.json
expect 2 check --history bad.json
holds err "bad.json:3: operation 0: its response is before its invocation"
expect 1 check --index sherman --replay 3 --out absent/file.json
