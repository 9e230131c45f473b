"""Names that are not UTF-8 or contain control sequences: each file keeps a distinct name from the
disk to every output."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

Run = Callable[..., Any]

NAMES = [
    *(bytes([0xFF, 0xFE, last]) for last in range(128, 200)),
    b"\\xff",
    b"a\nb",
    b"\x1b[2J",
    "\u202e".encode(),
    "é☃".encode(),
    b"\xe2\x98",
]
PROGRAM = f"[open(name, 'wb').write(b'x' * 9000) for name in {NAMES!r}]"


def unescaped(text: str) -> bytes:
    """Return the bytes of an escaped name: the rule of docs/explaining.md in reverse."""

    def byte(found: "re.Match[bytes]") -> bytes:
        return b"\\" if found[0] == b"\\\\" else bytes.fromhex(found[0][2:].decode())

    return re.sub(rb"\\\\|\\x[0-9a-f]{2}", byte, text.encode())


@pytest.mark.root
@pytest.mark.parametrize(("profile", "size"), [("ext4", "16M"), ("xfs", "320M"), ("btrfs", "128M")])
def test_every_name_comes_back(fscost: Run, tmp_path: Path, profile: str, size: str) -> None:
    fscost(
        "compare",
        "--max-repetitions",
        "1",
        "--on",
        profile,
        "--size",
        size,
        "--out",
        "run",
        "--",
        "/usr/bin/python3",
        "-c",
        PROGRAM,
    )
    groups = json.loads(fscost("explain", "run", "--by", "file", "--top", "500", "--json").stdout)[
        "recordings"
    ][0]["groups"]
    found = {unescaped(group["name"]) for group in groups}
    assert {b"/" + name for name in NAMES} <= found
    fscost("explain", "run", "--parquet", "rows.parquet")
    paths = {
        path
        for path in pq.read_table(tmp_path / "rows.parquet")["path"].to_pylist()
        if path is not None
    }
    assert {b"/" + name for name in NAMES} <= {unescaped(path) for path in paths}
    printed = fscost("explain", "run", "--by", "file", "--top", "500", columns=120).stdout
    assert all(line.isprintable() for line in printed.splitlines())
    for shown in (
        r"/\xff\xfe\x80 ",
        r"/\\xff ",
        r"/a\x0ab ",
        r"/\x1b[2J ",
        r"/\xe2\x80\xae ",
        "/é☃ ",
        r"/\xe2\x98 ",
    ):
        assert shown in printed
