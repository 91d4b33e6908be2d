#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The Debian package that cpack makes: its dependencies are those of the program, it can be unpacked anywhere and run there,
# dpkg installs it, and lintian finds no errors.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
command -v dpkg-shlibdeps >/dev/null || missing "dpkg-shlibdeps (package dpkg-dev)"

(cd "${DM_BUILD_DIR:?the build}" && cpack -G DEB -B "$work/packages" -D "CPACK_PACKAGE_CONTACT=A Tester <tester@debian.org>") \
    >cpack.log 2>&1 || fail "cpack: $(cat cpack.log)"
package=$(find packages -maxdepth 1 -name 'dmbench_*.deb')
[ -s "$package" ] || fail "no package: $(cat cpack.log)"
dpkg-deb -I "$package" >about
depends=$(sed -n 's/^ Depends: //p' about)
for library in libc6 libjansson4 libzstd1; do
    echo "$depends" | grep -q "\b$library\b" || fail "the package does not depend on $library: $depends"
done
holds about "Recommends: gnuplot-nox"

# Unpacked somewhere, it has its data from there.
dpkg-deb -x "$package" root
cp root/usr/share/dmbench/transport/profiles/cx6-100g.json root/usr/share/dmbench/transport/profiles/own.json
DMBENCH=$work/root/usr/bin/dmbench
expect 0 list profiles
holds out "  own  "
expect 0 run --index sherman --workload c --profile own --keys 1K --ops 200 --clients 2 --warmup 0
expect 0 figure all --dry-run
rm -r root

# Installed by dpkg into a folder that is a system of its own, its dependencies apart.
if [ "$(id -u)" -eq 0 ]; then
    mkdir -p root/var/lib/dpkg/info root/var/lib/dpkg/updates
    : >root/var/lib/dpkg/status
    dpkg --root="$work/root" --force-depends -i "$package" >dpkg.log 2>&1 || fail "dpkg -i: $(cat dpkg.log)"
    expect 0 --version
    dpkg-query --root="$work/root" -W dmbench >/dev/null || fail "dpkg does not know the package"
fi

command -v lintian >/dev/null || missing "lintian; the package was tested"
lintian --allow-root --fail-on error "$package" >lintian.log 2>&1 || fail "lintian: $(cat lintian.log)"
