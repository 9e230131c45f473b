"""Mounts by system call, and which options need mount(8)."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from fscost.crash import mounting
from fscost.crash.disks import attached


@pytest.mark.parametrize(
    ("options", "flags", "data"),
    [
        ("", 0, ""),
        ("noatime,data=writeback,nodelalloc", 1 << 10, "data=writeback,nodelalloc"),
        ("lazytime,commit=300", 1 << 25, "commit=300"),
        ("ro,noload", 1, "noload"),
        ("ro,rw,nouuid", 0, "nouuid"),
        ("noatime,atime,norelatime", 0, ""),
        ("sync,dirsync,strictatime", 16 | 128 | 1 << 24, ""),
    ],
)
def test_options_are_flags_or_data(options: str, flags: int, data: str) -> None:
    assert mounting.parsed(options) == (flags, data)


@pytest.mark.parametrize(
    "options",
    ["noatime,loop", "x-systemd.automount", "X-mount.mkdir", "nofail", 'context="a,b"', "defaults"],
)
def test_some_options_need_mount(options: str) -> None:
    assert mounting.parsed(options) is None
    assert mounting.mount("/nowhere", "/nowhere", "ext4", options) is None


@pytest.fixture
def device(tmp_path: Path) -> Iterator[Path]:
    image = tmp_path / "image"
    with image.open("wb") as file:
        file.truncate(64 << 20)
    subprocess.run(["mke2fs", "-q", "-t", "ext4", image], check=True)
    with attached(image, 512) as found:
        yield found


def options_at(folder: Path) -> set[str]:
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        words = line.split()
        if words[4] == str(folder):
            return {*words[5].split(","), *words[-1].split(",")}
    return set()


@pytest.mark.root
@pytest.mark.parametrize("options", ["", "noatime,commit=300,nobarrier", "lazytime", "ro,noload"])
def test_a_mount_has_the_options_that_mount_gives_it(
    device: Path, tmp_path: Path, options: str
) -> None:
    folder = tmp_path / "root"
    folder.mkdir()
    words = ["mount", "-i", "-t", "ext4", *(["-o", options] if options else [])]
    subprocess.run([*words, device, folder], check=True)
    asked = options_at(folder)
    assert mounting.unmount(str(folder)) == ""
    assert mounting.mount(str(device), str(folder), "ext4", options) == ""
    try:
        assert options_at(folder) == asked
    finally:
        assert mounting.unmount(str(folder)) == ""
    assert not os.path.ismount(folder)


@pytest.mark.root
def test_a_failed_mount_says_why(device: Path, tmp_path: Path) -> None:
    folder = tmp_path / "root"
    folder.mkdir()
    assert mounting.mount(str(device), str(folder), "ext4", "nosuch") == "Invalid argument"
    assert mounting.mount(str(device), str(folder / "x"), "ext4", "") == "No such file or directory"
    assert mounting.unmount(str(folder)) == "Invalid argument"
    device.write_bytes(bytes(64 << 10))
    assert mounting.mount(str(device), str(folder), "ext4", "") != ""


@pytest.mark.root
def test_btrfs_forgets_its_disks(tmp_path: Path) -> None:
    images = [tmp_path / "first", tmp_path / "second"]
    for image in images:
        with image.open("wb") as file:
            file.truncate(128 << 20)
    with attached(images[0], 512) as first, attached(images[1], 512) as second:
        subprocess.run(["mkfs.btrfs", "-q", "-f", "-d", "raid1", first, second], check=True)
        subprocess.run(["btrfs", "device", "scan", first, second], check=True)
        # It ends with 1 if the kernel does not know all disks (btrfs-device(8)).
        ready = ["btrfs", "device", "ready", first]
        assert subprocess.run(ready, check=False).returncode == 0
        mounting.forget()
        assert subprocess.run(ready, check=False).returncode == 1
