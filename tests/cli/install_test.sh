#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# `cmake --install` into a folder, which is then moved: the program finds the data beside it, and runs without the source
# tree. So does a source tree that was moved with its build.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

cmake --install "${DM_BUILD_DIR:?the build}" --prefix "$work/first" >install.log 2>&1 || fail "cmake --install: $(cat install.log)"
mv first moved
data=moved/share/dmbench
for path in bin/dmbench share/dmbench/results/schema.json share/dmbench/plots/style.gp share/dmbench/plots/claims/chime.json \
    share/dmbench/plots/end_to_end/xstore.json share/dmbench/workloads/ycsb/a.properties share/doc/dmbench/README.md \
    share/doc/dmbench/docs/cluster.md share/doc/dmbench/indexes/sherman/README.md; do
    [ -s "moved/$path" ] || fail "not installed: $path"
done

# What is there is what the moved copy has, and nothing of the source tree.
DMBENCH=$work/moved/bin/dmbench
[ "$("$DMBENCH" --version)" = "$("$DM_BUILD_DIR/dmbench" --version)" ] || fail "another version than that of the build"
cp $data/transport/profiles/cx6-100g.json $data/transport/profiles/own.json
rm $data/plots/figures/chime-12.json
expect 0 list profiles
holds out "  own  "
expect 0 list figures
! grep -qE 'chime-12( |$)' out || fail "the figures are not those of the moved copy"
expect 0 figure all --dry-run
holds out "figures, "
expect 0 run --index sherman --workload a --profile own --keys 1K --ops 200 --clients 2 --warmup 0 --out result.json
holds out "cluster     1 compute, 1 memory"
expect 0 run result.json
# A file of YCSB's, which a preset alone does not need.
rm $data/workloads/ycsb/*.properties
expect 2 run --workload a --keys 1K --ops 200 --clients 2
holds err "workloads/ycsb"

# The environment decides first, and a folder without data is named.
DMBENCH_DATA=$DM_SOURCE_DIR
export DMBENCH_DATA
expect 0 list figures
holds out chime-12
expect 2 run --profile own --keys 1K --ops 200
DMBENCH_DATA=$work/nothing
expect 2 run --keys 1K --ops 200
holds err "no profiles in $work/nothing/transport/profiles"
unset DMBENCH_DATA

# A source tree with a build in it, moved.
mkdir -p tree/build/release tree/transport tree/workloads
cp "$DM_BUILD_DIR/dmbench" tree/build/release/
cp -r $data/plots tree/
cp -r $data/transport/profiles tree/transport/
DMBENCH=$work/tree/build/release/dmbench
expect 0 list profiles
holds out "  own  "
