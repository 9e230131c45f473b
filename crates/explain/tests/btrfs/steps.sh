# One transaction each; after each, the image as it is on the disk. bash steps.sh IMAGE STATES MOUNT_OPTIONS [MKFS FLAGS]
set -e
image=$1 states=$2 options=$3
shift 3
state() { cp --sparse=always "$image" "$states/$1.img"; find . -printf "%i\t/%P\n" >"$states/$1.names"; }
truncate -s 160M "$image"
mkfs.btrfs -q "$@" "$image" 2>"$states/mkfs.log"
mkdir "$states/mnt"
cp --sparse=always "$image" "$states/00-mkfs.img"
# Without commits by time (every 30 s), which would end the logs of a state on a busy machine.
mount -o loop,noatime,commit=300,$options "$image" "$states/mnt"
cd "$states/mnt"
mkdir d e
for n in $(seq 40); do head -c $((n * 700)) /dev/urandom >d/f$n; done
head -c 3000000 /dev/urandom >e/big
sync -f .; state 01-create
mount -o remount,strictatime "$states/mnt"
cat d/f1 d/f5 e/big >"/dev/null"
sync -f .
cp --sparse=always "$image" "$states/02-atime.img"
mount -o remount,noatime "$states/mnt"
sync -f .
chmod 600 d/f1; sync -f .; state 03-mode
mv d/f2 e/moved; sync -f .; state 04-names
touch -m d/f7; sync -f .; state 05-times
echo more >>e/big; sync -f .; state 06-size
btrfs -q subvolume snapshot . shot; sync -f .; state 07-snapshot
head -c 9000 /dev/urandom >shot/d/f20; sync -f .; state 08-in-snapshot
head -c 5000 /dev/urandom | dd of=d/logged conv=fsync status=none; state 09-log
head -c 5000 /dev/urandom | dd of=d/logged conv=fsync,notrunc seek=10 status=none; state 10-log-again
sync -f .; state 11-commit
# Two logs of one superblock, of a snapshot and of what it was made of. Where a chunk was made meanwhile, an fsync commits instead.
for try in 1 2 3 4; do
  for file in shot/d/synced e/synced e/second; do head -c 50000 /dev/urandom | dd of=$file conv=fsync status=none; done
  [[ $(btrfs inspect-internal dump-tree "$image" | grep -c "^log tree key") == 2 ]] && break
done
state 11-logs
touch e/inplace; chattr +C e/inplace; head -c 100000 /dev/urandom >e/inplace; sync -f .; state 12-no-cow
head -c 8192 /dev/urandom | dd of=e/inplace conv=notrunc bs=4096 seek=3 status=none; sync -f .; state 13-in-place
rm d/f9; sync -f .; state 14-remove
# Lines of 16 bytes that name the file: each block begins with one.
mkdir tag; for n in $(seq 100 140); do { yes "/tag/file-0$n#" || true; } | head -c $((n * 512)) >tag/file-0$n; done; sync -f .; state 15-tagged
for n in $(seq 110 3 140); do { yes "/tag/file-0$n#" || true; } | dd of=tag/file-0$n bs=4096 seek=2 count=3 iflag=fullblock conv=notrunc status=none; done; sync -f .; state 16-tagged-again
cd /; umount "$states/mnt"
cp --sparse=always "$image" "$states/17-unmounted.img"
