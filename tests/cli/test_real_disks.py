"""`--disk NAME=/dev/X`: a real device behind the recorder. A loop device stands in for it."""

import json
import mmap
import os
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.loop_devices import own_loop_device, replace_image

from fscost import profile
from fscost.errors import HostError
from fscost.lab.base import LabOptions
from fscost.lab.cell.binaries import find_binaries
from fscost.lab.cell.real_disks import differences
from fscost.lab.native import NativeLab, claim
from fscost.matrix import Cell
from fscost.workload.model import Step, Workload

MIB = 1 << 20
SECTOR_BYTES, PAGE_BYTES = 512, 4096
Run = Callable[..., Any]
Make = Callable[..., Path]
pytestmark = pytest.mark.root
WORK = (
    "for i in 1 2 3; do head -c 200000 /dev/urandom >$i; sync $i; done; rm 1;"
    " fallocate -l 1M zeroes; fallocate -z -l 512K zeroes; sync -f .; cat 2 >/dev/null"
)


def run(*command: str | Path) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    """Return a function that makes loop devices, each on an image full of 0xff: not zeros, and no
    signature."""
    nodes: list[Path] = []

    def made(name: str = "image", size_bytes: int = 64 * MIB, folder: Path = tmp_path) -> Path:
        image = folder / name
        with image.open("wb") as file:
            for _ in range(size_bytes // MIB):
                file.write(b"\xff" * MIB)
        nodes.append(Path(run("losetup", "--find", "--show", image)))
        # If the underlying file system cannot zero a range, the kernel learns this from a request
        # that fails and is counted.
        run("blkdiscard", "--zeroout", "--length", "4096", nodes[-1])
        return nodes[-1]

    yield made
    for node in nodes:
        subprocess.run(["losetup", "--detach", node], check=False)


def counters(node: Path) -> dict[str, int]:
    """Return the kernel's counters since the device was created."""
    fields = [int(field) for field in (block(node) / "stat").read_text().split()]
    return {
        "write_bytes": fields[6] * SECTOR_BYTES,
        "discard_bytes": fields[13] * SECTOR_BYTES,
        "flush_requests": fields[15],
    }


def node_image(node: Path) -> Path:
    return Path((block(node) / "loop/backing_file").read_text().strip())


def block(node: Path) -> Path:
    return Path("/sys/block") / node.name


def arguments(node: Path, *more: str, work: str = WORK, on: str = "ext4") -> list[str]:
    words = ["compare", "--on", on, "--disk", f"main={node}", "--erase-device", str(node)]
    words += ["--max-repetitions", "1", "--lab", "native", "--out", "run", *more]
    return [*words, "--", "sh", "-c", work]


def cell_of(folder: Path) -> dict[str, Any]:
    found: list[dict[str, Any]] = json.loads((folder / "run/manifest.json").read_text())["cells"]
    return found[0]


def test_the_device_receives_what_is_recorded(fscost: Run, make: Make, tmp_path: Path) -> None:
    node = make()
    before = counters(node)
    fscost(*arguments(node))
    cell = cell_of(tmp_path)
    assert cell["status"] == "done"
    # The kernel's counters are those of the loop device above the recorder, for each interval.
    assert cell["facts"]["conservation"].startswith("the recording's bytes equal the kernel's")
    said = cell["facts"]["recording"]
    recorded, device = said["totals"]["main"], said["devices"]["main"]["kernel"]
    assert device == {
        "read_bytes": recorded["read_bytes"],
        "write_bytes": recorded["write_bytes"] + recorded["zero_bytes"],
        "discard_bytes": recorded["punch_bytes"],
        "flush_requests": recorded["flushes"],
    }
    assert min(device.values()) > 0
    changed = {name: number - before[name] for name, number in counters(node).items()}
    assert changed == {name: device[name] for name in changed}
    assert cell["facts"]["real_disks"]["main"]["device"] == str(node)
    assert cell["facts"]["real_disks"]["main"]["serial"] == str(tmp_path / "image")
    # The image matches the recording byte for byte; discarded ranges read as zeros on a loop
    # device.
    recording = str(Path("run", cell["recording"]))
    fscost("recording", "export", "--as", "image", recording, "copy")
    run("cmp", tmp_path / "copy", tmp_path / "image")


def test_the_device_holds_the_file_system(fscost: Run, make: Make, tmp_path: Path) -> None:
    node = make()
    fscost(*arguments(node, work="mkdir a; echo hello >a/b; head -c 3000000 /dev/zero >c"))
    point = tmp_path / "point"
    point.mkdir()
    run("mount", "--options", "ro", node, point)
    try:
        assert (point / "a/b").read_text() == "hello\n"
        assert (point / "c").read_bytes() == bytes(3_000_000)
    finally:
        run("umount", point)


def test_the_device_s_times_are_shown_beside_explained_bytes(fscost: Run, make: Make) -> None:
    node = make()
    done = json.loads(fscost(*arguments(node, "--json")).stdout)
    total = {row["metric"]: row["median"] for row in done["rows"] if row["phase"] == "total"}
    assert total["write_latency_ns_p50"] > 0
    assert total["flush_latency_ns_p99"] > 0
    assert 0 < total["device_utilisation"] <= 1
    kinds = [total[f"{kind}_write_bytes"] for kind in ("data", "journal", "metadata")]
    assert min(kinds) > 0
    shown = " ".join(fscost("show", "run", columns=200).stdout.split())
    assert "Real disks, all measured phases" in shown
    assert f"main: {node}" in shown
    assert "disk 64.0 MiB; recorded: FUSE-served file + loop device" in shown
    assert f"main is {node}" in shown
    refused = fscost("replay", "run", "--disk", "main=hdd-7200", check=(2,))
    assert "times would count twice" in refused.stderr


def test_a_device_without_discards_gets_none(fscost: Run, make: Make, tmp_path: Path) -> None:
    image = tmp_path / "image"
    image.write_bytes(b"\xff" * 64 * MIB)
    with own_loop_device(image) as node:
        # The setting outlives the use of the device, and cannot be undone.
        (block(node) / "queue/discard_max_bytes").write_text("0")
        fscost(*arguments(node, work=WORK))
    said = cell_of(tmp_path)["facts"]["recording"]
    assert said["totals"]["main"]["punch_bytes"] > 0
    assert not said["devices"]["main"]["accepts_discards"]
    assert said["devices"]["main"]["kernel"]["discard_bytes"] == 0
    assert image.read_bytes().count(b"\xff" * MIB) > 10


@contextmanager
def served(node: Path, tmp_path: Path) -> Iterator[int]:
    """Serve the disk in front of a real device, and yield the file that the agent would attach a
    loop device to."""
    found = claim(node, node)
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    command = [find_binaries().disk, "serve", "--recording", tmp_path / "r"]
    command += ["--control-fd", str(theirs.fileno())]
    command += ["--disk", f"main={found.size_bytes}", "--device"]
    command += [f"main={node},{found.number[0]},{found.number[1]},{found.diskseq}"]
    with ours, theirs, subprocess.Popen(command, pass_fds=[theirs.fileno()]) as server:
        _, descriptors, _, _ = socket.recv_fds(ours, 1 << 16, 1)
        disk = os.open("main", os.O_RDWR | os.O_DIRECT, dir_fd=descriptors[0])
        os.close(descriptors[0])
        yield disk
        os.close(disk)
        ours.send(b'{"finish": {}}')
        assert server.wait(120) == 0


def test_what_was_not_written_reads_as_zeros(make: Make, tmp_path: Path) -> None:
    """Unwritten ranges read as zeros, whatever the device holds there."""
    with served(node := make(), tmp_path) as disk, mmap.mmap(-1, 3 * PAGE_BYTES) as memory:
        memory[:PAGE_BYTES] = b"a" * PAGE_BYTES
        assert os.pwritev(disk, [memoryview(memory)[:PAGE_BYTES]], MIB + PAGE_BYTES) == PAGE_BYTES
        assert os.preadv(disk, [memory], MIB) == 3 * PAGE_BYTES
        assert memory[:] == bytes(PAGE_BYTES) + b"a" * PAGE_BYTES + bytes(PAGE_BYTES)
    held = node_image(node).read_bytes()[MIB : MIB + 3 * PAGE_BYTES]
    assert held == b"\xff" * PAGE_BYTES + b"a" * PAGE_BYTES + b"\xff" * PAGE_BYTES


def test_a_journal_on_a_device_of_its_own(fscost: Run, make: Make, tmp_path: Path) -> None:
    main, journal = make("main"), make("journal", 16 * MIB)
    more = ["--disk", f"journal={journal},size=8M", "--erase-device", str(journal)]
    fscost(*arguments(main, *more, on="ext4 -J device={disk.journal}"))
    devices = cell_of(tmp_path)["facts"]["recording"]["devices"]
    assert devices["journal"]["kernel"]["write_bytes"] > 0
    assert (tmp_path / "journal").read_bytes()[8 * MIB :] == b"\xff" * 8 * MIB


def test_an_error_of_the_device_ends_the_cell(fscost: Run, make: Make, tmp_path: Path) -> None:
    """The image lies on a file system that has less space than the device claims."""
    small = tmp_path / "small"
    small.mkdir()
    run("mount", "-t", "tmpfs", "-o", "size=40M", "tmpfs", small)
    try:
        node = make("image", 32 * MIB, folder=small)
        os.truncate(small / "image", 256 * MIB)
        run("losetup", "--set-capacity", node)
        work = "head -c 60000000 /dev/urandom >file; sync -f ."
        ended = fscost(*arguments(node, work=work), check=(2,))
    finally:
        for image in small.iterdir():
            run("losetup", "--detach", run("losetup", "-n", "-O", "NAME", "-j", image))
        run("umount", small)
    assert f"{node} failed a request (write" in " ".join(ended.stderr.split())


def refused(fscost: Run, node: Path, words: list[str]) -> str:
    """Return the reason for the refusal as one line; nothing on the device has changed."""
    before = counters(node)
    ended = fscost(*words, check=(2,))
    assert counters(node) == before
    return " ".join(ended.stderr.split())


def test_a_device_that_was_not_confirmed(fscost: Run, make: Make) -> None:
    node = make()
    words = [word for word in arguments(node) if word not in ("--erase-device", str(node))]
    assert f"--disk main={node} --erase-device {node}" in refused(fscost, node, words)
    words[1:1] = ["--erase-device", "/dev/null"]
    assert "--erase-device names /dev/null" in refused(fscost, node, words)


def test_a_device_in_a_profile_must_be_confirmed_too(fscost: Run, make: Make) -> None:
    node = make()
    words = ["compare", "--on", f"ext4 --disk main={node}", "--lab", "native", "--", "true"]
    assert "was not confirmed" in refused(fscost, node, words)


def test_a_device_in_use(fscost: Run, make: Make, tmp_path: Path) -> None:
    node, point = make(), tmp_path / "point"
    holder = os.open(node, os.O_RDONLY | os.O_EXCL)
    try:
        assert f"{node} is in use" in refused(fscost, node, arguments(node))
    finally:
        os.close(holder)
    run("mkfs.ext4", "-q", node)
    assert f"{node} is not empty: it holds ext4" in refused(fscost, node, arguments(node))
    point.mkdir()
    run("mount", "--options", "ro", node, point)
    try:
        said = refused(fscost, node, arguments(node, "--force"))
    finally:
        run("umount", point)
    assert f"is mounted at {point}" in said


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (("--disk", "journal={node}"), "disks main and journal are the same device"),
        (("--size", "128M"), "has 67108864 bytes, fewer than 134217728"),
        (("--lab", "vm"), "is for the native lab"),
        (("--erase-device", "/dev/null"), "/dev/null names neither --device"),
    ],
)
def test_what_cannot_be_combined(fscost: Run, make: Make, more: tuple[str, str], says: str) -> None:
    node = make()
    words = arguments(node, on="ext4 -J device={disk.journal}")
    at = words.index("--max-repetitions")
    words[at:at] = [word.format(node=node) for word in more]
    if "--lab" in more:
        words = [word for word in words if word != "native" and word != "--lab"]
        words[at:at] = list(more)
    assert says in refused(fscost, node, words)


@pytest.fixture
def replaced(tmp_path: Path) -> Iterator[Any]:
    """Yield a device that was confirmed and then detached; another device has its name now."""
    first, second = tmp_path / "first", tmp_path / "second"
    for image in (first, second):
        image.write_bytes(b"\xff" * MIB * 64)
    with own_loop_device(first) as node:
        found = claim(node, node)
        found.descriptor.close()
        replace_image(node, second)
        yield found


def test_a_device_that_was_replaced_is_refused_by_the_lab(replaced: Any, tmp_path: Path) -> None:
    chosen = profile.resolve(f"ext4 --disk main={replaced.path},size=16M")
    work = Workload("mine", (Step("work", "true"),), disk_bytes=MIB)
    lab = NativeLab(find_binaries(), real_disks={str(replaced.path): replaced})
    before = counters(replaced.path)
    with pytest.raises(HostError, match="is no longer the disk that was confirmed"):
        lab.run(Cell(chosen, work, 0, 1, 0), LabOptions(tmp_path / "cell", 16 * MIB), print)
    assert counters(replaced.path) == before


def test_a_device_that_was_replaced_is_refused_by_the_server(replaced: Any, tmp_path: Path) -> None:
    before = counters(replaced.path)
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        command = [find_binaries().disk, "serve", "--recording", tmp_path / "r"]
        command += ["--control-fd", str(theirs.fileno())]
        command += ["--disk", f"main={16 * MIB}", "--device"]
        command += [
            f"main={replaced.path},{replaced.number[0]},{replaced.number[1]},{replaced.diskseq}"
        ]
        ended = subprocess.run(
            command,
            capture_output=True,
            text=True,
            check=False,
            pass_fds=[theirs.fileno()],
            timeout=120,
        )
    assert ended.returncode != 0
    assert "is not the disk that was confirmed" in ended.stderr
    assert counters(replaced.path) == before


def test_bytes_that_did_not_reach_the_device_are_told() -> None:
    totals = {"write_bytes": 5, "zero_bytes": 1, "discard_bytes": 0, "punch_bytes": 4}
    kernel = {"write_bytes": 6, "discard_bytes": 4, "read_bytes": 9, "flush_requests": 0}
    account = {"device": "/dev/x", "accepts_discards": True, "kernel": kernel}
    said = {"totals": {"main": totals | {"read_bytes": 8}}, "devices": {"main": account}}
    assert differences(said) == []
    for name, number in (
        ("write_bytes", 8),
        ("write_bytes", 5),
        ("discard_bytes", 0),
        ("read_bytes", 7),
    ):
        account["kernel"] = kernel | {name: number}
        [found] = differences(said)
        assert "/dev/x" in found
        assert str(number) in found
    account |= {"accepts_discards": False, "kernel": kernel | {"discard_bytes": 0}}
    assert differences(said) == []
    assert differences({"totals": {}}) == []
