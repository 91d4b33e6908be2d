#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The first process of the virtual machine that run.sh boots, run by busybox from the initial file system: loads the modules,
# puts a memory overlay above the host's root, which arrives read-only, and runs guest.sh in it. Whatever happens, the
# machine ends; the command's status is in the exchange folder only if the command ended by itself.
export PATH=/bin
busybox mount -t proc proc /proc
busybox --install -s /bin
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev

give_up() {
    echo "init: $*"
    reboot -f
}

while read -r module; do
    insmod "/modules/$module" || give_up "cannot load $module"
done </order

share=trans=virtio,version=9p2000.L,msize=262144
mount -t 9p -o "$share,ro,cache=loose" root /host || give_up "cannot mount the host's root"
mount -t tmpfs -o mode=755,size=75% upper /upper || give_up "cannot mount the overlay's memory"
mkdir /upper/new /upper/work
mount -t overlay -o lowerdir=/host,upperdir=/upper/new,workdir=/upper/work overlay /files ||
    give_up "cannot mount the overlay"

# No more of the host's than its files: what the host mounted there stays out of sight.
mkdir -p /files/proc /files/sys /files/dev /files/run/rxe
mount -t proc proc /files/proc
mount -t sysfs sys /files/sys
mount -t devtmpfs dev /files/dev
mkdir -p /files/dev/pts /files/dev/shm
mount -t devpts devpts /files/dev/pts
mount -t tmpfs -o mode=1777 shm /files/dev/shm
mount -t 9p -o "$share,cache=none" exchange /files/run/rxe || give_up "cannot mount the exchange folder"

# Both are inherited; the shell of the host's files need not have ulimit's options.
# shellcheck disable=SC3045
ulimit -l unlimited || give_up "cannot lift the limit of locked memory"
# shellcheck disable=SC3045
ulimit -c 0
chroot /files /bin/sh /run/rxe/guest.sh
sync
reboot -f
