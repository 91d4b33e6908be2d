#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Runs in the virtual machine, on the host's files. Sets the host name, makes a link (a pair of virtual Ethernet
# devices) with a software RoCE device at each end (rxe0 at 10.77.0.1, rxe1 at 10.77.1.1), and runs the command in the
# exchange folder. Writes its output to files there and, at the end, its status.
set -u
exchange=/run/rxe
# Before the command starts, errors go to the console.
fail() {
    echo "guest: $*" >/dev/console
    exit 1
}
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin

echo rxe-machine >/proc/sys/kernel/hostname
printf '127.0.0.1 localhost rxe-machine\n' >/etc/hosts
# Both ends of the link are in this machine, so it must accept packets from its own addresses.
echo 1 >/proc/sys/net/ipv4/conf/all/accept_local
ip link set lo up || fail "no loopback"
# The link addresses are fixed, so that the GIDs are the same in every run.
ip link add veth0 address 02:00:00:77:00:01 type veth peer name veth1 address 02:00:00:77:01:01 || fail "no link"
for end in 0 1; do
    ip addr add "10.77.$end.1/16" dev "veth$end" || fail "no address for veth$end"
    ip link set "veth$end" mtu 4200 up || fail "veth$end does not start"
    rdma link add "rxe$end" type rxe netdev "veth$end" || fail "cannot make rxe$end"
done
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
