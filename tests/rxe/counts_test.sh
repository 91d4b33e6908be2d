#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# With one client, an operation needs as many round trips, verbs and bytes on real RDMA as in the model: of every index,
# or of a sample of them (lib.sh).
# shellcheck source=tests/rxe/lib.sh
. "$(dirname "$0")/lib.sh"

# The model without masked atomics, which the library does not support.
cat >plain.json <<'JSON'
{"schema_version": 1, "name": "plain", "summary": "cx6-100g without masked atomics", "inherits": "cx6-100g",
 "parameters": {"masked_atomics": {"value": 0, "source": "libibverbs has no verb for them", "confidence": "H"}}}
JSON
different=""
for index in $(sampled_indexes); do
    mixes="read=0.5,update=0.5 read=0.5,insert=0.5"
    ! can "$index" scan || mixes="$mixes insert=0.2,scan=0.8"
    for mix in $mixes; do
        for transport in sim verbs; do
            # The settings are separate words.
            # shellcheck disable=SC2046
            expect 0 run --index "$index" --transport "$transport" --mix "$mix" --keys 2K --ops 300 --clients 1 --mns 2 \
                --servers 2 --scan-max 10 --profile ./plain.json --json $(patience "$index")
            mv out "$transport.json"
        done
        # The index servers of hstore apply their logs in the background, and those of clover collect versions. How much
        # they have done when an operation runs depends on time, and a few operations in a hundred take another path.
        tolerance=0
        ! can "$index" servers || tolerance=0.05
        python3 "$DM_SOURCE_DIR/tests/rxe/counts.py" "$index" verbs.json sim.json "$tolerance" ||
            different="$different $index:$mix"
    done
done
[ -z "$different" ] || fail "verbs and sim differ, see above:$different"
