#!/bin/sh
# Runs a command as root of the Debian folder: enter.sh <folder> <repository> <keep|discard> <command> [<argument>...]
# `unshare` has given this process mounts and process ids of its own, so nothing of either is left when it ends.
set -eu
folder=$1 repository=$2 changes=$3
shift 3
system=$folder/debian
if [ "$changes" = discard ]; then
    mount -t tmpfs -o mode=755 changes "$folder/run"
    for part in system repository; do
        mkdir -p "$folder/run/$part/changed" "$folder/run/$part/work" "$folder/run/$part/seen"
    done
    over() { mount -t overlay -o "lowerdir=$1,upperdir=$2/changed,workdir=$2/work" overlay "$2/seen"; }
    over "$system" "$folder/run/system"
    over "$repository" "$folder/run/repository"
    system=$folder/run/system/seen repository=$folder/run/repository/seen
fi
mkdir -p "$system/repository"
mount --bind "$repository" "$system/repository"
mount -t proc proc "$system/proc"
mount --rbind /dev "$system/dev"
mount -t tmpfs tmpfs "$system/tmp"
# A shell that waits for all children: this is the first process of its world.
exec chroot "$system" /bin/sh -c '"$@"; exit $?' sh "$@"
