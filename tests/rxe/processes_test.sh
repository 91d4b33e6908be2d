#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Runs of several processes on real RDMA: memory nodes by `dmbench serve` and the compute side by `dmbench run`; ranks
# of MPI; and the end of a run when the process of a memory node dies.
# shellcheck source=tests/rxe/lib.sh
. "$(dirname "$0")/lib.sh"

echo "a token of this test" >token
point="--transport verbs --index sherman --workload d --keys 5000 --mns 2 --clients 8 --coroutines 4 --seed 3"
# The options are separate words.
# shellcheck disable=SC2086
serve() {
    node=$1
    shift
    "$DMBENCH" serve $point --node "$node" --listen "127.0.0.1:700$node" --token-file token "$@" 2>"serve$node" &
    servers="$servers $!"
}

serve 0 --ops 2000 --transport-set device=rxe1
serve 1 --ops 2000 --transport-set device=rxe0
# shellcheck disable=SC2086
expect 0 run $point --ops 2000 --verify --json --mn 127.0.0.1:7000,127.0.0.1:7001 --token-file token
mv out served.json
end_well
holds served.json '"broken": 0'
echo "serve and run: passed"

# Index servers call each other, so one that does not know where the others are is refused.
expect 2 serve --transport verbs --index hstore --mns 1 --node 1 --listen 127.0.0.1:7001 --token-file token
holds err "--mn is needed"

# The same point in one process counts the same memory.
# shellcheck disable=SC2086
expect 0 run $point --ops 2000 --verify --json
mv out alone.json

export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_btl=self,vader,tcp
if command -v mpirun >/dev/null 2>&1; then
    # MPI never frees some of its own allocations.
    # shellcheck disable=SC2086
    ASAN_OPTIONS=detect_leaks=0:quarantine_size_mb=8 timeout 300 mpirun --oversubscribe -np 4 "$DMBENCH" run $point --ops 2000 --verify \
        --out ranks.json >out 2>err || fail "mpirun: $(cat err)"
    python3 - <<'PY'
import json
alone, served, ranks = (json.load(open(name)) for name in ("alone.json", "served.json", "ranks.json"))
for result in (served, ranks):
    assert result["verify"]["broken"] == 0, result["verify"]
    assert result["phases"][2]["operations"] == 2000, result["phases"]
assert ranks["config"]["cns"] == 2 and alone["config"]["cns"] == 1
# The keys are the loaded ones and those that clients inserted, and no two inserts have the same key.
for result in (alone, served, ranks):
    inserts = result["ops"]["insert"]["outcomes"]
    assert set(inserts) <= {"ok"} or all(inserts[name] == 0 for name in inserts if name != "ok"), inserts
    assert result["verify"]["keys"] >= 5000 + result["ops"]["insert"]["count"], result["verify"]
PY
    echo "ranks of MPI: passed"

    # Index servers are connected to each other, and end in any order once the compute side has left.
    ASAN_OPTIONS=detect_leaks=0:quarantine_size_mb=8 timeout 300 mpirun --oversubscribe -np 7 "$DMBENCH" run \
        --transport verbs --index hstore --workload a --keys 2000 --ops 600 --mns 1 --servers 4 --clients 2 --warmup 0 \
        --verify --out servers.json >out 2>err || fail "mpirun with index servers: $(cat err)"
    echo "ranks of MPI with index servers: passed"
else
    echo "ranks of MPI: skipped, there is no mpirun"
    [ "${CI:-}" != true ] || exit 1
fi

serve 0 --ops 10M
serve 1 --ops 10M
victim=$!
(
    sleep 5
    kill -9 "$victim"
) &
started=$(date +%s)
# shellcheck disable=SC2086
expect 1 run $point --ops 10M --mn 127.0.0.1:7000,127.0.0.1:7001 --token-file token
[ $(($(date +%s) - started)) -lt 60 ] || fail "the end of a memory node was detected late"
holds err "memory node 1"
wait
echo "a memory node that dies ends the run: $(cat err)"
