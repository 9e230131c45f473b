"""Padding of xfs's log, compared with the lengths in its records."""

import struct
from collections.abc import Collection
from pathlib import Path

import pytest
from tests.analysis.ext.test_ext import MIB, record
from tests.images import export_image

from fscost import capture
from fscost.analyze import explain
from fscost.workload.model import Step, Workload

pytestmark = pytest.mark.root

SECTOR = 512
MAGIC = 0xFEEDBABE
WORK = """
import os
file = os.open("file", os.O_RDWR | os.O_CREAT | os.O_APPEND)
for _ in range(20):
    os.write(file, b"x" * 200)
    os.fsync(file)
"""


def padding_of_records(log: bytes, written: Collection[int]) -> int:
    """Return the unused bytes at the end of the records that begin at written places. The other
    headers are those of records that the kernel clears when it mounts.

    The first word of each sector of a record is the cycle; the header keeps the words."""
    found = 0
    for at in written:
        if struct.unpack_from(">I", log, at)[0] != MAGIC:
            continue
        [length] = struct.unpack_from(">I", log, at + 12)
        [operations] = struct.unpack_from(">I", log, at + 40)
        [size] = struct.unpack_from(">I", log, at + 320)
        headers = max(1, size // (32 << 10))
        words = [log[at + 44 : at + 44 + 256]]
        starts = range(at + SECTOR + 4, at + headers * SECTOR, SECTOR)
        words.extend(log[start : start + 256] for start in starts)
        kept = b"".join(words)
        begin = at + headers * SECTOR
        content = bytearray(log[begin : begin + length])
        for sector in range(len(content) // SECTOR):
            content[sector * SECTOR : sector * SECTOR + 4] = kept[sector * 4 : sector * 4 + 4]
        used = 0
        for _ in range(operations):
            used += 12 + struct.unpack_from(">I", content, used + 4)[0]
        found += length - used
    return found


@pytest.mark.parametrize("spelled", ["xfs", "xfs -l su=32k", "xfs -l su=256k"])
def test_padding_is_what_no_operation_of_a_record_takes(spelled: str, tmp_path: Path) -> None:
    (tmp_path / "input").mkdir()
    (tmp_path / "input" / "work.py").write_text(WORK)
    work = Workload(
        "mine", (Step("work", "python3 {input}/work.py"),), disk_bytes=MIB, input=tmp_path / "input"
    )
    recording = record(spelled, work, tmp_path / "cell", 320)
    rows = explain(recording).table.to_pylist()
    log = [row for row in rows if row["structure"] == "log" and row["phase"] != "mkfs"]
    image = tmp_path / "image"
    export_image(capture._open(recording), 0, image)
    with image.open("rb") as file:
        superblock = file.read(256)
        [block_bytes, start, blocks] = (
            struct.unpack_from(form, superblock, at)[0]
            for form, at in ((">I", 4), (">Q", 48), (">I", 96))
        )
        group_blocks, group_log = struct.unpack_from(">I", superblock, 84)[0], superblock[124]
        place = (start >> group_log) * group_blocks + (start & ((1 << group_log) - 1))
        file.seek(place * block_bytes)
        content = file.read(blocks * block_bytes)
    first = place * block_bytes
    expected = padding_of_records(content, {row["offset"] - first for row in log})
    padding = sum(row["length"] for row in log if row["cause"] == "padding")
    assert padding == expected > 20 * 200
    if "256k" in spelled:
        # At the mount, the kernel clears 2 MiB.
        assert padding > 0.9 * sum(row["length"] for row in log if row["phase"] == "work")
