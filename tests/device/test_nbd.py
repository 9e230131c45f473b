"""The NBD front end with independent clients: qemu-io, nbdcopy, nbdinfo, fio."""

import json
import random
import socket
import struct
import subprocess
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from tests.device.conftest import LIMIT_S

from fscost import capture
from fscost.lab.cell.binaries import find_binaries
from fscost.lab.vm import nbd

MIB = 1 << 20
Serve = Callable[..., Any]


def run(*command: str | Path) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def qemu_io(server: Any, *commands: str, disk: str = "main") -> str:
    words = [word for command in commands for word in ("-c", command)]
    # Without cache=writeback, qemu-io would add a flush to each write.
    return run("qemu-io", "-f", "raw", "-d", "unmap", "-t", "writeback", *words, server.uri(disk))


def totals(server: Any, disk: str = "main") -> dict[str, int]:
    found: dict[str, int] = server.finish()["totals"][disk]
    return found


def requests(recording: Path, tmp_path: Path) -> list[dict[str, Any]]:
    out = tmp_path / "requests.parquet"
    capture.write_requests(recording, out)
    rows: list[dict[str, Any]] = pq.read_table(out).to_pylist()
    return rows


def test_qemu_s_operations_arrive_as_what_they_are(serve: Serve, tmp_path: Path) -> None:
    server = serve()
    server.mark("work")
    output = qemu_io(
        server,
        "write -P 0x11 0 1M",
        "write -f -P 0x22 1M 64k",
        "write -z 512k 128k",
        "discard 2M 1M",
        "flush",
        "read -P 0x11 0 512k",
        "read -P 0 512k 128k",
        "read -P 0x11 640k 384k",
        "read -P 0x22 1M 64k",
        "read -P 0 32M 4k",
    )
    assert "failed" not in output
    server.mark("end")
    found = totals(server)
    assert found["write_bytes"] == MIB + (64 << 10)
    assert found["zero_bytes"] == 128 << 10
    assert found["discard_bytes"] == MIB
    assert found["flushes"] >= 1
    rows = [row for row in requests(server.recording, tmp_path) if row["op"] == "write"]
    assert [row["fua"] for row in rows if row["offset"] == MIB] == [True]
    assert [row["fua"] for row in rows if row["offset"] < MIB] == [False] * (len(rows) - 1)
    image = tmp_path / "image"
    capture.export_image(server.recording, "main", image, None)
    content = image.read_bytes()
    expected = (
        b"\x11" * (512 << 10) + bytes(128 << 10) + b"\x11" * (384 << 10) + b"\x22" * (64 << 10)
    )
    assert content[: len(expected)] == expected
    assert not any(content[len(expected) :])


@pytest.mark.parametrize("connections", [1, 4])
def test_nbdcopy_gives_back_what_it_brought(serve: Serve, tmp_path: Path, connections: int) -> None:
    """Content with holes is copied both ways, over several connections at once."""
    server = serve()
    source, back = tmp_path / "source", tmp_path / "back"
    content = bytearray(64 * MIB)
    for _ in range(40):
        offset = random.randrange(0, 63 * MIB, 4096)
        content[offset : offset + 65536] = random.randbytes(65536)
    source.write_bytes(content)
    run("nbdcopy", f"--connections={connections}", "--flush", source, server.uri())
    run("nbdcopy", f"--connections={connections}", server.uri(), back)
    assert back.read_bytes() == content
    found = totals(server)
    assert found["write_bytes"] + found["zero_bytes"] + found["discard_bytes"] == 64 * MIB
    assert found["read_bytes"] == 64 * MIB
    assert found["flushes"] >= 1
    assert capture.verify(server.recording)["whole"]
    image = tmp_path / "image"
    capture.export_image(server.recording, "main", image, None)
    assert image.read_bytes() == content


def test_a_state_is_written_to_a_disk(serve: Serve, tmp_path: Path) -> None:
    """What a guest recovers from: its data without its holes, made durable."""
    name = f"fscost-test-{random.randbytes(8).hex()}"
    server = serve(address=f"@{name}")
    content = bytearray(64 * MIB)
    content[4096:8192] = random.randbytes(4096)
    content[5 * MIB : 8 * MIB + 512] = random.randbytes(3 * MIB + 512)
    state = tmp_path / "state"
    with state.open("wb") as file:
        for begin, end in ((4096, 8192), (5 * MIB, 8 * MIB + 512)):
            file.seek(begin)
            file.write(content[begin:end])
        file.truncate(64 * MIB)
    with state.open("rb") as file:
        nbd.fill(name, "main", file.fileno())
        with pytest.raises(OSError, match="has ended"):
            nbd.fill(name, "other", file.fileno())
    found = totals(server)
    assert found["write_bytes"] < 4 * MIB
    assert found["flushes"] == 1
    image = tmp_path / "image"
    capture.export_image(server.recording, "main", image, None)
    assert image.read_bytes() == content


def test_fio_verifies_what_it_wrote(serve: Serve) -> None:
    server = serve()
    report = run(
        "fio",
        "--name=x",
        "--ioengine=nbd",
        f"--uri={server.uri()}",
        "--rw=randwrite",
        "--bs=4k",
        "--size=16m",
        "--iodepth=16",
        "--fsync=32",
        "--verify=crc32c",
        "--verify_state_save=0",
        "--output-format=json",
    )
    job = json.loads(report[report.index("{") :])["jobs"][0]
    assert job["error"] == 0
    found = totals(server)
    assert found["write_bytes"] == job["write"]["io_bytes"] == 16 * MIB
    assert found["read_bytes"] == job["read"]["io_bytes"] == 16 * MIB
    # Versions of fio differ in how often they flush.
    assert found["flushes"] == job["sync"]["total_ios"] > 0


def test_every_disk_is_an_export(serve: Serve) -> None:
    server = serve(f"main={8 * MIB}", f"journal={4 * MIB},logical=4096")
    exports = json.loads(run("nbdinfo", "--json", "--list", server.uri("")))["exports"]
    assert {each["export-name"]: each["export-size"] for each in exports} == {
        "main": 8 * MIB,
        "journal": 4 * MIB,
    }
    assert [each["block_size_minimum"] for each in exports] == [512, 4096]
    assert all(
        each["can_multi_conn"] and each["can_fua"] and each["can_flush"] and each["can_trim"]
        for each in exports
    )
    qemu_io(server, "write -P 7 0 8k", disk="journal")
    qemu_io(server, "write -P 9 0 4k")
    found = server.finish()["totals"]
    assert (found["journal"]["write_bytes"], found["main"]["write_bytes"]) == (8192, 4096)


def test_what_does_not_fit_is_refused_and_not_recorded(serve: Serve) -> None:
    server = serve()
    with client(server) as stream:
        negotiate(stream, b"main")
        assert ask(stream, WRITE, 64 * MIB - 512, b"x" * 1024) == 28  # ENOSPC
        assert ask(stream, WRITE, 2**64 - 512, b"x" * 512) == 28
        assert ask(stream, WRITE, 100, b"x" * 512) == 22  # EINVAL: not aligned to a sector
        assert ask(stream, 99, 0, b"") == 22
        assert ask(stream, WRITE, 64 * MIB - 512, b"x" * 512) == 0
        assert ask(stream, WRITE, 0, b"y" * (3 * MIB)) == 0
    found = totals(server)
    assert found["write_bytes"] == 512 + 3 * MIB


def test_clients_that_break_the_protocol_hurt_nobody_else(serve: Serve) -> None:
    server = serve()
    with client(server) as good:
        negotiate(good, b"main")
        for _ in range(50):
            with client(server) as bad:
                bad.settimeout(LIMIT_S)
                bad.recv(18)
                bad.sendall(
                    random.choice([struct.pack(">I", 3), b""])
                    + random.randbytes(random.randrange(200))
                )
        with client(server) as bad:
            negotiate(bad, b"main")
            bad.sendall(struct.pack(">IHHQQI", 0x25609513, 0, WRITE, 1, 0, 2**32 - 1))
            assert bad.recv(1) == b""  # the server hangs up rather than allocate 4 GiB
        assert ask(good, WRITE, 4096, b"z" * 4096) == 0
    assert totals(server)["write_bytes"] == 4096


def test_an_unknown_export_is_refused(serve: Serve) -> None:
    server = serve()
    done = subprocess.run(
        ["nbdinfo", server.uri("other")],
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert done.returncode != 0
    assert totals(server)["write_bytes"] == 0


def test_an_abstract_socket_leaves_no_file(serve: Serve, tmp_path: Path) -> None:
    name = f"fscost-test-{random.randrange(1 << 62):x}"
    server = serve(address=f"@{name}")
    with socket.socket(socket.AF_UNIX) as stream:
        stream.connect(f"\0{name}")
        negotiate(stream, b"")
        assert ask(stream, WRITE, 0, b"a" * 512) == 0
    assert totals(server)["write_bytes"] == 512
    assert [path.name for path in tmp_path.iterdir()] == ["0.fscost"]


def test_after_the_end_requests_fail(serve: Serve) -> None:
    server = serve()
    with client(server) as stream:
        negotiate(stream, b"main")
        server.finish()
        with pytest.raises((OSError, EOFError)):
            ask(stream, WRITE, 0, b"a" * 512)


def test_many_connections_make_one_order(serve: Serve, tmp_path: Path) -> None:
    """Each connection writes its own sectors again and again: each sector must end with its last
    write."""
    server = serve()

    def write(number: int) -> None:
        with client(server) as stream:
            negotiate(stream, b"main")
            for turn in range(100):
                assert ask(stream, WRITE, number * 512, bytes([number, turn]) * 256) == 0

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, range(8)))
    assert totals(server)["write_bytes"] == 8 * 100 * 512
    rows = requests(server.recording, tmp_path)
    times = [row["complete_ns"] for row in rows]
    assert times == sorted(times)
    image = tmp_path / "image"
    capture.export_image(server.recording, "main", image, None)
    assert image.read_bytes()[: 8 * 512] == b"".join(
        bytes([number, 99]) * 256 for number in range(8)
    )


def test_a_bad_address_is_said() -> None:
    done = subprocess.run(
        [
            find_binaries().disk,
            "serve",
            "--recording",
            "/nowhere/x",
            "--disk",
            "main=1048576",
            "--nbd",
            "@",
            "--control-fd",
            "3",
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "abstract socket is empty" in done.stderr


WRITE = 1


def client(server: Any) -> socket.socket:
    stream = socket.socket(socket.AF_UNIX)
    stream.settimeout(LIMIT_S)
    stream.connect(str(server.socket_path))
    return stream


def read(stream: socket.socket, length: int) -> bytes:
    found = b""
    while len(found) < length:
        part = stream.recv(length - len(found))
        if not part:
            raise EOFError
        found += part
    return found


def negotiate(stream: socket.socket, name: bytes) -> None:
    """Negotiate by EXPORT_NAME, the oldest way, which qemu and libnbd do not use."""
    magic, option, _ = struct.unpack(">8s8sH", read(stream, 18))
    assert (magic, option) == (b"NBDMAGIC", b"IHAVEOPT")
    stream.sendall(struct.pack(">I8sII", 3, b"IHAVEOPT", 1, len(name)) + name)
    size, flags = struct.unpack(">QH", read(stream, 10))
    assert size == 64 * MIB
    assert flags & 1


def ask(stream: socket.socket, command: int, offset: int, content: bytes) -> int:
    stream.sendall(
        struct.pack(">IHHQQI", 0x25609513, 0, command, 7, offset, len(content)) + content
    )
    magic, error, cookie = struct.unpack(">IIQ", read(stream, 16))
    assert (magic, cookie) == (0x67446698, 7)
    return int(error)


def test_a_server_gives_up_what_it_does_not_need(serve: Serve) -> None:
    """Every thread of the server drops what it does not need, including threads that began earlier
    (crates/device/src/confine.rs)."""
    server = serve()
    threads = list(Path(f"/proc/{server.process.pid}/task").glob("*/status"))
    assert len(threads) > 1
    for status in threads:
        held = {
            name: words.split()
            for name, words in (line.split(":", 1) for line in status.read_text().splitlines())
        }
        assert (held["Seccomp"], held["NoNewPrivs"]) == (["2"], ["1"])
        assert int(held["CapEff"][0], 16) == 0
        assert "0" not in held["Uid"] + held["Gid"] + held["Groups"]


def test_a_mark_is_refused_while_a_request_is_not_counted_yet(serve: Serve, tmp_path: Path) -> None:
    """The agent sends the kernel's counters with a mark. A request that comes after they were read
    would count towards the interval before the mark here, and the one after it in the kernel."""
    server = serve()

    def received(found: dict[str, int]) -> dict[str, dict[str, int]]:
        changed = sum(found[f"{kind}_bytes"] for kind in ("write", "zero", "punch", "discard"))
        return {"main": {"read_bytes": found["read_bytes"], "changed_bytes": changed}}

    def ask(name: str, counted: dict[str, dict[str, int]]) -> dict[str, Any]:
        mark = {"name": name, "detail": None}
        answer: dict[str, Any] = server.ask({"mark_if": {"mark": mark, "received": counted}})
        return answer

    first = server.ask({"mark": {"name": "a", "detail": None}})["marked"]["totals"]["main"]
    qemu_io(server, "read 0 4k")
    assert ask("b", received(first)) == {"early": {}}
    second = server.ask({"mark": {"name": "b", "detail": None}})["marked"]["totals"]["main"]
    assert second["read_bytes"] > first["read_bytes"]
    assert "marked" in ask("c", received(second))
    qemu_io(server, "write -P 1 0 4k")
    assert ask("d", received(second)) == {"early": {}}
    server.finish()
    intervals = capture.write_requests(server.recording, tmp_path / "requests.parquet")[1]
    assert [each.name for each in intervals] == ["before", "a", "b", "c"]
