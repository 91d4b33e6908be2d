#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Limits, special files and damaged files: there is one line that says what is wrong, a status, and nothing is replaced
# or left behind.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

# one_line STATUS TEXT: the last program ended with the status, and its only line of errors has the text.
one_line() {
    [ "$status" -eq "$1" ] || fail "status $status instead of $1: $(cat err)"
    holds err "$2"
    [ "$(wc -l <err)" -eq 1 ] || fail "more than one line: $(cat err)"
    [ -z "$(find . -name '*.tmp.*')" ] || fail "a temporary file is left"
}

# limited LIMITS WORDS...: runs dmbench below limits of the shell.
limited() {
    limits=$1
    shift
    status=0
    # shellcheck disable=SC2086 # several words
    (ulimit $limits && exec "$DMBENCH" "$@") >out 2>err || status=$?
}

# Keys that do not fit: no empty index is measured. Sanitizers reserve more than any limit of memory.
limited "-v 4000000" --version
if [ "$status" -eq 0 ]; then
    limited "-v 4000000" run --index null --keys 1G --ops 1K --clients 2
    one_line 1 "no memory for the array of 1000000000 keys to load"
    limited "-v 4000000" train --keys 1G --key-set dense
    one_line 1 "no memory for the array of 1000000000 keys"
fi
