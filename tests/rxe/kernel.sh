#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# kernel.sh CACHE MODULE...: prints a folder of the cache that has a kernel (vmlinuz, and if it can be unpacked vmlinux),
# the named modules and those that they need (modules/), and the order in which to load them (order). The first call
# downloads the kernel package of the distribution and unpacks it, without installing it; later calls download nothing.
# Exits with status 77 and the reason if that is impossible.
set -eu
cache=$1
shift
here=$(cd "$(dirname "$0")" && pwd)
PATH=$PATH:/usr/sbin:/sbin

unavailable() {
    echo "tests/rxe: $*" >&2
    exit 77
}

# The requested modules determine the name and the contents of a folder.
folder=$cache/kernel-$(echo "$@" | cksum | cut -d ' ' -f 1)
if [ -e "$folder/order" ]; then
    echo "$folder"
    exit 0
fi

command -v modprobe >/dev/null 2>&1 || unavailable "no modprobe (package kmod)"
mkdir -p "$cache"
work=$(mktemp -d "$cache/unpack.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

# shellcheck source=tests/rxe/fetch.sh
. "$here/fetch.sh"
fetch_dependency linux-image-amd64 "$work"
tree=$work/package
# The tree may keep its modules below /usr, where modprobe does not look.
[ -d "$tree/lib/modules" ] || ln -s usr/lib "$tree/lib"
version=$(basename "$tree"/boot/vmlinuz-* | sed 's/^vmlinuz-//')
depmod -b "$tree" "$version"
mkdir -p "$work/result/modules"
cp "$tree/boot/vmlinuz-$version" "$work/result/vmlinuz"
python3 "$here/unpack_kernel.py" "$work/result/vmlinuz" "$work/result/vmlinux" >&2 || rm -f "$work/result/vmlinux"
# Lines are "insmod PATH" or "builtin NAME". A module is loaded once, after all modules that it needs.
for module in "$@"; do
    modprobe -d "$tree" -S "$version" --show-depends "$module" ||
        unavailable "the kernel package $package has no module $module"
done | awk '$1 == "insmod" && !seen[$2]++ { print $2 }' >"$work/paths"
while read -r path; do
    cp "$path" "$work/result/modules/"
    basename "$path"
done <"$work/paths" >"$work/result/order"
[ -s "$work/result/order" ] || unavailable "the kernel package $package has none of the modules: $*"
# If two calls run at once, the first one wins; both have the same result.
mv -T "$work/result" "$folder" 2>/dev/null || [ -e "$folder/order" ]
echo "$folder"
