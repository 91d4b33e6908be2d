#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The first process of the virtual machine that run.sh boots; busybox runs it from the initial file system. Loads the
# modules, mounts an overlay in memory over the host's root, which is read-only, and runs guest.sh in it. In any case
# the machine ends. The exchange folder has the status of the command only if the command ended regularly.
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

# Only files of the host are visible, not what it mounted on these folders.
mkdir -p /files/proc /files/sys /files/dev /files/run/rxe
mount -t proc proc /files/proc
mount -t sysfs sys /files/sys
mount -t devtmpfs dev /files/dev
mkdir -p /files/dev/pts /files/dev/shm
mount -t devpts devpts /files/dev/pts
mount -t tmpfs -o mode=1777 shm /files/dev/shm
mount -t 9p -o "$share,cache=none" exchange /files/run/rxe || give_up "cannot mount the exchange folder"
if [ -e /files/run/rxe/machine ]; then
    mkdir -p /files/run/link
    mount -t 9p -o "$share,cache=none" link /files/run/link || give_up "cannot mount the folder of both machines"
fi

# Both limits are inherited. They are set here because the shell of the host may not have these options of ulimit.
# shellcheck disable=SC3045
ulimit -l unlimited || give_up "cannot lift the limit of locked memory"
# shellcheck disable=SC3045
ulimit -c 0
chroot /files /bin/sh /run/rxe/guest.sh
sync
reboot -f
