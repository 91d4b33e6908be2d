#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# scripts/setup.sh with made commands instead of apt-get and dpkg-query: what it installs, that it waits for another apt, and
# what it reports on a system without them.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

# Like the real path, but for what a test replaces or takes away.
mkdir bin
ln -s /usr/bin/* bin/
rm -f bin/dpkg-query bin/apt-get bin/sudo bin/sleep bin/id
PATH=$work/bin
mkdir scripts
cp "$DM_SOURCE_DIR/scripts/setup.sh" scripts/
cat >scripts/packages.txt <<'TXT'
# A comment | with | three | bars
run  | aa-dev        | aacmd [stdio.h]    | the first thing
run  | bb-dev/bb1-dev| [libc.so]          | the second thing
test | cc            | [json]             | the third thing
test | dd            | ddcmd [nosuch_dm.h] [nosuch_dm] | the fourth thing
base | ee            | eecmd              | -
TXT
# script STATUS WORDS...
script() {
    wanted=$1
    shift
    status=0
    scripts/setup.sh "$@" >out 2>err || status=$?
    [ "$status" -eq "$wanted" ] || fail "setup.sh $*: status $status instead of $wanted: $(cat err)"
}

script 2 all
holds err "unknown group 'all'"
script 0 --list run test
[ "$(tr '\n' ' ' <out)" = "aa-dev bb-dev cc dd " ] || fail "the list is: $(cat out)"

# Without Debian's tools it looks for what the packages provide.
script 1 run
holds err "aacmd: the first thing (Debian package aa-dev)"
! grep -q 'stdio.h\|second' err || fail "what is there was reported: $(cat err)"
script 1 run test
for what in aacmd ddcmd '\[nosuch_dm.h\]' '\[nosuch_dm\]'; do
    grep -q "  $what: " err || fail "$what was not reported: $(cat err)"
done
[ "$(wc -l <err)" -eq 5 ] || fail "more was reported than is missing: $(cat err)"
cp bin/true bin/aacmd
script 0 run

# With them it installs what is missing, once another apt has ended. Any of two packages is enough.
cat >bin/dpkg-query <<'SH'
#!/bin/sh
for name; do :; done
grep -qx "$name" "$0.installed" && echo "installed "
SH
cat >bin/apt-get <<'SH'
#!/bin/sh
echo "$*" >>"$0.calls"
if [ -e "$0.locked" ]; then
    rm "$0.locked"
    case $LC_ALL in
    C) echo "E: Could not get lock /var/lib/dpkg/lock-frontend" >&2 ;;
    *) echo "E: Konnte Sperre /var/lib/dpkg/lock-frontend nicht bekommen" >&2 ;;
    esac
    exit 100
fi
[ ! -e "$0.broken" ] || exit 100
SH
cat >bin/sleep <<'SH'
#!/bin/sh
echo "sleep $*" >>"$0.calls"
SH
printf '#!/bin/sh\necho 0\n' >bin/id
chmod +x bin/dpkg-query bin/apt-get bin/id bin/sleep
printf 'bb1-dev\ncc\n' >bin/dpkg-query.installed
touch bin/apt-get.locked
export LC_ALL=de_DE.UTF-8
script 0 run test
holds err "missing packages: aa-dev dd"
holds err "waiting for another apt"
holds bin/apt-get.calls "install -y --no-install-recommends aa-dev dd"
[ "$(grep -c update bin/apt-get.calls)" -eq 2 ] || fail "apt-get was called: $(cat bin/apt-get.calls)"
[ -s bin/sleep.calls ] || fail "it did not wait"
: >bin/apt-get.broken
: >bin/sleep.calls
script 1 run
holds err "cannot install; needed are: aa-dev"
[ ! -s bin/sleep.calls ] || fail "it waited although there was no lock"
# Nothing is called where nothing is missing.
echo aa-dev >>bin/dpkg-query.installed
rm bin/apt-get.calls
script 0 run
[ ! -e bin/apt-get.calls ] || fail "apt-get was called: $(cat bin/apt-get.calls)"
