#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Three hosts (hosts.sh), each with two devices: memory nodes on two of them; a run over each of two links at once; ranks
# of MPI with two compute hosts and one memory host, by `--listen host`; a memory host that disappears while the other
# one stays, and that comes back; a host of MPI that disappears.
# shellcheck source=tests/rxe/lib.sh
. "$(dirname "$0")/lib.sh"

echo "a token of this test" >token
chmod 600 token
point="--transport verbs --workload d --keys 2000 --ops 1000 --clients 8 --coroutines 4 --seed 3 --index sherman"
long="--transport verbs --index fg --workload a --keys 2000 --ops 100M --clients 4"
here=$DM_SOURCE_DIR/tests/rxe
# Open MPI needs its agent, and which network it may use.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_btl=self,vader,tcp
export OMPI_MCA_plm_rsh_agent="$here/agent.sh" OMPI_MCA_oob_tcp_if_include=eth0 OMPI_MCA_btl_tcp_if_include=eth0

# serve NODE ADDRESS OPTIONS...: a memory node of this machine, in the background.
serve() {
    node=$1
    address=$2
    shift 2
    "$DMBENCH" serve --node "$node" --listen "$address" --token-file token "$@" 2>"serve$node" &
}

# counter NAME: of the device
counter() {
    cat "/sys/class/infiniband/rxe0/ports/1/hw_counters/$1"
}

# Waits until the run $ours has sent more packets than it needs to load its index.
wait_for_traffic() {
    before=$(counter sent_pkts)
    while [ "$(counter sent_pkts)" -lt $((before + 3000)) ]; do
        kill -0 "$ours" || fail "the run ended too early: $(cat out err)"
        sleep 0.2
    done
}

# memory_on_two_hosts PORT TEXT: a run with a memory node on each of machines 1 and 2, at this port, is right: TEXT.
# The options are separate words.
# shellcheck disable=SC2086
memory_on_two_hosts() {
    if [ "$DM_MACHINE" -ne 0 ]; then
        serve $((DM_MACHINE - 1)) "10.78.0.$((DM_MACHINE + 1)):$1" $point --mns 2
        wait
        return
    fi
    expect 0 run $point --mns 2 --mn "10.78.0.2:$1,10.78.0.3:$1" --token-file token --verify --json
    holds out '"broken": 0'
    echo "$2: right"
}

# One memory node a link, on machine 1, and one run a link, on machine 0.
# shellcheck disable=SC2086
two_devices_a_host() {
    case $DM_MACHINE in
    0)
        for l in 0 1; do
            "$DMBENCH" run $point --mns 1 --mn "10.$((78 + l)).0.2:7001" --token-file token --verify --json \
                --transport-set device=rxe$l >"link$l.json" 2>"err$l" &
        done
        wait
        for l in 0 1; do
            holds "link$l.json" '"broken": 0'
            holds "link$l.json" "\"device\": \"rxe$l\""
            holds "link$l.json" "\"mn_device\": \"rxe$l\""
        done
        echo "two devices a host, a run over each at once: right"
        ;;
    1)
        serve 0 10.78.0.2:7001 $point --mns 1 --transport-set device=rxe0
        serve 0 10.79.0.2:7001 $point --mns 1 --transport-set device=rxe1
        wait
        ;;
    esac
}

# ranks OPTIONS...: one a machine; the last one is the memory node.
ranks() {
    timeout 600 mpirun -np 3 --host machine0,machine1,machine2 --map-by node --bind-to none \
        -x OMPI_MCA_btl -x OMPI_MCA_btl_tcp_if_include "$DMBENCH" run "$@" --mns 1 --listen host
}

# shellcheck disable=SC2086
mpi_across_hosts() {
    if [ "$DM_MACHINE" -ne 0 ]; then
        agent_serve mpi_done
        return
    fi
    ranks $point --verify --out ranks.json >out 2>err || fail "mpirun: $(cat out err)"
    # Later options replace earlier ones.
    expect 0 run $point --transport sim --mns 1 --cns 2 --json
    python3 - <<'PY'
import json
result = json.load(open("ranks.json"))
model = json.load(open("out"))
inserts = result["ops"]["insert"]
assert result["verify"]["broken"] == 0, result["verify"]
assert result["config"]["cns"] == 2, result["config"]
assert result["phases"][2]["operations"] == 1000, result["phases"]
assert inserts["outcomes"]["ok"] == inserts["count"], inserts
# No two compute processes insert the same key.
assert result["verify"]["keys"] >= 2000 + inserts["count"], result["verify"]
for member in ("round_trips_mean", "bytes_read_mean"):
    ours, models = result["ops"]["get"][member], model["ops"]["get"][member]
    assert abs(ours - models) <= 0.03 * models, (member, ours, models)
print("ranks of MPI on three hosts: right,", inserts["count"], "keys inserted,", result["verify"]["keys"], "found")
PY
    say mpi_done
}

# Machine 2 has memory node 1 and disappears; memory node 0, on machine 1, ends because its run does. Then machine 2 is
# started again, and the next run is right.
# shellcheck disable=SC2086
a_memory_host_disappears_and_comes_back() {
    if [ "$DM_MACHINE" -ne 0 ]; then
        serve $((DM_MACHINE - 1)) 10.78.0.$((DM_MACHINE + 1)):7002 $long --mns 2
        wait # on machine 2: until its emulator ends
        return
    fi
    "$DMBENCH" run $long --mns 2 --mn 10.78.0.2:7002,10.78.0.3:7002 --token-file token --out lost.json 2>err &
    ours=$!
    wait_for_traffic
    say stop.2
    started=$(date +%s)
    status=0
    wait "$ours" || status=$?
    took=$(($(date +%s) - started))
    [ "$status" -eq 1 ] || fail "a memory host disappears: status $status: $(cat err)"
    [ ! -e lost.json ] || fail "a run that lost a host wrote a result"
    grep -qE '(READ|WRITE|CAS|FAA|call) to memory node 1 .*: (transport retry counter exceeded|nothing completed)' err ||
        fail "no node, verb and status after $took s: $(cat err)"
    [ "$took" -lt 60 ] || fail "the loss of a host was noticed after $took s"
    echo "one of two memory hosts disappears, after $took s: $(tail -n 1 err)"
    say start.2
}

# The memory node's host disappears: the ranks end with an error and without a result. mpirun itself waits for its daemon
# on the lost host, as long as TCP does, and is ended here.
# shellcheck disable=SC2086
a_host_of_mpi_disappears() {
    if [ "$DM_MACHINE" -ne 0 ]; then
        agent_serve end_done
        return
    fi
    ranks $long --out lost.json >out 2>err &
    ours=$!
    wait_for_traffic
    say stop.2
    started=$(date +%s)
    took=0
    pattern='memory node 0 .*: (transport retry counter exceeded|nothing completed)|is silent'
    while ! grep -qE "$pattern" err || pidof dmbench >/dev/null; do
        took=$(($(date +%s) - started))
        [ "$took" -lt 60 ] || fail "the loss of a host was not noticed after $took s: $(cat out err)"
        sleep 1
    done
    [ ! -e lost.json ] || fail "a run that lost a host wrote a result"
    echo "the memory host of MPI's ranks disappears, after $took s: $(grep -m 1 -E "$pattern" err)"
    say end_done
    kill "$(pidof mpirun)"
    wait "$ours" || true
}

if [ "$DM_START" -eq 0 ]; then
    memory_on_two_hosts 7000 "memory nodes on two hosts"
    two_devices_a_host
    mpi_across_hosts
    a_memory_host_disappears_and_comes_back
fi
memory_on_two_hosts 7003 "the host is back, the next run"
a_host_of_mpi_disappears
