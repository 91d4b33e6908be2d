#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# `dmbench doctor` on made hosts: a folder with the files that the kernel of a good host has, and the same with one thing
# changed at a time.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

# put FILE TEXT: a file of the made host.
put() {
    mkdir -p "host/$(dirname "$1")"
    printf '%b\n' "$2" >"host/$1"
}
cpu=sys/devices/system/cpu
node=sys/devices/system/node
port=sys/class/infiniband/mlx5_0/ports/1
# A host with two cores of two hyper-threads each, two NUMA nodes, and one device with one port.
make_host() {
    rm -rf host
    put $cpu/online 0-3
    for i in 0 1 2 3; do
        put $cpu/cpu$i/topology/thread_siblings_list "$((i % 2)),$((i % 2 + 2))"
        put $cpu/cpu$i/cpufreq/scaling_governor performance
        put $cpu/cpu$i/cpufreq/scaling_cur_freq 2100000
        put $cpu/cpu$i/cpufreq/cpuinfo_max_freq 3500000
        put $cpu/cpu$i/cpuidle/state0/latency 0
        put $cpu/cpu$i/cpuidle/state0/name POLL
    done
    put proc/self/status 'Name:\tdmbench\nCapEff:\t0000000000000000\nCpus_allowed_list:\t0-3'
    put proc/self/limits 'Max open files            1024       4096      files\nMax locked memory         unlimited  unlimited bytes'
    put proc/self/cgroup '0::/user.slice'
    put sys/fs/cgroup/user.slice/cpu.max 'max 100000'
    put proc/loadavg '0.05 0.10 0.20 1/100 1234'
    put proc/cpuinfo 'processor\t: 0\nmodel name\t: Good CPU\ncpu MHz\t\t: 2100.000'
    put proc/meminfo 'MemTotal:       65536000 kB\nMemAvailable:   60000000 kB'
    put etc/security/limits.d/rdma.conf '# memlock\n*  hard  memlock  unlimited'
    for i in 0 1; do
        put $node/node$i/hugepages/hugepages-2048kB/nr_hugepages 1000
        put $node/node$i/hugepages/hugepages-2048kB/free_hugepages 900
    done
    put $node/node0/cpulist 0-3
    put $node/node1/cpulist 4-7
    put sys/kernel/mm/transparent_hugepage/enabled 'always [madvise] never'
    put sys/class/infiniband/mlx5_0/hca_type MT4123
    put sys/class/infiniband/mlx5_0/fw_ver 20.31.1014
    put sys/class/infiniband/mlx5_0/device/numa_node 0
    for member in current max; do
        put sys/class/infiniband/mlx5_0/device/${member}_link_speed '16.0 GT/s PCIe'
        put sys/class/infiniband/mlx5_0/device/${member}_link_width 16
    done
    put $port/state '4: ACTIVE'
    put $port/phys_state '5: LinkUp'
    put $port/rate '100 Gb/sec (4X EDR)'
    put $port/link_layer Ethernet
    put $port/gids/0 fe80:0000:0000:0000:0e42:a1ff:fe00:0001
    put $port/gid_attrs/types/0 'RoCE v2'
    put $port/gids/1 0000:0000:0000:0000:0000:ffff:0a00:0001
    put $port/gid_attrs/types/1 'IB/RoCE v1'
    put $port/gids/2 0000:0000:0000:0000:0000:ffff:0a00:0001
    put $port/gid_attrs/types/2 'RoCE v2'
    put $port/gid_attrs/ndevs/2 eth2
    put $port/gids/3 0000:0000:0000:0000:0000:0000:0000:0000
    put $port/pkeys/0 0xffff
    put sys/class/net/eth2/mtu 9000
    put sys/class/infiniband_verbs/uverbs0/ibdev mlx5_0
    put dev/infiniband/uverbs0 ''
    put dev/infiniband/rdma_cm ''
    for program in mpirun ib_read_lat gnuplot ibv_devinfo numactl; do
        put usr/bin/$program ''
        chmod +x host/usr/bin/$program
    done
}
# doctor STATUS WORDS...: what it says of the made host.
doctor() {
    wanted=$1
    shift
    expect "$wanted" doctor --root host "$@"
}
# changed STATUS FOUND...: the host, which was changed, is reported so; a new one is made.
changed() {
    wanted=$1
    shift
    doctor "$wanted" --transport verbs
    tr -s ' \n' ' ' <out >flat # lines are folded
    for text in "$@"; do
        holds flat "$text"
    done
    make_host
}

# Without the transport in this program the made host is not enough.
has_verbs=yes
"$DMBENCH" list transports | grep -q 'verbs.*left out' && has_verbs=no

make_host
if [ $has_verbs = yes ]; then
    doctor 0 --transport verbs
    holds out "the transport verbs should work here"
    holds out " 0 warnings, 0 missing"
    for text in "all 4" "2 with 4 hyper-threads" "performance" "Good CPU: 2.10 to 2.10 GHz now, 3.50 GHz at most" \
        "unlimited (rdma.conf: *  hard  memlock  unlimited)" "67.1 GB, 61.4 GB available, 2 NUMA nodes" \
        "node0: 2.10 GB, 1.89 GB free" "MT4123, firmware 20.31.1014" "ACTIVE (LinkUp), Ethernet, 100 Gb/sec (4X EDR)" \
        "gid=1: fe80::e42:a1ff:fe00:1, RoCE v2" "gid=2: ::ffff:10.0.0.1, IB/RoCE v1" \
        "gid=3: ::ffff:10.0.0.1, RoCE v2, eth2; chosen unless one is given" "4096 of RDMA, 9000 of eth2" "pkey=0: 0xffff" \
        "node 0: 4 of the 4" "--transport-set device=mlx5_0 port=1 gid=3" "16.0 GT/s PCIe, 16 lanes"; do
        holds out "$text"
    done
fi
make_host

[ $has_verbs = yes ] || skip "this program lacks the transport verbs"
put $cpu/cpu1/cpufreq/scaling_governor powersave
changed 0 "powersave on 1 of 4" "cpupower frequency-set -g performance"
put proc/self/status 'CapEff:\t0000000000000000\nCpus_allowed_list:\t1'
changed 0 "1 of 4: this process is bound"
put sys/fs/cgroup/user.slice/cpu.max '150000 100000'
changed 0 "1.5 processors in each 100 ms"
put $cpu/cpu0/cpuidle/state1/latency 133
put $cpu/cpu0/cpuidle/state1/name C6
changed 0 "133 us to wake up from C6"
put $cpu/cpu0/cpuidle/state1/latency 133
put $cpu/cpu0/cpuidle/state1/disable 1
changed 0 "0 us to wake up from POLL"
put proc/loadavg '3.50 0.10 0.20 1/100 1234'
changed 0 "3.50 processes ran"
put proc/self/limits 'Max locked memory         8388608   8388608    bytes'
changed 3 "limited to 8.4 MB" "cannot work here"
put proc/self/limits 'Max locked memory         8388608   8388608    bytes'
put proc/self/status 'CapEff:\t000001ffffffffff\nCpus_allowed_list:\t0-3'
changed 0 "CAP_IPC_LOCK"
for i in 0 1; do put $node/node$i/hugepages/hugepages-2048kB/nr_hugepages 0; done
changed 0 "none are reserved"
put sys/kernel/mm/transparent_hugepage/enabled 'always madvise [never]'
changed 0 "echo madvise"
put sys/class/infiniband/mlx5_0/device/numa_node 1
changed 0 "node 1: 0 of the 4" "numactl --cpunodebind=1 --membind=1"
put sys/class/infiniband/mlx5_0/device/current_link_width 8
changed 0 "16.0 GT/s PCIe, 8 lanes" "another slot"
put $port/state '1: DOWN'
changed 3 "DOWN (LinkUp)" "no port of any device is active" "cannot work here"
rm host/$port/gids/2
changed 0 "no IPv4 address of version 2 of RoCE" "port=1 gid=1"
rm host/$port/gids/*
changed 3 "none: no address to connect to"
put sys/class/net/eth2/mtu 1500
changed 0 "1024 of RDMA, 1500 of eth2" "4 packets of each 4 KB"
put $port/pkeys/0 0x0000
put $port/pkeys/1 0x8001
changed 0 "pkey=1: 0x8001" "entry 0, which is used unless another is given, is empty"
put $port/link_layer InfiniBand
changed 0 "gid=1: fe80::e42:a1ff:fe00:1, InfiniBand" "that of the subnet"
rm host/dev/infiniband/uverbs0
changed 3 "/dev/infiniband/uverbs0 cannot be opened" "docker --device"
rm host/dev/infiniband/rdma_cm
changed 0 "the control port exchanges queue pairs"
rm -r host/sys/class/infiniband
changed 3 "no RDMA device here"
rm host/usr/bin/*
changed 0 "perftest not installed" "mpirun not installed"

# The device that is asked for, others, and what works without any.
doctor 0 --transport verbs --device mlx5_0
doctor 3 --transport verbs --device mlx5_7
holds out "no device 'mlx5_7'"
rm -r host/sys/class/infiniband
doctor 0
doctor 0 --transport sim
holds out "the transport sim should work here"
mkdir empty
expect 0 doctor --root empty
expect 2 doctor --root nothing
holds err "--root: no folder 'nothing'"
expect 2 doctor --transport verb
holds err "did you mean 'verbs'?"
expect 2 doctor now
expect 0 doctor --no-measure

make_host
doctor 0 --transport verbs --json
command -v python3 >/dev/null || missing "python3; the text was checked"
python3 - out <<'PY'
import json
import sys

report = json.load(open(sys.argv[1], encoding="utf-8"))
assert report["works"] is True and report["transport"] == "verbs", report
gids = [one["found"] for one in report["findings"] if one["name"] == "GID"]
assert len(gids) == 3 and all(one["status"] in ("ok", "warning", "missing") for one in report["findings"]), gids
assert next(one for one in report["findings"] if one["name"] == "NUMA")["subject"] == "mlx5_0"
PY
