# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
#
# fetch_dependency META FOLDER: downloads, without installing it, the versioned package that the Debian package META
# depends on, unpacks it into FOLDER/package, and sets `package` to its name. Is sourced; needs unavailable().

# download: one attempt, with the package lists that are there.
# Other locales translate "Depends:".
download() {
    package=$(LC_ALL=C apt-cache depends "$1" 2>/dev/null | awk '$1 == "Depends:" { print $2; exit }')
    [ -n "$package" ] || return 1
    (cd "$2" && apt-get download -q "$package" >download.log 2>&1)
}

fetch_dependency() {
    command -v apt-get >/dev/null 2>&1 || unavailable "no apt-get here to fetch $1 with"
    if ! download "$@"; then
        # The package lists may be missing, or so old that the server has removed the packages in them.
        [ "$(id -u)" -ne 0 ] || apt-get update -q >"$2/update.log" 2>&1 || true
        download "$@" ||
            unavailable "cannot download $1: $(tail -n 2 "$2/download.log" 2>/dev/null || echo "apt knows no $1")"
    fi
    dpkg -x "$2/$package"_*.deb "$2/package"
}
