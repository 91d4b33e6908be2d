#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# run.sh TARGET CORPUS: runs every input of the corpus, then a fixed number of mutations of them. New inputs that
# increase coverage go to a temporary folder; a failing input is stored next to the target, and the output names it.
# DM_FUZZ_SEED is any text, for example a revision, of which the seed is made; without it the seed is 1.
set -eu
target=$1
corpus=$2
"$target" "$corpus"/*
found=$(mktemp -d "${TMPDIR:-/tmp}/dmbench_fuzz.XXXXXX")
trap 'rm -rf "$found"' EXIT
seed=1 # libFuzzer draws one if it is 0
[ -z "${DM_FUZZ_SEED:-}" ] || seed=$(($(printf '%s' "$DM_FUZZ_SEED" | cksum | cut -d ' ' -f 1) % 1000000 + 1))
echo "seed $seed"
"$target" -runs=20000 -seed="$seed" -max_len=4096 -print_final_stats=1 -artifact_prefix="$target-" "$found" "$corpus"
