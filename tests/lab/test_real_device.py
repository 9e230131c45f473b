"""A real block device is refused for every possible reason. A loop device stands in for it."""

import ctypes
import errno
import fcntl
import os
import re
import struct
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.loop_devices import own_loop_device, replace_image

from fscost.errors import FscostError, HostError, InputError
from fscost.lab.native.real_device import claim

BLKPG, BLKPG_ADD_PARTITION, BLKPG_DEL_PARTITION = 0x1269, 1, 2  # include/uapi/linux/blkpg.h

pytestmark = pytest.mark.root


def run(*command: str | Path) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


@pytest.fixture
def device(tmp_path: Path) -> Iterator[Path]:
    """Yield an empty disk of 64 MiB."""
    image = tmp_path / "image"
    with image.open("wb") as file:
        file.truncate(64 << 20)
    node = Path(run("losetup", "--find", "--show", "--partscan", image))
    yield node
    run("losetup", "--detach", node)


def refused(device: Path, *, erase: Path | None = None, force: bool = False) -> FscostError:
    """Return the reason for the refusal; the disk stays untouched."""
    before = device.read_bytes()[: 1 << 20] if device.is_block_device() else b""
    with pytest.raises((InputError, HostError)) as caught:
        claim(device, device if erase is None else erase, force)
    assert (device.read_bytes()[: 1 << 20] if device.is_block_device() else b"") == before
    return caught.value


def test_an_empty_confirmed_device_is_claimed(device: Path) -> None:
    found = claim(device, device)
    assert found.path == device
    assert found.size_bytes == 64 << 20
    found.refuse_if_busy()


def test_a_link_to_it_is_the_same_device(device: Path, tmp_path: Path) -> None:
    link = tmp_path / "disk"
    link.symlink_to(device)
    assert claim(link, device).path == device


def test_named_once_is_not_enough(device: Path) -> None:
    with pytest.raises(InputError, match="was not confirmed") as caught:
        claim(device, None)
    assert f"--device {device} --erase-device {device}" in str(caught.value)


def test_another_device_confirmed_is_not_enough(device: Path) -> None:
    assert "was not confirmed" in str(refused(device, erase=Path("/dev/null")))


@pytest.mark.parametrize(
    "make", [["mkfs.ext4", "-q"], ["mkfs.xfs", "-q", "-f", "--unsupported"], ["mkswap"]]
)
def test_a_signature_is_refused_unless_forced(device: Path, make: list[str]) -> None:
    done = subprocess.run([*make, device], capture_output=True, check=False)
    if done.returncode != 0:  # older versions of mkfs.xfs have no --unsupported and need none
        run(*[word for word in make if word != "--unsupported"], device)
    assert re.search("is not empty: it holds (ext4|xfs|swap)", str(refused(device)))
    assert claim(device, device, force=True).path == device


def test_mounted_is_refused_even_if_forced(device: Path, tmp_path: Path) -> None:
    run("mkfs.ext4", "-q", device)
    point = tmp_path / "point"
    point.mkdir()
    # Otherwise ext4 itself would write there: it initializes inode tables once it is mounted.
    run("mount", "--options", "ro", device, point)
    try:
        error = refused(device, force=True)
    finally:
        run("umount", point)
    assert f"is mounted at {point}" in str(error)


def test_in_use_by_somebody_unseen_is_refused_even_if_forced(device: Path) -> None:
    """Mounts, swap and RAID of another namespace are not listed for us. They hold the device
    exclusively, as this test does."""
    holder = os.open(device, os.O_RDONLY | os.O_EXCL)
    try:
        assert "is in use" in str(refused(device, force=True))
    finally:
        os.close(holder)


def blkpg(device: Path, operation: int, start: int = 0, length: int = 0) -> None:
    """Add or remove partition 1. This has the effect of a partition table, even if the kernel was
    built without support for reading one."""
    part = struct.pack("<qqi64s64s4x", start, length, 1, b"", b"")
    data = ctypes.create_string_buffer(part)
    with device.open("rb", buffering=0) as disk:
        fcntl.ioctl(
            disk, BLKPG, struct.pack("@iiiP", operation, 0, len(part), ctypes.addressof(data))
        )


@pytest.fixture
def partitioned(device: Path) -> Iterator[Path]:
    """Yield a disk with a partition of 16 MiB at 1 MiB."""
    blkpg(device, BLKPG_ADD_PARTITION, 1 << 20, 16 << 20)
    partition = Path(f"{device}p1")
    until = time.monotonic() + 120
    while not partition.exists() and time.monotonic() < until:
        time.sleep(0.05)
    yield partition
    until = time.monotonic() + 120
    while True:
        try:
            blkpg(device, BLKPG_DEL_PARTITION)
            break
        except OSError as error:  # an unmount releases its device a moment later
            if error.errno != errno.EBUSY or time.monotonic() > until:
                raise
            time.sleep(0.05)


def test_partitions_are_refused_unless_forced(device: Path, partitioned: Path) -> None:
    assert "has partitions" in str(refused(device))
    assert claim(device, device, force=True).path == device
    assert claim(partitioned, partitioned).size_bytes == 16 << 20


def test_a_mounted_partition_refuses_the_whole_disk(
    device: Path, partitioned: Path, tmp_path: Path
) -> None:
    run("mkfs.ext4", "-q", partitioned)
    point = tmp_path / "point"
    point.mkdir()
    run("mount", partitioned, point)
    try:
        error = refused(device, force=True)
    finally:
        run("umount", point)
    assert f"{partitioned.name} is mounted at {point}" in str(error)


def test_the_disk_of_the_running_system_is_refused() -> None:
    number = Path("/").stat().st_dev
    folder = Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}")
    if not folder.exists():
        pytest.skip("the root file system lies on no block device of its own")
    node = Path("/dev") / folder.resolve().name
    with pytest.raises(InputError, match="holds the running system"):
        claim(node, node, force=True)


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda path: path.write_text(""), "is not a block device"),
        (lambda path: path.mkdir(), "is not a block device"),
        (lambda _: None, "No such file"),
    ],
)
def test_what_is_no_block_device(
    tmp_path: Path, make: Callable[[Path], object], reason: str
) -> None:
    path = tmp_path / "thing"
    make(path)
    with pytest.raises(InputError, match=reason):
        claim(path, path, force=True)


def test_another_disk_under_the_same_name_is_refused(tmp_path: Path) -> None:
    """The disk is unplugged and another one plugged in: name and number are reused, the disk's
    sequence number is not."""
    images = [tmp_path / "first", tmp_path / "second"]
    for image, size in zip(images, (16 << 20, 32 << 20), strict=True):
        with image.open("wb") as file:
            file.truncate(size)
    run("mkfs.ext4", "-q", images[1])
    with own_loop_device(images[0]) as node:
        found = claim(node, node)
        # A disk that is pulled out is gone even while it is open; a loop device would stay.
        found.descriptor.close()
        replace_image(node, images[1])
        before = images[1].read_bytes()
        assert node.stat().st_rdev == os.makedev(*found.number)
        with pytest.raises(HostError, match="is no longer the disk that was confirmed"):
            found.refuse_if_busy()
        assert images[1].read_bytes() == before


def test_who_has_it_open_is_named(device: Path) -> None:
    found = claim(device, device)
    assert found.openers() == []
    with device.open("rb") as file, subprocess.Popen(["sleep", "1000"], stdin=file) as reader:
        try:
            assert found.openers() == [f"sleep ({reader.pid})"]
        finally:
            reader.kill()
