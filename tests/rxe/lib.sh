# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
#
# Functions for the tests in the virtual machine: those of tests/cli/lib.sh, and both ends of a perftest program. Is
# sourced; needs DMBENCH, DM_SOURCE_DIR and DM_BUILD_DIR.
# shellcheck source=tests/cli/lib.sh
. "$DM_SOURCE_DIR/tests/cli/lib.sh"
: "${DM_BUILD_DIR:?the build tree}"

[ -e /sys/class/infiniband/rxe0 ] || fail "no rxe0 here: start this by tests/rxe/run.sh"
"$DMBENCH" list --json >listed 2>&1 || fail "dmbench list: $(cat listed)"
grep -q '"verbs"' listed || {
    echo "skipped: dmbench is built without verbs (packages libibverbs-dev and librdmacm-dev)" >&2
    [ "${CI:-}" != true ] || exit 1
    exit 77
}

# perftest_row BYTES PROGRAM OPTIONS...: prints the row of results that the client of a perftest program prints, with
# the server on rxe1 and the client on rxe0.
perftest_row() {
    bytes=$1
    program=$2
    shift 2
    timeout 60 "$program" -F -d rxe1 -x 1 -s "$bytes" "$@" >server 2>&1 &
    server=$!
    for attempt in 1 2 3 4 5 6 7 8 9 10 last; do
        # Retries until the server listens.
        if timeout 60 "$program" -F -d rxe0 -x 1 -s "$bytes" "$@" 127.0.0.1 >client 2>&1; then
            break
        fi
        [ "$attempt" != last ] || fail "$program: $(cat client server)"
        sleep 0.3
    done
    wait "$server" || fail "$program: $(cat server)"
    awk -v bytes="$bytes" '$1 == bytes { print }' client
}

# indexes: prints the names of all indexes that store data.
indexes() {
    python3 -c '
import json, sys
print("\n".join(index["name"] for index in json.load(sys.stdin)["indexes"] if index["keeps_data"]))' <listed
}

# sampled_indexes: as indexes, but with DM_RXE_SAMPLE=NUMBER only so many of them, which depend on DM_RXE_SEED.
sampled_indexes() {
    if [ -z "${DM_RXE_SAMPLE:-}" ]; then
        indexes
        return
    fi
    for name in $(indexes); do
        echo "$(printf '%s %s' "$name" "${DM_RXE_SEED:-}" | md5sum | cut -d ' ' -f 1) $name"
    done | sort | head -n "$DM_RXE_SAMPLE" | cut -d ' ' -f 2
}

# can INDEX CAPABILITY: true if the index has it.
can() {
    python3 -c '
import json, sys
index = next(i for i in json.load(sys.stdin)["indexes"] if i["name"] == sys.argv[1])
sys.exit(sys.argv[2] not in index["capabilities"])' "$1" "$2" <listed
}

# patience INDEX: prints settings for a machine whose verbs take ten times as long as those of a NIC. The addresses of
# hstore expire after a time; these tests are not about expired addresses. An empty table of race has up to 65536
# subtables, each of which takes two round trips to make and one to verify.
patience() {
    case $1 in
    hstore) echo "--set grace_us=1000000 --set lease_us=1000000" ;;
    race) echo "--set initial_depth=2" ;;
    esac
}

# end_well: waits for the servers that `serve` of a test has put into $servers, which must end with status 0.
servers=""
end_well() {
    for server in $servers; do
        wait "$server" || fail "a server of a run that ended well has status $?: $(cat serve[0-9]*)"
    done
    servers=""
}

# say NAME: leaves it for the other machines of hosts.sh. wait_for NAME: waits until one of them has said it.
say() {
    touch "/run/link/$1"
}
wait_for() {
    for _ in $(seq 900); do
        [ ! -e "/run/link/$1" ] || return 0
        sleep 0.2
    done
    fail "no other machine ever said '$1'"
}

# agent_serve NAME: runs what agent.sh leaves for this machine, until one of the machines says NAME.
agent_serve() {
    while [ ! -e "/run/link/$1" ]; do
        for task in /run/link/task."$(hostname)".*; do
            case $task in
            *.new | *.taken | *.status | *.output | *'*') continue ;;
            esac
            mv "$task" "$task.taken"
            (
                status=0
                sh -c "$(cat "$task.taken")" >"$task.output" 2>&1 || status=$?
                echo "$status" >"$task.status"
            ) &
        done
        sleep 0.2
    done
}
