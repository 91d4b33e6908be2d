#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# clang-tidy over every C file, several at once. Minutes long, therefore only with CI=true.
. "$DM_SOURCE_DIR/tests/style/lib.sh"
if [ "${CI:-}" != true ]; then
    echo "skipped: runs with CI=true only"
    exit 77
fi
need clang-tidy
database=$DM_BUILD_DIR/compile_commands.json
[ -f "$database" ] || complain "$database is missing"
# What this compiler does not build (fuzz targets) has no flags to be read with.
# shellcheck disable=SC2016
sources '*.c' | while read -r file; do
    ! grep -qF "/$file\"" "$database" || echo "$file"
done | xargs -P "$(nproc)" -n 4 sh -c '
    clang-tidy --quiet --extra-arg=-Wno-unknown-warning-option \
         --extra-arg=-Wno-ignored-optimization-argument -p "$0" "$@" 2>/dev/null || { echo "clang-tidy: $*"; exit 1; }' "$DM_BUILD_DIR" ||
    complain "clang-tidy complains, see above"
finish
