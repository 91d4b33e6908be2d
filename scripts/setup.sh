#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Installs those packages of scripts/packages.txt that are missing; does nothing when all are there. Where there is no apt it
# looks for what the packages provide, and fails with a list of what it does not find.
#   scripts/setup.sh run          what run_all.sh needs
#   scripts/setup.sh run test     what run_tests.sh needs
#   scripts/setup.sh long         what the long suite needs besides
#   scripts/setup.sh --list run   prints the packages' names instead
set -eu
here=$(cd "$(dirname "$0")" && pwd)

only_list=no
if [ "${1:-}" = --list ]; then
    only_list=yes
    shift
fi
[ $# -gt 0 ] || set -- run

for group in "$@"; do
    case $group in
    run | test | long) ;;
    *)
        echo "setup.sh: unknown group '$group' (available: run, test, long)" >&2
        exit 2
        ;;
    esac
done

# rows: "PACKAGE[/PACKAGE...] | WHAT IT PROVIDES | PURPOSE" of the groups.
rows() {
    for group in "$@"; do
        awk -F' *[|] *' -v group="$group" '
            !/^#/ && NF == 4 { gsub(/ /, "", $1); gsub(/ /, "", $2); if ($1 == group) print $2 " | " $3 " | " $4 }' \
            "$here/packages.txt"
    done
}

if [ "$only_list" = yes ]; then
    rows "$@" | sed 's#[ /].*##'
    exit 0
fi

# is_there WHAT: a command, or in brackets a header, a library, a font or a module of Python.
is_there() {
    name=${1#[}
    name=${name%]}
    case $1 in
    \[*.h\]) echo "#include <$name>" | "${CC:-cc}" -E - >/dev/null 2>&1 ;;
    \[*.a\] | \[*.so\]) [ "$("${CC:-cc}" -print-file-name="$name")" != "$name" ] ||
        [ -n "$(find /usr/lib /usr/lib64 -name "$name" 2>/dev/null | head -n 1)" ] ;;
    \[*.ttf\]) [ -n "$(find /usr/share/fonts -name "$name" 2>/dev/null | head -n 1)" ] ;;
    \[*\]) python3 -c "import $name" 2>/dev/null ;;
    *) command -v "$name" >/dev/null 2>&1 ;;
    esac
}

if ! command -v dpkg-query >/dev/null 2>&1; then
    missing=$(rows "$@" | while IFS='|' read -r package provides purpose; do
        for what in $provides; do
            is_there "$what" || echo "  $what: ${purpose# } (Debian package ${package%% *})"
        done
    done)
    [ -n "$missing" ] || exit 0
    echo "setup.sh: this is not a Debian system, so nothing is installed; missing are:
$missing" >&2
    exit 1
fi

# is_installed PACKAGE[/PACKAGE...]: one of them is enough.
is_installed() {
    for name in $(echo "$1" | tr / ' '); do
        case " $(dpkg-query -W -f '${db:Status-Status} ' "$name" 2>/dev/null || true)" in
        *" installed "*) return 0 ;;
        esac
    done
    return 1
}
missing=""
for package in $(rows "$@" | sed 's# .*##'); do
    is_installed "$package" || missing="$missing ${package%%/*}"
done
[ -n "$missing" ] || exit 0

echo "missing packages:$missing" >&2
as_root=""
if [ "$(id -u)" -ne 0 ]; then
    if ! command -v sudo >/dev/null 2>&1; then
        echo "setup.sh: not root and no sudo; as root run: apt-get install --no-install-recommends$missing" >&2
        exit 1
    fi
    as_root=sudo
fi

log=$(mktemp)
trap 'rm -f "$log"' EXIT
# apt WORDS...: apt-get, which is tried again for ten minutes while another one holds its lock. Other locales translate what
# is looked for in its output.
apt() {
    for attempt in $(seq 60); do
        if $as_root env LC_ALL=C DEBIAN_FRONTEND=noninteractive apt-get -q "$@" >"$log" 2>&1; then
            cat "$log" >&2
            return 0
        fi
        grep -q 'Could not get lock\|Unable to lock\|Unable to acquire' "$log" || break
        [ "$attempt" -gt 1 ] || echo "setup.sh: waiting for another apt" >&2
        sleep 10
    done
    cat "$log" >&2
    return 1
}
# shellcheck disable=SC2086
if ! { apt update && apt install -y --no-install-recommends $missing; }; then
    echo "setup.sh: cannot install; needed are:$missing" >&2
    exit 1
fi
