#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Runs between two hosts (hosts.sh), each with its own software RoCE device: memory nodes on machine 1 and the compute
# side on machine 0; index servers on both, which call each other; perftest beside the contract; a wrong token; and a
# host that disappears while runs use it in both roles. Machine 0 has jumbo frames and machine 1 has none.
# shellcheck source=tests/rxe/lib.sh
. "$(dirname "$0")/lib.sh"

echo "a token of this test" >token
echo "another one" >wrong
point="--transport verbs --workload d --keys 3000 --ops 2000 --clients 8 --coroutines 4 --seed 3"
sherman="$point --index sherman --mns 2"
# The index servers call each other, and need the addresses, too.
hstore="$point --index hstore --mns 1 --servers 2 $(patience hstore) --mn 10.78.0.2:7002,10.78.0.2:7003,10.78.0.1:7004"
perftest="-F -d rxe0 -x 1 -s 64 -m 1024"
long="--transport verbs --index fg --workload a --keys 2000 --ops 100M --clients 4 --mns 1"

# serve NODE PORT OPTIONS...: a memory node or index server of this machine, in the background.
serve() {
    node=$1
    address=10.78.0.$((DM_MACHINE + 1)):$2
    shift 2
    "$DMBENCH" serve --node "$node" --listen "$address" --token-file token "$@" 2>"serve$node" &
    servers="$servers $!"
}

# check OPTION HOST: some small histories, others in each run of the whole suite; hosts_check_long_test.sh has more.
check() {
    at=7010
    for index in $(sampled_indexes | head -n 2); do
        # The settings are separate words.
        # shellcheck disable=SC2046
        "$DMBENCH" check --index "$index" --transport verbs --seeds 2 --coverage off --token-file token "$1" "$2:$at" \
            $(patience "$index") >checked 2>&1 || fail "check of $index: $(cat checked)"
        echo "between hosts: $(head -n 1 checked)"
        at=$((at + 2))
    done
}

# The options are separate words.
# shellcheck disable=SC2086
machine1() {
    for round in cm tcp; do
        serve 0 7000 $sherman --transport-set connect=$round
        serve 1 7001 $sherman --transport-set connect=$round
        end_well
    done
    serve 0 7002 $hstore
    serve 1 7003 $hstore
    end_well
    check --listen 10.78.0.2
    timeout 60 ib_read_lat $perftest -n 2000 >lat 2>&1 || fail "ib_read_lat: $(cat lat)"
    timeout 60 ib_read_bw $perftest -n 5000 -t 16 -Q 1 -p 18600 >bw 2>&1 || fail "ib_read_bw: $(cat bw)"
    "$DM_BUILD_DIR/bench/verbs_bench" serve 10.78.0.2:7020 >bench 2>&1 || fail "verbs_bench: $(cat bench)"
    serve 0 7005 $long
    say ready
    # This machine is also the compute side of a run whose memory is on the other one. Both end with it.
    wait_for served
    "$DMBENCH" run $long --mn 10.78.0.1:7006 --token-file token 2>err &
    sleep 600
}

# theirs PROGRAM OPTIONS...: the client of a perftest program, once its server listens.
# shellcheck disable=SC2086
theirs() {
    program=$1
    shift
    for attempt in $(seq 20); do
        timeout 60 "$program" $perftest "$@" 10.78.0.2 2>client && return 0
        [ "$attempt" -lt 20 ] || fail "$program has no server: $(cat client)"
        sleep 1
    done
}

# shellcheck disable=SC2086
machine0() {
    two="--mn 10.78.0.2:7000,10.78.0.2:7001"
    status=0
    "$DMBENCH" run $sherman $two --token-file wrong >out 2>err || status=$?
    [ "$status" -eq 2 ] || fail "a wrong token: status $status: $(cat err)"
    holds err "it has another token"
    echo "a wrong token is refused: $(cat err)"
    for round in cm tcp; do
        expect 0 run $sherman $two --token-file token --verify --json --transport-set connect=$round
        mv out $round.json
        result true $round.json 'list(ops["insert"]["outcomes"]) == ["ok"]' || fail "inserts failed: $(cat $round.json)"
        holds $round.json '"broken": 0'
        holds $round.json "\"connect\": \"$round\""
        holds $round.json '"chip_memory": "dram"'
        holds $round.json '"huge_pages": "yes"'
        holds $round.json '"line_atomic": "yes"'
        holds $round.json '"write_order": "yes"'
    done
    echo "serve and run, by the connection manager and by the control port: passed"
    serve 2 7004 $hstore
    expect 0 run $hstore --token-file token --verify --json
    end_well
    holds out '"broken": 0'
    result true out 'list(ops["insert"]["outcomes"]) == ["ok"]' || fail "inserts: $(result get out ops.insert.outcomes)"
    echo "index servers on both hosts: passed"
    check --mn 10.78.0.2

    theirs ib_read_lat -n 2000 >lat
    theirs ib_read_bw -n 5000 -t 16 -Q 1 -p 18600 >bw
    "$DM_BUILD_DIR/bench/verbs_bench" at 10.78.0.2:7020 reads=5000 >bench || fail "verbs_bench between hosts"
    awk 'FILENAME == "lat" && $1 == 64 { lat = $5 }
         FILENAME == "bw" && $1 == 64 { rate = 1e6 * $5 }
         $1 == "latency_p50" && $2 == 64 { our_lat = $4 }
         $1 == "rate" && $2 == 64 && $3 == 16 { our_rate = $4 }
         $1 == "cas_p50" { cas = $4 }
         $1 == "masked_cas_p50" { masked = $4 }
         END {
             printf "between hosts, a masked CAS, emulated: %.1f us, a CAS %.1f us, ratio %.2f\n", masked, cas, masked / cas
             printf "between hosts, a READ of 64 B, median: %.1f us, ib_read_lat %.1f us, ratio %.2f\n", our_lat, lat, our_lat / lat
             printf "between hosts, 16 READs of 64 B at once: %d /s, ib_read_bw %d /s, ratio %.2f\n", our_rate, rate, our_rate / rate
         }' lat bw bench || fail "no figures: $(cat lat bw bench)"

    wait_for ready
    serve 0 7006 $long
    served=$!
    say served
    "$DMBENCH" run $long --mn 10.78.0.2:7005 --token-file token --out lost.json 2>err &
    ours=$!
    sleep 15
    started=$(date +%s)
    say stop.1 # the emulator of machine 1 ends
    status=0
    wait "$ours" || status=$?
    took=$(($(date +%s) - started))
    [ "$status" -eq 1 ] || fail "the host of a memory node disappears: status $status: $(cat err)"
    [ ! -e lost.json ] || fail "a run that lost a host wrote a result"
    holds err "memory node 0 (10.78.0.2:7005)"
    grep -qE '(READ|WRITE|CAS|FAA) to memory node 0 .*: (transport retry counter exceeded|nothing completed within)' err ||
        fail "no verb and status after $took s: $(cat err)"
    [ "$took" -lt 60 ] || fail "the loss of a host was noticed after $took s"
    echo "the host of a memory node disappears, after $took s: $(tail -n 1 err)"
    wait "$served" || true
    took=$(($(date +%s) - started))
    [ "$took" -lt 90 ] || fail "a server ran on for $took s without its compute host"
    echo "the host of the compute side disappears: its server ended after $took s: $(tail -n 1 serve0)"
}

"machine$DM_MACHINE"
