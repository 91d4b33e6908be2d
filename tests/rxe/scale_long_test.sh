#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Sizes that nothing else here reaches, in one machine: 96 threads of compute nodes, 384 connections to four memory nodes
# (768 queue pairs), and 1 GB of registered memory. Prints what was reached.
# shellcheck source=tests/rxe/lib.sh
. "$(dirname "$0")/lib.sh"

# run WHAT OPTIONS...
run() {
    what=$1
    shift
    begun=$(date +%s)
    expect 0 run --transport verbs --workload a --verify --json --transport-set device=rxe0 \
        --transport-set mn_device=rxe1 "$@"
    holds out '"broken": 0'
    echo "$what: right, $(($(date +%s) - begun)) s"
}

# A thread polls for a shorter time, since all share a processor; and has patience with the others.
shared="--transport-set spin=0 --transport-set timeout=100s --transport-set call_timeout=100s --transport-set ack_timeout=20"
# The options are separate words.
# shellcheck disable=SC2086
run "96 threads, 384 connections" --index sherman --mns 4 --cns 4 --clients 96 --coroutines 1 --keys 5000 --ops 4000 $shared
python3 - <<'PY'
import json
fabric = json.load(open("out"))["fabric"]
print("threads:", fabric["threads"], "| doorbell registers:", fabric["doorbell_registers"], "| depth:", fabric["depth"])
threads = int(fabric["threads"].split()[0])
assert threads >= 96, fabric["threads"]
PY
# shellcheck disable=SC2086
run "1 GB of registered memory" --index fg --mns 1 --cns 1 --clients 8 --coroutines 4 --keys 50K --ops 4000 \
    --mn-memory 1GB $shared
