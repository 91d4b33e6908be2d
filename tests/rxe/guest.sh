#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Runs in the virtual machine, on the host's files. Sets the host name, makes a link (a pair of virtual Ethernet
# devices) with a software RoCE device at each end (rxe0 at 10.77.0.1, rxe1 at 10.77.1.1), or in one machine of two a
# device on the link between them, and runs the command in the exchange folder. Writes its output to files there and, at the end, its status.
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
# The jumbo frames of machine 0 are more than machine 1 takes: the ends of a connection have to agree.
end_of_a_link() {
    echo "machine$1" >/proc/sys/kernel/hostname
    printf '127.0.0.1 localhost\n10.78.0.1 machine0\n10.78.0.2 machine1\n' >/etc/hosts
    ip addr add "10.78.0.$(($1 + 1))/24" dev eth0 || fail "no address for eth0"
    [ "$1" -eq 1 ] || ip link set eth0 mtu 4200 || fail "no jumbo frames"
    ip link set eth0 up || fail "eth0 does not start"
    rdma link add rxe0 type rxe netdev eth0 || fail "cannot make rxe0"
}
ip link set lo up || fail "no loopback"
if [ -e $exchange/machine ]; then
    end_of_a_link "$(cat $exchange/machine)"
else
    pair_in_this_machine
fi
# Some huge pages, so that memory can be allocated with and without them.
echo 32 >/proc/sys/vm/nr_hugepages

status=0
(
    # shellcheck source=/dev/null
    . $exchange/environment
    # shellcheck source=/dev/null
    . $exchange/command
) </dev/null >$exchange/stdout 2>$exchange/stderr || status=$?
echo "$status" >$exchange/status.new
mv $exchange/status.new $exchange/status
