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

# A kernel that is a process would start again.
end() {
    if [ -e /folders ]; then
        poweroff -f
    else
        reboot -f
    fi
}
give_up() {
    echo "init: $*"
    end
}

while read -r module; do
    insmod "/modules/$module" || give_up "cannot load $module"
done </order

# mount_host NAME FOLDER OPTIONS...: a folder of the host. A kernel that is a process finds it by its path; an emulated
# machine asks its emulator.
mount_host() {
    name=$1
    folder=$2
    options=$3
    if [ ! -e /folders ]; then
        mount -t 9p -o "trans=virtio,version=9p2000.L,msize=262144,$options" "$name" "$folder"
        return
    fi
    case $name in
    root) mount -t hostfs -o ro,/ none "$folder" ;;
    exchange) mount -t hostfs -o "$(sed -n 1p /folders)" none "$folder" ;;
    link) mount -t hostfs -o "$(sed -n 2p /folders)" none "$folder" ;;
    esac
}
mount_host root /host ro,cache=loose || give_up "cannot mount the host's root"
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
mount_host exchange /files/run/rxe cache=none || give_up "cannot mount the exchange folder"
if [ -e /files/run/rxe/machine ]; then
    mkdir -p /files/run/link
    mount_host link /files/run/link cache=none || give_up "cannot mount the folder of both machines"
fi

# Both limits are inherited. They are set here because the shell of the host may not have these options of ulimit.
# shellcheck disable=SC3045
ulimit -l unlimited || give_up "cannot lift the limit of locked memory"
# shellcheck disable=SC3045
ulimit -c 0
chroot /files /bin/sh /run/rxe/guest.sh
sync
end
