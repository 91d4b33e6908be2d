#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Cache traces: their summary, a run of one, and errors in files.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

command -v python3 >/dev/null || missing python3
: "${DM_TEST_DATA:?the folder of test data}"
cp "$DM_TEST_DATA/cache-trace.csv" trace.csv

# is FILE EXPRESSION
is() {
    result true "$1" "$2" || fail "$1: not so: $2"
}

# the summary, as text and as JSON
expect 0 trace trace.csv
holds out "trace.csv: 16 requests in 9 s"
holds out "get 6 (37.5 %), update 6 (37.5 %), insert 3 (18.8 %), delete 1 (6.25 %)"
holds out "7 distinct: 5 there from the start, 2 asked for once"
expect 0 trace trace.csv --json
cp out summary.json
is summary.json 'requests == 16 and malformed is None and keys == 7 and keys_loaded == 5 and keys_once == 2'
is summary.json 'operations == {"get": 6, "update": 6, "insert": 3, "delete": 1}'
is summary.json 'trace_operations["set"] == 2 and sum(trace_operations.values()) == 16'
expect 0 trace trace.csv --requests 4 --json
cp out summary.json
is summary.json 'requests == 4'

# malformed lines: named, or skipped and counted
{
    cat trace.csv
    echo "6,key,3,nonsense,1,get,0"
    echo "7,key,3,0,1,get,0"
} >bad.csv
expect 2 trace bad.csv
holds err "bad.csv:17: "
[ "$(wc -l <err)" -eq 1 ] || fail "more than one line: $(cat err)"
[ ! -s out ] || fail "a malformed trace has a summary"
expect 0 trace bad.csv --lenient
holds out "1 lines skipped, the first is line 17"
expect 0 trace bad.csv --lenient --json
cp out summary.json
is summary.json 'requests == 17 and malformed == {"lines": 1, "first_line": 17}'

# what is no trace
: >empty.csv
expect 2 trace empty.csv
holds err "empty.csv: holds no requests"
expect 2 trace absent.csv
holds err "absent.csv"
expect 2 trace
holds err "which trace?"
expect 2 trace trace.csv trace.csv
holds err "one word too many"
expect 2 trace trace.csv --lenent
holds err "did you mean --lenient?"
expect 0 trace --help
holds out "--lenient"
if [ -w /dev/full ]; then
    status=0
    "$DMBENCH" trace trace.csv >/dev/full 2>err || status=$?
    [ "$status" -eq 1 ] || fail "a full disk went unnoticed"
fi

# a run uses the complete trace, a part of it for warm-up, and its result runs again
expect 0 run --index sherman --trace trace.csv --clients 3 --verify --out run.json
holds out "trace trace.csv, 5 keys"
is run.json 'config["ops"] == 15 and config["warmup"] == 1 and phases[2]["operations"] == 15 and config["keys"] == 5'
expect 0 run run.json --out again.json
result same run.json again.json || fail "a trace does not run again as it is"
expect 0 run --index null --trace trace.csv --warmup 0 --ops 10 --out part.json
is part.json 'phases[2]["operations"] == 10'
expect 0 run --index null --trace bad.csv --lenient --warmup 0 --out lenient.json
is lenient.json 'phases[2]["operations"] == 17'
[ "$(wc -l <err)" -eq 1 ] || fail "not one warning: $(cat err)"
expect 2 run --index null --trace trace.csv --load-reads 10
holds err "--load-reads: only of a workload whose keys are generated, not of a trace's"
expect 2 run --index null --trace trace.csv --warmup 16
holds err "--warmup: there are only 16 operations in trace.csv"
fits run.json part.json lenient.json
