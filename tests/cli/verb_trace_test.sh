#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Trace files: `run --verb-trace` and `check --replay --trace` write events that nest, and change no result.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

# nests FILE OPERATIONS RESPONDER: slices of a track lie within each other or apart, verbs of clients within operations,
# or before the first one, while the client attaches.
nests() {
    python3 - "$@" <<'PYTHON' || fail "$1 does not nest"
import json, sys
events = json.load(open(sys.argv[1]))
slices = [e for e in events if e["ph"] == "X"]
assert all(e["ph"] in "XM" for e in events)
tracks = {}
for e in slices:
    begin = round(e["ts"] * 1000)
    tracks.setdefault((e["pid"], e["tid"]), []).append((begin, -begin - round(e["dur"] * 1000), "key" in e["args"], e))
operations = verbs = responses = 0
for key, track in tracks.items():
    first = min((begin for begin, _, is_op, _ in track if is_op), default=None)
    is_client = first is not None
    open_ends = []
    for begin, minus_end, is_op, e in sorted(track, key=lambda s: (s[0], s[1], not s[2])):
        end = -minus_end
        while open_ends and open_ends[-1] <= begin:
            open_ends.pop()
        assert not open_ends or end <= open_ends[-1], (key, e)
        is_attaching = is_client and end <= first
        is_within = is_op or not is_client or open_ends or begin == end or is_attaching
        assert is_within, ("a verb outside its operation", key, e)
        if is_op:
            assert not open_ends and e["args"]["outcome"], e
        elif is_client:
            verbs += 1
            assert "bytes" in e["args"], e
        else:
            responses += 1
        open_ends.append(end)
        operations += is_op
assert sys.argv[2] == "any" or operations == int(sys.argv[2]), operations
assert verbs > operations, verbs
assert (responses > 0) == (sys.argv[3] == "responder"), responses
names = {e["args"]["name"] for e in events if e["name"] == "process_name"}
assert "memory node 0" in names and "compute node 0" in names, names
PYTHON
}

expect 0 run --help
holds out "--verb-trace"
holds out "--trace-ops"

# the simulated result is the same with and without, byte for byte except for provenance
point="run --index sherman --workload a --keys 5K --ops 4K --clients 12 --cns 3 --mns 2 --coroutines 2"
# shellcheck disable=SC2086
expect 0 $point --out plain.json
# shellcheck disable=SC2086
expect 0 $point --out traced.json --verb-trace verbs.json --trace-ops 300
same_result plain.json traced.json
nests verbs.json 300 responder
# shellcheck disable=SC2086
expect 0 $point --verb-trace again.json --trace-ops 300
cmp verbs.json again.json || fail "the same run gave two traces"

# a short run, and one in real time
expect 0 run --index sherman --workload f --keys 1K --ops 50 --clients 2 --verb-trace short.json
nests short.json 50 responder
expect 0 run --index sherman --transport local --workload a --keys 5K --ops 4K --clients 4 --verb-trace local.json
nests local.json 1000 none

# verification is not measured
expect 0 run --index sherman --workload f --keys 1K --ops 50 --clients 2 --verify --verb-trace verified.json
cmp short.json verified.json || fail "the trace has verbs of the verification"

# what cannot be
expect 1 run --index sherman --verb-trace absent/verbs.json
holds err "--verb-trace: cannot write in folder 'absent'"
expect 2 run --index sherman --verb-trace same.json --out same.json
expect 2 run --index sherman --verb-trace some.json --trace-ops 0

# a checked world
expect 0 check --index sherman --replay 3 --trace world.json
nests world.json any responder
expect 1 check --index sherman --replay 3 --trace absent/world.json
expect 3 check --index sherman --set torn=absent --seeds 40
holds out ". read"
holds out "sampled"
[ -z "$(find . -name '*.tmp.*')" ] || fail "left behind: $(ls)"
