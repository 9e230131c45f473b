"""Every profile of the catalogue formats and mounts on this kernel, or is reported as refused."""

import os
import re
import shlex
import shutil
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.variants import some

from fscost.host import kernel_has
from fscost.profile import Profile, catalogue, plan_format, resolve

pytestmark = [
    pytest.mark.root,
]

DISK_BYTES = 512 << 20

# Each loop device is freed however the script ends; the mount dies with its namespace.
SCRIPT = """
set -eu
mkdir -p "$FOLDER/mnt"
trap 'cd /; umount "$FOLDER/mnt" 2>/dev/null || :; for l in $LOOPS; do losetup -d $l; done' EXIT
LOOPS=
{attach}
{mkfs}
mount -t {type} -o {options} {device} "$FOLDER/mnt"
{after_mount}
{inspect}
{check}
"""


def format_and_mount(
    profile: Profile, folder: Path, check: str = "", seed: int = 1, decoys: int = 0
) -> subprocess.CompletedProcess[str]:
    """Format and mount a profile by hand with plain loop devices, as a lab does."""
    plan = plan_format(profile, disk_size_bytes=DISK_BYTES, seed=seed)

    attach = []
    for i in range(decoys):  # taken loop devices, so that the disks get others than the time before
        (folder / f"decoy{i}").write_bytes(bytes(1 << 20))
        attach.append(f'LOOPS="$LOOPS $(losetup -f --show "$FOLDER/decoy{i}")"')
    for disk in profile.disks:
        image = folder / f"{disk.name}.img"
        with image.open("wb") as file:
            file.truncate(disk.size_bytes or DISK_BYTES)
        attach.append(
            f'disk_{disk.name}=$(losetup -f --show {shlex.quote(str(image))}); LOOPS="$LOOPS'
            f' $disk_{disk.name}"'
        )

    def unquoted(text: str) -> str:
        for disk in profile.disks:
            text = text.replace(f"{{disk.{disk.name}}}", f"$disk_{disk.name}")
        return text

    def words(command: tuple[str, ...]) -> str:
        return " ".join(
            '"' + unquoted(word).replace("{dir}", "$FOLDER/mnt") + '"' for word in command
        )

    script = SCRIPT.format(
        attach="\n".join(attach),
        mkfs="\n".join(map(words, plan.mkfs)),
        type=plan.mount_type,
        options='"' + unquoted(plan.mount_options or "rw") + '"',
        device=unquoted(plan.mount_device),
        after_mount="\n".join(map(words, plan.after_mount)),
        inspect="\n".join(words(command) for _, command in plan.inspect),
        check=check,
    )
    return subprocess.run(
        ["unshare", "-m", "sh", "-c", script],
        env={**os.environ, "FOLDER": str(folder)},
        capture_output=True,
        text=True,
        timeout=300,
    )


def is_native(profile: Profile) -> bool:
    return profile.array is None and kernel_has(profile.type)


@pytest.mark.parametrize(
    "profile",
    some(catalogue(), 8, [each for each in catalogue() if each.refused or not is_native(each)]),
    ids=lambda profile: profile.name,
)
def test_formats_and_mounts_or_is_refused(profile: Profile, tmp_path: Path) -> None:
    for tool in plan_format(profile, disk_size_bytes=DISK_BYTES, seed=1).needs_tools:
        if shutil.which(tool) is None:
            pytest.skip(f"needs {tool}")
    if not is_native(profile):
        because = (
            f"this kernel has no {profile.type}"
            if profile.array is None
            else "arrays are made in guests only"
        )
        pytest.skip(f"{because}; tests/lab/vm mounts this profile in a guest")
    check = (
        'findmnt -n -o VFS-OPTIONS,FS-OPTIONS "$FOLDER/mnt"; echo hello > "$FOLDER/mnt/file";'
        ' sync -f "$FOLDER/mnt"'
    )
    done = format_and_mount(profile, tmp_path, check)
    if profile.refused:
        assert done.returncode != 0, (
            f"{profile.name} is mounted by this kernel: it is refused no more"
        )
        assert "mount" in done.stderr, "refused by mount, not before it"
        return
    assert done.returncode == 0, done.stderr + done.stdout
    shown = done.stdout.splitlines()[-1]
    for word in {"noatime", "lazytime", "strictatime"} & set(profile.mount_options.split(",")):
        if word == "strictatime":  # the kernel shows it by showing neither of the others
            assert "noatime" not in shown
            assert "relatime" not in shown
        else:
            assert word in shown


@pytest.mark.parametrize("text", ["btrfs", "btrfs-raid1", "xfs", "ext4-external-journal"])
def test_the_same_profile_and_seed_again(text: str, tmp_path: Path) -> None:
    """UUIDs come from the seed: the kernel must not mistake the second file system for the first
    (btrfs remembers devices)."""
    for round_ in range(3):
        folder = tmp_path / str(round_)
        folder.mkdir()
        done = format_and_mount(
            resolve(text),
            folder,
            decoys=round_,
            check='for i in 1 2 3; do echo > "$FOLDER/mnt/$i"; sync -f "$FOLDER/mnt"; done',
        )
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("text", ["btrfs", "xfs", "ext4"])
def test_the_same_profile_and_seed_twice_at_a_time(text: str, tmp_path: Path) -> None:
    """Another run or another lab may have the same profile and seed mounted at the same time."""
    for name in ("first", "second"):
        (tmp_path / name).mkdir()

    def hold() -> None:
        check = 'touch "$FOLDER/held"; while [ ! -e "$FOLDER/release" ]; do sleep 0.05; done'
        assert format_and_mount(resolve(text), tmp_path / "first", check).returncode == 0

    with ThreadPoolExecutor() as pool:
        first = pool.submit(hold)
        while not (tmp_path / "first/held").exists() and not first.done():
            time.sleep(0.05)
        second = format_and_mount(resolve(text), tmp_path / "second")
        (tmp_path / "first/release").touch()
        first.result()
    assert second.returncode == 0, second.stderr


def test_xfs_takes_4096_byte_sectors(tmp_path: Path) -> None:
    done = format_and_mount(resolve("xfs"), tmp_path)
    assert "sectsize = 4096" in done.stdout
    tmp_path.joinpath("512").mkdir()
    done = format_and_mount(resolve("xfs -s size=512"), tmp_path / "512")
    assert "sectsize = 512" in done.stdout


def test_two_formattings_of_one_seed_agree(tmp_path: Path) -> None:
    def superblock(seed: int, name: str) -> list[str]:
        folder = tmp_path / name
        folder.mkdir()
        done = format_and_mount(resolve("ext4"), folder, seed=seed)
        wanted = ("Filesystem UUID", "Directory Hash Seed", "Journal UUID")
        return [line for line in done.stdout.splitlines() if line.startswith(wanted)]

    first = superblock(1, "a")
    assert len(first) >= 2
    assert superblock(1, "b") == first
    assert superblock(2, "c") != first


def test_no_lazy_initialisation(tmp_path: Path) -> None:
    done = format_and_mount(
        resolve("ext4 -E stride=4"), tmp_path, 'dumpe2fs "$disk_main" 2>/dev/null'
    )
    assert "ITABLE_ZEROED" in done.stdout
    groups = [line for line in done.stdout.splitlines() if re.match(r"Group \d", line)]
    zeroed = done.stdout.count("ITABLE_ZEROED")
    assert len(groups) == zeroed
    assert "RAID stride:              4" in done.stdout
