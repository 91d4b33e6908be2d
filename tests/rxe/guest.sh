#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Runs in the virtual machine, on the host's files. Sets the host name, makes a link (a pair of virtual Ethernet
# devices) with a software RoCE device at each end (rxe0 at 10.77.0.1, rxe1 at 10.77.1.1), or in one machine of several a
# device on each link between them, and runs the command in the exchange folder. Writes its output to files there and, at the end, its status.
set -u
exchange=/run/rxe
# Before the command starts, errors go to the console.
fail() {
    echo "guest: $*" >/dev/console
    exit 1
}
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin

pair_in_this_machine() {
    echo rxe-machine >/proc/sys/kernel/hostname
    printf '127.0.0.1 localhost rxe-machine\n' >/etc/hosts
    # Both ends of the link are in this machine, so it must accept packets from its own addresses.
    echo 1 >/proc/sys/net/ipv4/conf/all/accept_local
    # The link addresses are fixed, so that the GIDs are the same in every run.
    ip link add veth0 address 02:00:00:77:00:01 type veth peer name veth1 address 02:00:00:77:01:01 || fail "no link"
    for end in 0 1; do
        ip addr add "10.77.$end.1/16" dev "veth$end" || fail "no address for veth$end"
        ip link set "veth$end" mtu 4200 up || fail "veth$end does not start"
        rdma link add "rxe$end" type rxe netdev "veth$end" || fail "cannot make rxe$end"
    done
}
# end_of_links NUMBER MACHINES LINKS. The jumbo frames of machine 0 are more than the others take: the ends of a
# connection have to agree.
end_of_links() {
    echo "machine$1" >/proc/sys/kernel/hostname
    echo "127.0.0.1 localhost" >/etc/hosts
    for other in $(seq 0 $(($2 - 1))); do
        echo "10.78.0.$((other + 1)) machine$other" >>/etc/hosts
    done
    for l in $(seq 0 $(($3 - 1))); do
        [ ! -e "/sys/class/net/vec$l" ] || ip link set "vec$l" name "eth$l" || fail "vec$l is not renamed"
        ip addr add "10.$((78 + l)).0.$(($1 + 1))/24" dev "eth$l" || fail "no address for eth$l"
        [ "$1" -ne 0 ] || ip link set "eth$l" mtu 4200 || fail "no jumbo frames"
        ip link set "eth$l" up || fail "eth$l does not start"
        rdma link add "rxe$l" type rxe netdev "eth$l" || fail "cannot make rxe$l"
    done
}
ip link set lo up || fail "no loopback"
if [ -e $exchange/machine ]; then
    # The numbers are separate words.
    # shellcheck disable=SC2046
    end_of_links $(cat $exchange/machine)
else
    pair_in_this_machine
fi
# Some huge pages, so that memory can be allocated with and without them. A kernel that is a process has none.
[ ! -e /proc/sys/vm/nr_hugepages ] || echo 32 >/proc/sys/vm/nr_hugepages

status=0
cat /proc/uptime >$exchange/begun # run.sh compares these with its own clock
(
    # shellcheck source=/dev/null
    . $exchange/environment
    # The system's own python3: a version manager's is a script, which takes seconds in an emulated machine.
    PATH=/usr/sbin:/usr/bin:$PATH
    # shellcheck source=/dev/null
    . $exchange/command
) </dev/null >$exchange/stdout 2>$exchange/stderr || status=$?
cat /proc/uptime >$exchange/ended
echo "$status" >$exchange/status.new
mv $exchange/status.new $exchange/status
