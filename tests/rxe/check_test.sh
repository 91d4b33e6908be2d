#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Small histories of every index, or of a sample of them (lib.sh), on real RDMA are linearizable.
# shellcheck source=tests/rxe/lib.sh
. "$(dirname "$0")/lib.sh"

for index in $(sampled_indexes); do
    # The settings are separate words.
    # shellcheck disable=SC2046
    "$DMBENCH" check --index "$index" --transport verbs --seeds 20 --coverage off $(patience "$index") || fail "check of $index"
done
