# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
#
# What the style tests share. Sourced; needs DM_SOURCE_DIR.
set -eu
cd "$DM_SOURCE_DIR"

failures=0
complain() {
    echo "$*"
    failures=$((failures + 1))
}
finish() {
    [ "$failures" -eq 0 ] || {
        echo "$failures complaints"
        exit 1
    }
    exit 0
}

# need TOOL: without it the test is skipped, or fails in CI, where everything is installed.
need() {
    command -v "$1" >/dev/null 2>&1 && return 0
    echo "skipped: $1 is not installed"
    [ "${CI:-}" != true ] || exit 1
    exit 77
}

# sources PATTERN...: the project's files by name pattern, those that git ignores left out. A tarball may be unpacked within
# another repository, which ignores it or not.
sources() {
    if [ -e .git ] && command -v git >/dev/null 2>&1 && git rev-parse --git-dir >/dev/null 2>&1; then
        git ls-files -co --exclude-standard -- "$@" | sort -u | while read -r file; do
            [ ! -f "$file" ] || echo "$file"
        done
    else
        for pattern in "$@"; do
            find . -path ./build -prune -o -path ./.git -prune -o -type f -name "$pattern" -print | sed 's#^\./##'
        done | sort -u
    fi
}
[ -n "$(sources '*.c' | head -n 1)" ] || {
    echo "no sources in $DM_SOURCE_DIR"
    exit 1
}
