#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# With one client, what an operation costs on real RDMA, in round trips, verbs and bytes, is what it costs in the model.
# shellcheck source=tests/rxe/lib.sh
. "$(dirname "$0")/lib.sh"

different=""
for index in $(indexes); do
    for mix in read=0.5,update=0.5 read=0.5,insert=0.5 insert=0.2,scan=0.8; do
        for transport in sim verbs; do
            expect 0 run --index "$index" --transport "$transport" --mix "$mix" --keys 5K --ops 1K --clients 1 --mns 2 \
                --servers 1 --json
            mv out "$transport.json"
        done
        python3 "$DM_SOURCE_DIR/tests/rxe/counts.py" "$index" verbs.json sim.json || different="$different $index:$mix"
    done
done
[ -z "$different" ] || fail "verbs and sim differ, see above:$different"
