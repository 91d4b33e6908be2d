#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# process_kernel.sh CACHE: prints the path of a program of the cache that is a Linux kernel with software RoCE: user-mode
# Linux, a machine that is a process of the host. The first call downloads the kernel source of the distribution,
# without installing it, and builds the program in some minutes; later calls do neither. Exits with status 77 and the
# reason if that is impossible.
set -eu
cache=$1
here=$(cd "$(dirname "$0")" && pwd)

unavailable() {
    echo "tests/rxe: $*" >&2
    exit 77
}

# The configuration determines the name.
program=$cache/process-$(cksum <"$here/process_kernel.config" | cut -d ' ' -f 1)
if [ -x "$program" ]; then
    echo "$program"
    exit 0
fi

[ "$(uname -m)" = x86_64 ] || unavailable "no kernel is built as a process on $(uname -m)"
for tool in make:make gcc:gcc flex:flex bison:bison bc:bc xz:xz-utils; do
    command -v "${tool%%:*}" >/dev/null 2>&1 || unavailable "no ${tool%%:*} here (package ${tool#*:})"
done
mkdir -p "$cache"
work=$(mktemp -d "$cache/build.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

# shellcheck source=tests/rxe/fetch.sh
. "$here/fetch.sh"
fetch_dependency linux-source "$work"
mkdir "$work/tree"
tar -x -J -f "$work/package/usr/src/$package.tar.xz" -C "$work/tree" --strip-components 1
rm -rf "$work/package"

build() {
    make -C "$work/tree" ARCH=um "$@" >>"$work/build.log" 2>&1 ||
        unavailable "the kernel cannot be built: $(tail -n 5 "$work/build.log")"
}
build KCONFIG_ALLCONFIG="$here/process_kernel.config" allnoconfig
missing=$(grep '=y$' "$here/process_kernel.config" | grep -v -x -F -f "$work/tree/.config" | tr '\n' ' ')
[ -z "$missing" ] || unavailable "this kernel cannot have $missing"
build -j "$(nproc)" linux
# If two calls run at once, both have the same result.
mv "$work/tree/linux" "$program"
echo "$program"
