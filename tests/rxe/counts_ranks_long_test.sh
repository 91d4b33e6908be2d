#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# With two compute processes and one memory node, each with a client, an operation needs as many round trips, verbs and
# bytes on real RDMA as in the model, for each kind of operation of every index; and no key is inserted twice.
# DM_COUNTS_INDEXES (all) shortens it.
# shellcheck source=tests/rxe/lib.sh
. "$(dirname "$0")/lib.sh"

command -v mpirun >/dev/null 2>&1 || fail "there is no mpirun (package openmpi-bin)"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_btl=self,vader,tcp
# The model without masked atomics, which the library does not support.
cat >plain.json <<'JSON'
{"schema_version": 1, "name": "plain", "summary": "cx6-100g without masked atomics", "inherits": "cx6-100g",
 "parameters": {"masked_atomics": {"value": 0, "source": "libibverbs has no verb for them", "confidence": "H"}}}
JSON
different=""
for index in ${DM_COUNTS_INDEXES:-$(indexes)}; do
    mixes="read=0.5,update=0.5 read=0.5,insert=0.5"
    ! can "$index" scan || mixes="$mixes insert=0.2,scan=0.8"
    ranks=3
    servers=""
    if can "$index" servers; then
        ranks=5
        servers="--servers 2"
    fi
    for mix in $mixes; do
        # The settings are separate words.
        # shellcheck disable=SC2046,SC2086
        set -- run --index "$index" --mix "$mix" --keys 20K --ops 600 --clients 2 --mns 1 $servers --scan-max 10 \
            --distribution uniform --warmup 0 --seed 5 $(patience "$index")
        expect 0 "$@" --transport sim --profile ./plain.json --cns 2 --json
        mv out sim.json
        timeout 600 mpirun --oversubscribe -np "$ranks" "$DMBENCH" "$@" --transport verbs --verify --out verbs.json \
            >out 2>err || fail "mpirun: $(cat err)"
        python3 "$DM_SOURCE_DIR/tests/rxe/counts.py" "$index" verbs.json sim.json 0.05 0.05 ||
            different="$different $index:$mix"
        python3 - <<'PY' || fail "$index: $mix: keys, see above"
import json
result = json.load(open("verbs.json"))
inserts = result["ops"].get("insert", {"count": 0, "outcomes": {"ok": 0}})
assert result["config"]["cns"] == 2 and result["verify"]["broken"] == 0, result["verify"]
assert inserts["outcomes"]["ok"] == inserts["count"], inserts
assert result["verify"]["keys"] == 20000 + inserts["count"], (result["verify"], inserts)
PY
    done
done
[ -z "$different" ] || fail "verbs and sim differ, see above:$different"
