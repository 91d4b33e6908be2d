#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Plants the mistakes of tests/mutation one at a time in a copy of the sources (build/mutation), and reports which of them
# the conformance tests and `dmbench check` notice. docs/methodology.md has the table of the last complete run.
#
#   scripts/mutate.sh --jobs 2                       all of them
#   scripts/mutate.sh --sample 8 --seed "$(git rev-parse HEAD)"
#   scripts/mutate.sh --only chime- --resume
set -eu
cd "$(dirname "$0")/.."
exec python3 tests/mutation/mutate.py "$@"
