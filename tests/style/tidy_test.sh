#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# clang-tidy over every C file, several at once. Half an hour of processor time, therefore only with CI=true. With
# DM_TIDY_SAMPLE=NUMBER over what the last commits have changed, and one in so many of the others, which depend on
# DM_TIDY_SEED.
. "$DM_SOURCE_DIR/tests/style/lib.sh"
if [ "${CI:-}" != true ]; then
    echo "skipped: runs with CI=true only"
    exit 77
fi
need clang-tidy
database=$DM_BUILD_DIR/compile_commands.json
[ -f "$database" ] || complain "$database is missing"

# wanted: of the files on standard input, those to look at.
wanted() {
    every=${DM_TIDY_SAMPLE:-1}
    offset=$(($(printf '%s' "${DM_TIDY_SEED:-}" | cksum | cut -d ' ' -f 1) % every))
    git log -n 30 --name-only --format= >"$changed" 2>/dev/null || :
    awk -v every="$every" -v offset="$offset" -v changed="$changed" '
        BEGIN { while ((getline file < changed) > 0) { is_changed[file] = 1 } }
        NR % every == offset || ($0 in is_changed)' -
}
changed=$(mktemp)
trap 'rm -f "$changed"' EXIT

# What this compiler does not build (fuzz targets) has no flags to be read with.
# shellcheck disable=SC2016
sources '*.c' | wanted | while read -r file; do
    ! grep -qF "/$file\"" "$database" || echo "$file"
done | xargs -P "$(nproc)" -n 4 sh -c '
    clang-tidy --quiet --extra-arg=-Wno-unknown-warning-option \
         --extra-arg=-Wno-ignored-optimization-argument -p "$0" "$@" 2>/dev/null || { echo "clang-tidy: $*"; exit 1; }' "$DM_BUILD_DIR" ||
    complain "clang-tidy complains, see above"
finish
