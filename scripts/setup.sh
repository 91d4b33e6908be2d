#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Installs those packages of scripts/packages.txt that are missing; does nothing when all are there.
#   scripts/setup.sh run          what run_all.sh needs
#   scripts/setup.sh run test     what run_tests.sh needs
#   scripts/setup.sh --list run   prints the packages' names instead
set -eu
here=$(cd "$(dirname "$0")" && pwd)

only_list=no
if [ "${1:-}" = --list ]; then
    only_list=yes
    shift
fi
[ $# -gt 0 ] || set -- run

packages=""
for group in "$@"; do
    case $group in
    run | test) ;;
    *)
        echo "setup.sh: unknown group '$group' (available: run, test)" >&2
        exit 2
        ;;
    esac
    packages="$packages $(awk -F'|' -v group="$group" '
        !/^#/ && NF == 4 { gsub(/ /, "", $1); gsub(/ /, "", $2); if ($1 == group) print $2 }' "$here/packages.txt")"
done
# One name a word from here on.
# shellcheck disable=SC2086
set -- $packages
if [ "$only_list" = yes ]; then
    printf '%s\n' "$@"
    exit 0
fi

if ! command -v dpkg-query >/dev/null 2>&1; then
    echo "setup.sh: this is not a Debian system; what is needed, by its Debian names: $*" >&2
    exit 0
fi
missing=""
for package in "$@"; do
    status=$(dpkg-query -W -f '${db:Status-Status} ' "$package" 2>/dev/null || true)
    case " $status" in
    *" installed "*) ;;
    *) missing="$missing $package" ;;
    esac
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
# shellcheck disable=SC2086
if ! { $as_root apt-get update -q &&
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends $missing; } >&2; then
    echo "setup.sh: cannot install; needed are:$missing" >&2
    exit 1
fi
