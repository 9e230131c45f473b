"""Members of md arrays in guests: bytes of rows match the kernel's counter of that member, their
offsets match md's layout, and their owners match the content."""

import struct
from pathlib import Path

import pytest
from tests.oracles.bounds import Bound
from tests.oracles.tagged_run import MIB, SHELL, Ran, run, words
from tests.variants import some

from fscost import capture
from fscost.analyze import explain

pytestmark = [pytest.mark.guest, pytest.mark.slow]

CHUNK = 64 << 10
ACTIONS = 40
MEMBERS = {"0": 2, "1": 2, "4": 3, "5": 3, "6": 4, "10": 4}
FLAGS = {"1": "", "5": " -c 64 -b internal"}
"""Flags of mdadm by level; other levels only get a chunk size."""
OF_MEMBERS = Bound(
    0.02, 0.25, 0.25, 0.5, "as ext: a small file system uses blocks and numbers again soon"
)
DATA_OFFSET = struct.Struct("<Q")
SUPERBLOCK_AT, DATA_OFFSET_AT = 4096, 128
"""Offset of the superblock (version 1.2), and in it the offset of the number of sectors before the
data (linux/raid/md_p.h, struct mdp_superblock_1)."""


def parity_members(level: str, stripe: int) -> set[int]:
    """Return the members that hold parity in md's default layouts: the last disk, and
    left-symmetric (drivers/md/raid5.c, raid5_compute_sector)."""
    members = MEMBERS[level]
    if level == "4":
        return {members - 1}
    if level not in ("5", "6"):
        return set()
    first = members - 1 - stripe % members
    return {first} if level == "5" else {first, (first + 1) % members}


def data_offset(ran: Ran) -> int:
    image = ran.folder / "m0"
    capture.export_image(ran.recording, "m0", image)
    with image.open("rb") as file:
        file.seek(SUPERBLOCK_AT + DATA_OFFSET_AT)
        return int(DATA_OFFSET.unpack(file.read(DATA_OFFSET.size))[0]) * 512


@pytest.mark.parametrize(
    "level",
    some(MEMBERS, 1),
    ids="raid{}".format,
)
def test_every_row_of_a_member_is_what_the_array_wrote_there(
    level: str, tmp_path: Path, seed: int
) -> None:
    spelled = f"ext4 on md -l {level} -n {MEMBERS[level]}{FLAGS.get(level, ' -c 64')}"
    ran = run(
        spelled,
        tmp_path / "run",
        [f"{SHELL} {words('ext4', str(seed), ACTIONS)}"] * 2,
        size=128 * MIB,
    )
    whole = explain(ran.recording)
    rows = whole.table.to_pylist()

    phases = {phase for phase, _ in ran.written} - {"mkfs", "total"}
    assert {"mount", "one", "two"} <= phases
    for phase in phases:
        for member in range(MEMBERS[level]):
            explained = sum(
                row["length"]
                for row in rows
                if (row["phase"], row["disk"]) == (phase, f"m{member}")
            )
            assert explained == ran.written[phase, f"m{member}"], (phase, member)

    begin = data_offset(ran)
    counted = {"parity": 0, "md_superblock": 0, "md_bitmap": 0}
    for row in rows:
        if row["phase"] not in phases:
            continue
        counted[row["structure"]] = counted.get(row["structure"], 0) + row["length"]
        if row["offset"] < begin:
            assert row["structure"] in ("md_superblock", "md_bitmap"), row
            continue
        for at in range(row["offset"] - begin, row["offset"] - begin + row["length"], 4096):
            is_parity = int(row["disk"][1:]) in parity_members(level, at // CHUNK)
            assert (row["structure"] == "parity") == is_parity, (at, row)
    # raid0 has no state that changes, so md writes no superblock while it runs.
    assert (counted["md_superblock"] > 0) == (level != "0")
    assert (counted["md_bitmap"] > 0) == ("internal" in spelled)
    assert (counted["parity"] > 0) == (level in ("4", "5", "6"))

    ran.compared(whole.table).check(OF_MEMBERS)
