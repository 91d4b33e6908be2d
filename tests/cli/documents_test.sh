#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Every command line of the documents and of --help works, and every path that they name exists; documents.py says how.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
command -v python3 >/dev/null 2>&1 || missing python3
here=$DM_SOURCE_DIR/tests/cli
# What documents promise needs no sanitizers: run_tests.sh names a plain program, which is five times faster.
DMBENCH=${DM_PLAIN_DMBENCH:-$DMBENCH}
python3 "$here/documents.py" --self-test || fail "the self-test of documents.py"
python3 "$here/documents.py" "$DM_SOURCE_DIR" "$DMBENCH" "$DM_BUILD_DIR" "$here/documents_not_run.txt" ||
    fail "commands or paths of documents, see above"
