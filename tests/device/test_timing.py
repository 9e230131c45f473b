"""Disks with a device model: replies wait for the model, and nothing else changes. The only
assertion about time is that no reply comes before its model's completion."""

import itertools
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from tests.device.conftest import LIMIT_S
from tests.device.test_nbd import WRITE, ask, client, negotiate

from fscost import capture
from fscost.lab.cell.binaries import find_binaries

MIB = 1 << 20
Serve = Callable[..., Any]
SLOW_US = 100_000_000


def model(tmp_path: Path, **latencies_us: int) -> Path:
    path = tmp_path / "model.toml"
    fields = (f"{name} = {us}" for name, us in latencies_us.items())
    path.write_text("\n".join(["[latency]", 'model = "constant"', *fields, ""]))
    return path


def qemu_io(server: Any, *commands: str, disk: str = "main") -> list[str | Path]:
    words = [word for command in commands for word in ("-c", command)]
    options = ("-f", "raw", "-d", "unmap", "-t", "writeback")
    return ["qemu-io", *options, *words, server.uri(disk)]


def timed(serve: Serve, tmp_path: Path, disks: int = 1, **latencies_us: int) -> Any:
    names = ("main", "journal")[:disks]
    return serve(
        *(f"{name}={64 * MIB}" for name in names),
        more=("--model", f"main={model(tmp_path, **latencies_us)}"),
    )


def requests(server: Any, tmp_path: Path) -> list[dict[str, Any]]:
    server.finish()
    out = tmp_path / "requests.parquet"
    capture.write_requests(server.recording, out)
    rows: list[dict[str, Any]] = pq.read_table(out).to_pylist()
    return rows


def test_each_request_takes_the_model_s_time(serve: Serve, tmp_path: Path) -> None:
    server = timed(serve, tmp_path, read_us=900, write_us=2000, fua_us=3000, flush_us=5000)
    server.mark("work")
    words = ("write -P 1 0 64k", "write -f -P 2 1M 4k", "flush", "read -P 1 0 64k")
    subprocess.run(qemu_io(server, *words), check=True, timeout=LIMIT_S)
    server.mark("end")
    rows = requests(server, tmp_path)
    expected = {"read": 900, "flush": 5000}
    for row in rows:
        found = expected.get(row["op"], 3000 if row["fua"] else 2000)
        assert row["latency_ns"] == found * 1000
        assert row["late_ns"] is not None
    assert {"read", "write", "flush"} == {row["op"] for row in rows}


def test_no_reply_comes_before_its_model(serve: Serve, tmp_path: Path) -> None:
    server = timed(serve, tmp_path, read_us=700, write_us=700)
    commands = [f"aio_read {k * 4096} 4k" for k in range(300)]
    subprocess.run(qemu_io(server, *commands, "aio_flush"), check=True, timeout=LIMIT_S)
    rows = requests(server, tmp_path)
    taken = [(row["op"], row["latency_ns"]) for row in rows]
    assert taken.count(("read", 700_000)) == 300
    assert set(taken) <= {("read", 700_000), ("flush", 0)}
    assert all(row["late_ns"] >= 0 for row in rows)


def test_requests_wait_side_by_side(serve: Serve, tmp_path: Path) -> None:
    """QEMU has all requests in flight before the model completes the first."""
    server = timed(serve, tmp_path, read_us=SLOW_US)
    commands = [f"aio_read {k * 4096} 4k" for k in range(8)]
    with subprocess.Popen(qemu_io(server, *commands, "aio_flush")) as client:
        wait_for_requests(server, "read", 8)
        rows = requests(server, tmp_path)
        assert client.wait(LIMIT_S) == 0
    # A reply that had its time would have a latency.
    assert [row["latency_ns"] for row in rows] == [None] * 8


def test_a_large_request_is_answered_once_all_its_parts_are_done(
    serve: Serve, tmp_path: Path
) -> None:
    server = timed(serve, tmp_path, write_us=3000)
    with client(server) as stream:
        negotiate(stream, b"main")
        assert ask(stream, WRITE, 0, b"y" * (3 * MIB)) == 0
    rows = requests(server, tmp_path)
    assert [row["length"] for row in rows] == [MIB] * 3
    assert len({row["submit_ns"] for row in rows}) == 1
    assert [row["latency_ns"] for row in rows] == [3_000_000] * 3


def test_a_disk_without_a_model_is_not_delayed(serve: Serve, tmp_path: Path) -> None:
    server = timed(serve, tmp_path, disks=2, read_us=SLOW_US)
    subprocess.run(qemu_io(server, "read 0 4k", disk="journal"), check=True, timeout=LIMIT_S)
    assert {row["latency_ns"] for row in requests(server, tmp_path)} == {None}


def test_replies_that_wait_are_sent_at_the_end(serve: Serve, tmp_path: Path) -> None:
    server = timed(serve, tmp_path, write_us=SLOW_US)
    with subprocess.Popen(qemu_io(server, "write -P 3 0 4k")) as client:
        wait_for_requests(server, "write", 1)
        server.finish()
        assert client.wait(LIMIT_S) == 0


def test_a_killed_server_leaves_no_client_waiting(serve: Serve, tmp_path: Path) -> None:
    server = timed(serve, tmp_path, write_us=SLOW_US)
    with subprocess.Popen(qemu_io(server, "write -P 3 0 4k")) as client:
        wait_for_requests(server, "write", 1)
        server.process.kill()
        assert client.wait(LIMIT_S) != 0


def test_an_agent_that_goes_ends_the_server_and_its_waiting(serve: Serve, tmp_path: Path) -> None:
    server = timed(serve, tmp_path, write_us=SLOW_US)
    with subprocess.Popen(qemu_io(server, "write -P 3 0 4k")) as client:
        wait_for_requests(server, "write", 1)
        server.control.close()
        assert server.process.wait(LIMIT_S) == 3
        assert client.wait(LIMIT_S) == 0
    assert capture.verify(server.recording)["whole"]


def wait_for_requests(server: Any, op: str, count: int) -> None:
    """Wait until the server has some reads or writes."""
    end = time.monotonic() + LIMIT_S
    for number in itertools.count():
        answer = server.ask({"mark": {"name": f"m{number}", "detail": None}})
        if answer["marked"]["totals"]["main"][f"{op}_requests"] >= count:
            return
        assert time.monotonic() < end, f"no {count} {op}s arrived"
        time.sleep(0.01)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--model", "main=/nowhere.toml"), "/nowhere.toml: No such file"),
        (("--model", "other=/nowhere.toml"), 'no disk is called "other"'),
        (("--model", "main"), "NAME=FILE.toml"),
    ],
)
def test_a_model_that_cannot_be_used(tmp_path: Path, arguments: tuple[str, ...], says: str) -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        command = [find_binaries().disk, "serve", "--recording", tmp_path / "r"]
        command += ["--nbd", tmp_path / "s", "--disk", f"main={MIB}"]
        command += ["--control-fd", str(theirs.fileno())]
        ended = subprocess.run(
            [*command, *arguments],
            capture_output=True,
            text=True,
            check=False,
            pass_fds=[theirs.fileno()],
        )
    assert ended.returncode != 0
    assert says in ended.stderr
