"""One request of each kind to a served disk, over any front end. `work.py DISK_SERVER FRONT_END
FOLDER` prints, as JSON, the kernel's facts and counters of the device, and leaves a recording.

The script needs the standard library only, because loading more takes long in a guest.
"""

import contextlib
import fcntl
import json
import mmap
import os
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

DISK_BYTES = 64 << 20
BLKDISCARD, BLKZEROOUT = 0x1277, 0x127F  # include/uapi/linux/fs.h
RWF_DSYNC = 2
UNPRIVILEGED = {
    "Uid": "65533 65533 65533 65533",
    "CapEff": "0000000000000000",
    "Seccomp": "2",
    "NoNewPrivs": "1",
}
"""What a serving thread holds (proc(5), crates/device/src/confine.rs)."""
KIB = 1 << 10
MIB = 1 << 20


@contextmanager
def served(
    server: str, front_end: str, folder: Path, more: tuple[str, ...] = ()
) -> Iterator[tuple[socket.socket, Path, subprocess.Popen[bytes]]]:
    """Yield a served disk's control channel, block device and server."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    command = [server, "serve", "--recording", str(folder / "recording")]
    command += ["--front-end", front_end, "--control-fd", str(theirs.fileno())]
    command += ["--disk", f"main={DISK_BYTES},logical=512,physical=4096", *more]
    # A server without an agent ends, so a failure does not wait for it.
    with subprocess.Popen(command, pass_fds=[theirs.fileno()]) as process, ours:
        theirs.close()
        ours.settimeout(120)
        text, descriptors, _, _ = socket.recv_fds(ours, 1 << 16, 1)
        nodes = json.loads(text)["ready"].get("nodes")
        if nodes:
            yield ours, Path(nodes[0]), process
        else:
            file = os.open("main", os.O_RDWR, dir_fd=descriptors[0])
            os.close(descriptors[0])
            attach = ["losetup", "--find", "--show", "--direct-io=on", f"/proc/self/fd/{file}"]
            ended = subprocess.run(
                attach, check=True, capture_output=True, text=True, pass_fds=[file]
            )
            os.close(file)
            node = Path(ended.stdout.strip())
            try:
                yield ours, node, process
            finally:
                subprocess.run(["losetup", "--detach", str(node)], check=True)
        ours.send(b'{"finish": {}}')
        finished = json.loads(ours.recv(1 << 16))
        assert "finished" in finished, finished
        assert process.wait(60) == 0


def mark(control: socket.socket, name: str) -> None:
    control.send(json.dumps({"mark": {"name": name, "detail": None}}).encode())
    assert "marked" in json.loads(control.recv(1 << 16))


def assert_unprivileged(process: int) -> None:
    """Assert that no thread of a server is root, has a capability or lacks the filter. Workers of
    its ring run no code of the server, but the ring's entries, each with credentials of its own."""
    for path in Path(f"/proc/{process}/task").glob("*/status"):
        lines = dict(line.split(":", 1) for line in path.read_text().splitlines())
        if lines["Name"].strip().startswith("iou-wrk"):
            continue
        held = {name: " ".join(lines[name].split()) for name in UNPRIVILEGED}
        assert held == UNPRIVILEGED, (lines["Name"], held)


def counters(node: Path) -> list[int]:
    """Return the device's counters (Documentation/block/stat.rst)."""
    return [int(word) for word in Path(f"/sys/class/block/{node.name}/stat").read_text().split()]


def content(byte: bytes, length: int) -> mmap.mmap:
    """Return page-aligned memory, as direct I/O requires."""
    memory = mmap.mmap(-1, length)
    memory.write(byte * length)
    return memory


def work(node: Path) -> None:
    """Send a request of each kind, each to a different place."""
    file = os.open(node, os.O_RDWR | os.O_DIRECT)
    for byte, offset, length in ((b"a", 0, MIB), (b"b", 2 * MIB, 4 * KIB), (b"c", 3 * MIB, 512)):
        assert os.pwrite(file, content(byte, length), offset) == length
    os.fsync(file)
    assert os.pwritev(file, [content(b"d", 8 * KIB)], 4 * MIB, RWF_DSYNC) == 8 * KIB
    for request, offset, length in (
        (BLKDISCARD, 256 * KIB, 64 * KIB),
        (BLKZEROOUT, 512 * KIB, 128 * KIB),
    ):
        fcntl.ioctl(file, request, struct.pack("QQ", offset, length))
    for offset, expected in (
        (0, b"a" * (256 * KIB) + bytes(64 * KIB)),
        (448 * KIB, b"a" * (64 * KIB) + bytes(128 * KIB) + b"a" * (64 * KIB)),
        (3 * MIB, b"c" * 512 + bytes(512)),
        (4 * MIB, b"d" * (8 * KIB)),
    ):
        into = mmap.mmap(-1, len(expected))
        assert os.preadv(file, [into], offset) == len(expected)
        assert into[:] == expected, offset
    os.close(file)


def modelled(server: str, front_end: str, folder: Path) -> None:
    """Run the same work on a disk with a model."""
    folder.mkdir()
    model = folder / "model.toml"
    model.write_text('[latency]\nmodel = "constant"\nread_us = 900\nwrite_us = 2000\n')
    more = ("--model", f"main={model}")
    with served(server, front_end, folder, more) as (_, node, process):
        assert_unprivileged(process.pid)
        work(node)


def left_behind() -> list[str]:
    """Return the nodes of ublk devices."""
    return sorted(str(path) for path in Path("/dev").glob("ublk[bc][0-9]*"))


def killed(server: str, front_end: str, folder: Path) -> list[str]:
    """Kill a server while it serves, and return the nodes that remain."""
    folder.mkdir()
    with (
        contextlib.suppress(BrokenPipeError, ConnectionResetError, ValueError),
        served(server, front_end, folder) as (_, node, process),
    ):
        assert left_behind()
        file = os.open(node, os.O_RDWR | os.O_DIRECT)
        process.kill()
        os.close(file)
    end = time.monotonic() + 60
    while left_behind() and time.monotonic() < end:
        time.sleep(0.1)
    return left_behind()


def main() -> None:
    server, front_end, folder = sys.argv[1:]
    told: dict[str, Any] = {}
    with served(server, front_end, Path(folder)) as (control, node, process):
        assert_unprivileged(process.pid)
        queue = Path(f"/sys/class/block/{node.name}/queue")
        names = ("logical_block_size", "physical_block_size", "fua", "write_cache")
        told["queue"] = {name: (queue / name).read_text().strip() for name in names}
        mark(control, "work")
        begin = counters(node)
        work(node)
        told["kernel"] = [end - start for start, end in zip(begin, counters(node), strict=True)]
        mark(control, "end")
    modelled(server, front_end, Path(folder) / "modelled")
    told["left"] = left_behind()
    if front_end == "ublk":
        told["left"] += killed(server, front_end, Path(folder) / "killed")
    print(json.dumps(told))


if __name__ == "__main__":
    main()
