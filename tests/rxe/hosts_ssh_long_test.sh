#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Points of a sweep on two hosts (hosts.sh) that share a folder: GNU parallel starts them by ssh. Results are those of
# one host, and both hosts made some. Then a host disappears while its points run: they are reported, the others have
# results, and the next run runs the missing ones alone.
# shellcheck source=tests/rxe/lib.sh
. "$(dirname "$0")/lib.sh"
export HOME=/root
for program in ssh ssh-keygen parallel dropbear dropbearkey; do
    command -v "$program" >/dev/null 2>&1 && continue
    [ "${CI:-}" != true ] || fail "$program is not installed"
    skip "$program is not installed"
done
mkdir -p $HOME/.ssh
chmod 700 $HOME $HOME/.ssh

machine1() {
    wait_for keys
    cp /run/link/key.pub $HOME/.ssh/authorized_keys
    chmod 600 $HOME/.ssh/authorized_keys
    dropbearkey -t ed25519 -f hostkey >/dev/null 2>&1 || fail "no host key"
    dropbear -F -E -p 22 -r hostkey 2>server &
    say serving
    wait_for finished
}

# points FOLDER: how many results it has. hosts FOLDER: the names of the hosts that made them.
points() {
    find "$1/points" -name '*.json' | wc -l
}
hosts() {
    python3 -c '
import glob, json, sys
print(*sorted({json.load(open(f))["provenance"]["host"]["name"] for f in glob.glob(sys.argv[1] + "/points/*.json")}))' "$1"
}

machine0() {
    ssh-keygen -q -t ed25519 -N "" -f $HOME/.ssh/id_ed25519 || fail "no key"
    cat >$HOME/.ssh/config <<'TEXT'
Host *
    StrictHostKeyChecking no
    UserKnownHostsFile /dev/null
    LogLevel ERROR
    ConnectTimeout 20
    ServerAliveInterval 3
    ServerAliveCountMax 3
TEXT
    cp $HOME/.ssh/id_ed25519.pub /run/link/key.pub
    say keys
    wait_for serving
    printf ':\nroot@machine1\n' >machines
    cat >base.json <<'JSON'
{"index": "sherman", "workload": "a", "keys": "1K", "ops": "2K", "warmup": "0"}
JSON
    grid="--grid clients=2,4,6,8,10,12"
    # Settings are separate words.
    # shellcheck disable=SC2086
    expect 0 sweep base.json $grid --out here
    # shellcheck disable=SC2086
    expect 0 sweep base.json $grid --out /run/link/both --sshloginfile machines --jobs 1
    [ "$(points /run/link/both)" -eq 6 ] || fail "$(cat err)"
    [ "$(hosts /run/link/both)" = "machine0 machine1" ] || fail "points were run by: $(hosts /run/link/both)"
    for file in here/points/*.json; do
        python3 -c '
import json, sys
a, b = (json.load(open(f)) for f in sys.argv[1:])
a.pop("provenance"), b.pop("provenance")
sys.exit(a != b)' "$file" "/run/link/both/points/${file##*/}" || fail "$file differs between the hosts"
    done
    echo "six points on two hosts by ssh: as on one"

    # Of two points on machine 1 one ends soon and the other one never; then the machine is gone.
    echo root@machine1 >machines
    "$DMBENCH" sweep base.json --grid ops=2K,100G --out /run/link/lost --sshloginfile machines --jobs 2 >out 2>err &
    pid=$!
    once has_results /run/link/lost/points
    say stop.1
    status=0
    wait "$pid" || status=$?
    [ "$status" -eq 1 ] || fail "a host disappears: status $status: $(cat err)"
    holds err "1 of 2 points done"
    holds err "point ops=100G ("
    lost=$(grep -m 1 "point ops=" err)
    expect 0 sweep base.json --grid ops=2K,100G --out /run/link/lost --dry-run
    holds out "2 points in /run/link/lost/points, 1 to run"
    echo "a host disappears: $lost"
}

"machine$DM_MACHINE"
say finished
