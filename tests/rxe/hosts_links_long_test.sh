#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Between two hosts (hosts.sh), one impairment of the link at a time: a delay, jitter, 0.1, 1 and 5 % of the packets
# lost, others reordered or doubled. Every run is right. Then a minute in which the link carries nothing: with the limits
# of the default an error that names the node, the verb and the status, and with limits above a minute a right result.
# DM_LINKS selects some of them. (hosts_loss_long_test.sh has all impairments at once and every index.)
# shellcheck source=tests/rxe/lib.sh
. "$(dirname "$0")/lib.sh"

echo "a token of this test" >token
port=7000 # others for each run, so that no run meets the servers of the one before
point="--transport verbs --workload a --keys 500 --clients 4 --coroutines 2 --transport-set order=alone"

# netem NAME: its parameters.
netem() {
    case $1 in
    clean) echo "delay 0ms" ;;
    delay) echo "delay 3ms" ;;
    jitter) echo "delay 2ms 1ms distribution normal" ;;
    loss_0.1) echo "loss 0.1%" ;;
    loss_1) echo "loss 1%" ;;
    loss_5) echo "loss 5%" ;;
    reorder) echo "delay 1ms reorder 25% 50%" ;;
    duplicate) echo "duplicate 5%" ;;
    silence | patience) echo "delay 0ms" ;;
    *) fail "no link is called '$1'" ;;
    esac
}

link() {
    tc qdisc replace dev eth0 root netem "$@" || fail "tc netem $*"
}

# counter NAME: of the device
counter() {
    cat "/sys/class/infiniband/rxe0/ports/1/hw_counters/$1"
}

# pair OPTIONS...: two nodes of a run on machine 1, until it has ended; the compute side on machine 0.
pair() {
    if [ "$DM_MACHINE" -eq 1 ]; then
        for node in 0 1; do
            "$DMBENCH" serve "$@" --node $node --listen "10.78.0.2:$((port + node))" --token-file token 2>"serve$node" &
        done
        wait
        grep -hv 'listens on' serve0 serve1 || true # an error of theirs
    else
        status=0
        rm -f result.json
        "$DMBENCH" run "$@" --mn "10.78.0.2:$port,10.78.0.2:$((port + 1))" --token-file token --verify \
            --out result.json >out 2>err || status=$?
    fi
    port=$((port + 2))
}

right() {
    [ "$status" -eq 0 ] || fail "$1: status $status: $(cat err)"
    holds result.json '"broken": 0'
}

# A link that fails for a minute once the run has sent some thousand packets.
minute_of_nothing() {
    before=$(counter sent_pkts)
    while [ "$(counter sent_pkts)" -lt $((before + 4000)) ]; do
        sleep 0.2
    done
    touch down
    link loss 100%
    sleep 60
    link delay 0ms
    touch up
}

for name in ${DM_LINKS:-clean delay jitter loss_0.1 loss_1 loss_5 reorder duplicate silence patience}; do
    # The parameters are separate words.
    # shellcheck disable=SC2046
    link $(netem "$name")
    case $name in
    silence | patience)
        limits=""
        [ "$name" = silence ] || limits="--transport-set ack_timeout=22 --transport-set timeout=200s"
        rm -f down up
        [ "$DM_MACHINE" -eq 1 ] || minute_of_nothing &
        breaker=$!
        # shellcheck disable=SC2086
        pair $point --index fg --mns 2 $limits --ops 100M --warmup 0 --duration 2m
        [ "$DM_MACHINE" -eq 0 ] || continue
        [ -e down ] || fail "the run ended before the link failed: $(cat err)"
        if [ "$name" = silence ]; then
            [ "$status" -eq 1 ] || fail "a link that fails: status $status: $(cat err)"
            [ ! -e result.json ] || fail "a run whose link failed wrote a result"
            grep -qE '(READ|WRITE|CAS|FAA) to memory node [01] .*: (transport retry counter exceeded|nothing completed)' \
                err || fail "a link that fails: $(cat err)"
            [ ! -e up ] || fail "the error came after the link was back"
            echo "a minute of nothing: $(tail -n 1 err)"
        else
            [ -e up ] || fail "the run ended before the link was back"
            right "a minute of nothing, with limits above it"
            echo "a minute of nothing, with limits above it: right"
        fi
        wait "$breaker"
        ;;
    *)
        for index in sherman race; do
            begun=$(date +%s)
            # shellcheck disable=SC2086
            pair $point --index $index --mns 2 --ops 300
            [ "$DM_MACHINE" -eq 0 ] || continue
            right "$index, $name"
            echo "$name ($(netem "$name")), $index: right, $(($(date +%s) - begun)) s, sent again by machine 0 so far:" \
                "$(counter retried_send_cnt 2>/dev/null || counter completer_retry_err) times"
        done
        ;;
    esac
done
