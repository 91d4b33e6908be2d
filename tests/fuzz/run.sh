#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# run.sh TARGET CORPUS: runs every input of the corpus, then a fixed number of mutations of them. New inputs that
# increase coverage go to a temporary folder; a failing input is stored next to the target, and the output names it.
set -eu
target=$1
corpus=$2
"$target" "$corpus"/*
found=$(mktemp -d "${TMPDIR:-/tmp}/dmbench_fuzz.XXXXXX")
trap 'rm -rf "$found"' EXIT
"$target" -runs=20000 -seed=1 -max_len=4096 -print_final_stats=1 -artifact_prefix="$target-" "$found" "$corpus"
