#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# What the virtual machine does in the host's files: names the host, makes a cable (a pair of virtual Ethernet devices) with
# a software RoCE device at each end (rxe0 at 10.77.0.1, rxe1 at 10.77.1.1), and runs the command that the exchange folder
# names. Output goes to files there, and the status at last.
set -u
exchange=/run/rxe
# Until the command starts, what goes wrong here is for the console.
fail() {
    echo "guest: $*" >/dev/console
    exit 1
}
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin

echo rxe-machine >/proc/sys/kernel/hostname
printf '127.0.0.1 localhost rxe-machine\n' >/etc/hosts
# Both ends of the cable are in this machine: packets from an address of its own must be welcome.
echo 1 >/proc/sys/net/ipv4/conf/all/accept_local
ip link set lo up || fail "no loopback"
# Fixed link addresses: the GIDs are the same each time.
ip link add veth0 address 02:00:00:77:00:01 type veth peer name veth1 address 02:00:00:77:01:01 || fail "no cable"
for end in 0 1; do
    ip addr add "10.77.$end.1/16" dev "veth$end" || fail "no address for veth$end"
    ip link set "veth$end" mtu 4200 up || fail "veth$end does not start"
    rdma link add "rxe$end" type rxe netdev "veth$end" || fail "cannot make rxe$end"
done
# Some huge pages, so that both ways to get memory can be had; whoever wants none asks for none.
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
