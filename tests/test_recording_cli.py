"""`fscost recording` on a recording made by importing a dm-log-writes log: no root needed."""

import json
import struct
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

SECTOR = 512
FLUSH, DISCARD, MARK = 1, 4, 8


def fscost(*arguments: str) -> subprocess.CompletedProcess[str]:
    program = Path(sys.executable).with_name("fscost")
    return subprocess.run(
        [program, "recording", *arguments], capture_output=True, text=True, check=False
    )


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    """A recording with two writes of one sector at 1 MiB, a mark `middle` between them, and a flush
    and a discard at the end."""
    entries = [
        (2048, 1, 0, b"\x11" * SECTOR, b""),
        (0, 0, MARK, b"", b"middle"),
        (2048, 1, 0, b"\x22" * SECTOR, b""),
        (0, 0, FLUSH, b"", b""),
        (4096, 8, DISCARD, b"", b""),
    ]
    log = struct.pack("<QQQI", 0x6A736677736872, 1, len(entries), SECTOR).ljust(SECTOR, b"\0")
    for sector, count, flags, data, text in entries:
        log += (struct.pack("<QQQQ", sector, count, flags, len(text)) + text).ljust(
            SECTOR, b"\0"
        ) + data
    (tmp_path / "log").write_bytes(log)
    made = fscost("import", str(tmp_path / "log"), str(tmp_path / "r"))
    assert (made.returncode, made.stderr) == (0, "")
    return tmp_path / "r"


def test_info_says_what_it_holds(recording: Path) -> None:
    facts = json.loads(fscost("info", "--json", str(recording)).stdout)
    assert facts["end"] == "finished"
    middle = facts["intervals"][1]
    assert middle["name"] == "middle"
    assert (
        middle["disks"]["main"] | {"write_bytes": 512, "flushes": 1, "discard_bytes": 4096}
        == middle["disks"]["main"]
    )
    assert "middle" in fscost("info", str(recording)).stdout


def test_images_at_two_instants(recording: Path, tmp_path: Path) -> None:
    for at, expected in [(["--at", "middle"], 0x11), ([], 0x22), (["--at", "0"], 0x11)]:
        image = tmp_path / "image"
        assert fscost("export", "--as", "image", *at, str(recording), str(image)).returncode == 0
        content = image.read_bytes()
        assert content[1 << 20 : (1 << 20) + SECTOR] == bytes([expected]) * SECTOR
        assert not any(content[: 1 << 20])
        image.unlink()


def test_parquet_has_every_request(recording: Path, tmp_path: Path) -> None:
    assert fscost("export", "--as", "parquet", str(recording), str(tmp_path / "t")).returncode == 0
    assert pq.read_table(tmp_path / "t").column("op").to_pylist() == [
        "write",
        "write",
        "flush",
        "discard",
    ]


def test_dm_log_writes_comes_back_as_it_was(recording: Path, tmp_path: Path) -> None:
    assert (
        fscost(
            "export", "--as", "dm-log-writes", str(recording), str(tmp_path / "again")
        ).returncode
        == 0
    )
    assert (tmp_path / "again").read_bytes() == (tmp_path / "log").read_bytes()


def test_a_cut_recording_is_told(recording: Path) -> None:
    recording.write_bytes(recording.read_bytes()[:-70])
    told = fscost("verify", str(recording))
    assert told.returncode == 1
    assert "truncated at byte" in told.stdout
    assert fscost("info", str(recording)).returncode == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["info", "/etc/passwd"], "not a recording"),
        (["info", "/nonexistent"], "/nonexistent"),
        (["info", "/"], "regular file"),
        (
            ["export", "--as", "image", "--disk", "journal", "{r}", "{t}/x"],
            "name one of its disks: main",
        ),
        (["export", "--as", "image", "--at", "never", "{r}", "{t}/x"], "middle"),
        (["export", "--as", "image", "{r}", "{r}"], "exists"),
        (["export", "--as", "parquet", "--at", "middle", "{r}", "{t}/x"], "--at requires"),
        (["import", "{r}", "{t}/x"], "dm-log-writes"),
    ],
)
def test_bad_input_is_one_error_and_leaves_nothing(
    arguments: list[str], words: str, recording: Path, tmp_path: Path
) -> None:
    told = fscost(*(a.format(r=recording, t=tmp_path) for a in arguments))
    assert told.returncode == 2
    assert words in told.stderr
    assert "Traceback" not in told.stderr
    assert not (tmp_path / "x").exists()
