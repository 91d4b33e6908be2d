#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Runs a command in a temporary virtual machine with two software RoCE devices: the real RDMA stack of the kernel, on a
# host without a NIC. This needs no special rights and changes nothing on the host: the machine sees the files of the
# host read-only, with an overlay in memory that is lost at the end.
set -eu
usage() {
    cat <<'TEXT'
usage: tests/rxe/run.sh [--timeout SECONDS] [--memory MEGABYTES] [--cpus COUNT] [--process]
                        [--link FOLDER --machine NUMBER [--machines COUNT] [--links COUNT]] -- COMMAND [ARGUMENTS...]

Runs the command, in the working folder and environment of the caller, in a virtual machine with the devices rxe0
(10.77.0.1) and rxe1 (10.77.1.1). This script prints the output of the command and exits with its status. The command has
no input, and the files that it writes are lost. Default limits: 600 seconds in total, 2048 MB, 2 processors. With one
processor no two copies of software RoCE overlap, so that accesses to a line of 64 bytes are atomic, as with NICs.

With --process the machine is not emulated: its kernel is a process of the host (user-mode Linux, process_kernel.sh),
and programs in it run on the real processor. It has one processor. The kernel is built from source on first use. With
--link the machine has one link to one other machine, which must be of the same kind.

With --link this is machine NUMBER, from 0 on, of COUNT (2) that share an Ethernet link, by sockets in the folder;
machine 0 has the hub. It has one device, rxe0, at 10.78.0.NUMBER+1 on eth0, and with two links also rxe1 at
10.79.0.NUMBER+1 on eth1; its name is machineNUMBER. All machines see the folder as /run/link and may write there. See
hosts.sh, which starts them.

status  that of the command; 77 if the machine is not available (1 with CI=true); 124 after the time limit;
        125 if the machine ended without a status: the end of its console is then printed; or if its clock was wrong

DM_RXE_CACHE  where the kernel is kept (default: build/rxe of the source tree)
DM_RXE_KVM    1 to use /dev/kvm, which is faster, and on some hosts hangs
TEXT
}
here=$(cd "$(dirname "$0")" && pwd)
PATH=$PATH:/usr/sbin:/sbin

limit_s=600
memory_mb=2048
cpus=2
link=""
number=""
machines=2
links=1
kind=emulated
while [ $# -gt 0 ]; do
    case $1 in
    --process) kind=process && cpus=1 ;;
    --timeout) limit_s=$2 && shift ;;
    --memory) memory_mb=$2 && shift ;;
    --cpus) cpus=$2 && shift ;;
    --link) link=$2 && shift ;;
    --machine) number=$2 && shift ;;
    --machines) machines=$2 && shift ;;
    --links) links=$2 && shift ;;
    --help | -h)
        usage
        exit 0
        ;;
    --)
        shift
        break
        ;;
    *)
        echo "run.sh: unknown option '$1' (see --help)" >&2
        exit 2
        ;;
    esac
    shift
done
[ $# -gt 0 ] || {
    usage >&2
    exit 2
}

unavailable() {
    [ $# -eq 0 ] || echo "tests/rxe: skipped: $*" >&2
    # CI can install what is missing.
    [ "${CI:-}" != true ] || exit 1
    exit 77
}
if [ $kind = process ] && [ "$cpus $machines $links" != "1 2 1" ]; then
    echo "run.sh: with --process a machine has one processor, and one link to one other machine" >&2
    exit 2
fi
emulator=qemu-system-x86_64:qemu-system-x86
[ $kind = emulated ] || emulator=python3:python3
for tool in $emulator busybox:busybox-static cpio:cpio modprobe:kmod ip:iproute2 rdma:iproute2; do
    command -v "${tool%%:*}" >/dev/null 2>&1 || unavailable "no ${tool%%:*} here (package ${tool#*:})"
done
[ -e /etc/libibverbs.d/rxe.driver ] || unavailable "libibverbs has no driver for rxe (package ibverbs-providers)"

cache=${DM_RXE_CACHE:-$here/../../build/rxe}
status=0
if [ $kind = process ]; then
    kernel=$("$here/process_kernel.sh" "$cache") || status=$?
else
    # No module declares that it depends on crc32_generic, but without it rxe refuses every device.
    kernel=$("$here/kernel.sh" "$cache" virtio_pci 9pnet_virtio 9p overlay crc32_generic \
        ib_uverbs rdma_ucm rdma_rxe veth virtio_net sch_netem) || status=$?
fi
[ "$status" -ne 77 ] || unavailable
[ "$status" -eq 0 ] || exit "$status"

work=$(mktemp -d "${TMPDIR:-/tmp}/dmbench_rxe.XXXXXX")
machine=""
readers=""
# Called by the trap.
# shellcheck disable=SC2317
finish() {
    for process in $machine $readers; do
        kill "$process" 2>/dev/null || true
    done
    rm -rf "$work"
}
trap finish EXIT
trap 'exit 130' HUP INT TERM

# The initial file system.
mkdir -p "$work/first/bin" "$work/first/host" "$work/first/upper" "$work/first/files" "$work/first/proc" "$work/first/sys" \
    "$work/first/dev" "$work/first/modules" "$work/exchange"
cp "$(command -v busybox)" "$work/first/bin/"
cp "$here/init.sh" "$work/first/init"
chmod +x "$work/first/init"
if [ $kind = process ]; then
    # Where the host has what the machine mounts; it has no modules to load.
    printf '%s\n' "$work/exchange" "$link" >"$work/first/folders"
    : >"$work/first/order"
else
    cp "$kernel/order" "$work/first/"
    cp "$kernel"/modules/* "$work/first/modules/"
fi
# The interpreter of init must exist before init can make links.
ln -s busybox "$work/first/bin/sh"
(cd "$work/first" && find . | cpio --quiet -o -H newc) >"$work/initrd"

# The command, with each argument as one quoted word.
cp "$here/guest.sh" "$work/exchange/"
export -p >"$work/exchange/environment"
{
    printf 'cd '
    for word in "$PWD" "$@"; do
        printf "'%s' " "$(printf '%s_' "$word" | sed "s/'/'\\\\''/g" | sed '$ s/_$//')"
        [ "$word" != "$PWD" ] || [ -n "${seen:-}" ] || printf '|| exit 126\nexec '
        seen=yes
    done
    echo
} >"$work/exchange/command"
[ -z "$link" ] || echo "$number $machines $links" >"$work/exchange/machine"
: >"$work/exchange/stdout"
: >"$work/exchange/stderr"
: >"$work/console" # a kernel that is a process has none

if [ $kind = process ]; then
    # The memory of the machine is a file, which should not be on a disk. The kernel and its programs run in turn, so one
    # processor is right for all of them: on two each switch would wake the other one.
    set -- taskset -c "$((${number:-0} % $(nproc)))" env TMPDIR=/dev/shm "$kernel" "mem=${memory_mb}M" "initrd=$work/initrd" "uml_dir=$work/uml/" con=null con0=null,fd:1 quiet panic=1
    if [ -n "$link" ]; then
        mtu=""
        other=$((1 - number))
        [ "$number" -ne 0 ] || mtu=,mtu=4200
        set -- python3 "$here/link.py" "$link/0.of$number" "$link/0.of$other" "$link/emulator.$number" \
            "$@" "vec0:transport=fd,fd=3,mac=02:00:00:78:00:0$number$mtu"
    fi
else
    if [ "${DM_RXE_KVM:-}" = 1 ]; then
        set -- -accel kvm -cpu host
    else
        set -- -accel tcg,thread=multi -cpu max
    fi
    if [ -n "$link" ]; then
        set -- "$@" -pidfile "$link/emulator.$number" -virtfs "local,path=$link,mount_tag=link,security_model=none"
        sockets=local.type=unix,remote.type=unix
        for l in $(seq 0 $((links - 1))); do
            if [ "$number" -eq 0 ]; then
                set -- "$@" -netdev "hubport,id=link$l,hubid=$l"
                for other in $(seq $((machines - 1))); do
                    set -- "$@" -netdev "dgram,id=to$l$other,$sockets,local.path=$link/$l.to$other,remote.path=$link/$l.of$other" \
                        -netdev "hubport,id=port$l$other,hubid=$l,netdev=to$l$other"
                done
            else
                set -- "$@" -netdev "dgram,id=link$l,$sockets,local.path=$link/$l.of$number,remote.path=$link/$l.to$number"
            fi
            set -- "$@" -device "virtio-net-pci,netdev=link$l,mac=02:00:00:78:0$l:0$number,romfile="
        done
    else
        set -- "$@" -net none
    fi
    # At its start the kernel compares the time stamp counter with timers, which a busy host delays: the clock of the
    # machine, and with it all timeouts, was once wrong by a factor of 4. So it gets the rate of the counter from here.
    tsc_khz=$(python3 "$here/tsc.py" 2>/dev/null) || tsc_khz=""
    clock="tsc=reliable${tsc_khz:+ tsc_early_khz=$tsc_khz}"

    # The emulator keeps a machine's memory barriers only if several processors are possible, although its devices run on
    # a thread of their own. Without them the kernel can read the event index of a device before its packet is visible,
    # does not notify, and nothing is sent any more. So a second processor is possible, but never added.
    processors=$cpus
    [ "$cpus" -gt 1 ] || processors=1,maxcpus=2

    # The unpacked kernel is running in 4 s less.
    image=$kernel/vmlinux
    [ -e "$image" ] || image=$kernel/vmlinuz

    # no_timer_check: at its start the kernel counts interrupts of the timer during a loop, finds too few if the host is
    # busy, and panics ("IO-APIC + timer doesn't work").
    set -- qemu-system-x86_64 -M q35 "$@" -smp "$processors" -m "$memory_mb" -no-reboot \
        -display none -monitor none -serial "file:$work/console" \
        -kernel "$image" -initrd "$work/initrd" -append "console=ttyS0 quiet $clock no_timer_check oops=panic panic=-1" \
        -virtfs local,path=/,mount_tag=root,security_model=none,readonly=on,multidevs=remap \
        -virtfs "local,path=$work/exchange,mount_tag=exchange,security_model=none"
fi
timeout -k 5 "$limit_s" "$@" </dev/null >"$work/emulator" 2>&1 &
machine=$!
# The output of the command is shown while it runs.
tail -q -n +1 -f --pid="$machine" "$work/exchange/stdout" &
readers=$!
tail -q -n +1 -f --pid="$machine" "$work/exchange/stderr" >&2 &
readers="$readers $!"
ended=0
wait "$machine" || ended=$?
machine=""
# The readers print the rest when the machine has ended.
for process in $readers; do
    wait "$process" || true
done
readers=""

# clock_is_right: the command took as long by the machine's clock as by the host's, which files have their times from.
clock_is_right() {
    [ -s "$work/exchange/begun" ] || return 0
    awk -v host_begun="$(stat -c %.3Y "$work/exchange/begun")" -v host_ended="$(stat -c %.3Y "$work/exchange/ended")" '
        FNR == 1 { seen[FILENAME] = $1 }
        END {
            host = host_ended - host_begun
            own = seen[ARGV[2]] - seen[ARGV[1]]
            if (own > 1.1 * host + 2 || own < 0.9 * host - 2) {
                printf "tests/rxe: the clock of the machine is wrong: %.1f s there were %.1f s here\n", own, host
                exit 1
            }
        }' "$work/exchange/begun" "$work/exchange/ended" >&2
}

if [ -s "$work/exchange/status" ]; then
    clock_is_right || exit 125
    exit "$(cat "$work/exchange/status")"
fi
{
    echo "tests/rxe: the end of the machine's console:"
    tail -n 40 "$work/console" "$work/emulator" 2>/dev/null
} >&2
if [ "$ended" -eq 124 ] || [ "$ended" -eq 137 ]; then
    echo "tests/rxe: not finished within $limit_s s" >&2
    exit 124
fi
echo "tests/rxe: the machine ended without a status of the command" >&2
exit 125
