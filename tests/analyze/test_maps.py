"""Maps over place and time, compared with a count byte by byte."""

from collections import Counter

import numpy as np
import pytest

from fscost import capture
from fscost.analyze.explain import Mark
from fscost.analyze.maps import DATA, INODES, MIXED, OTHER, area, maps
from fscost.analyze.maps import JOURNAL as JOURNAL_AREA

from .made import JOURNAL, S, explanation, row

STRUCTURES = ("file_data", "log", "inode_table", "block_bitmap", "superblock", "unknown")
MARKS = (Mark(0, "work"),)


def drawn(seed: int, disks: int = 1, count: int = 400) -> list[dict[str, object]]:
    """Return random extents of 512 bytes to 64 KiB, which overlap often."""
    random = np.random.default_rng(seed)
    return [
        row(
            STRUCTURES[random.integers(len(STRUCTURES))],
            time_ns=int(random.integers(1, 100 * S)),
            disk=f"disk{random.integers(disks)}",
            offset=int(random.integers(256)) * 4096,
            length=512 * int(random.integers(1, 129)),
            cause=str(
                random.choice(
                    [
                        "data",
                        "directory_entries",
                        "directory_entries+log",
                        "directory_entries+times",
                    ]
                )
            ),
        )
        for _ in range(count)
    ]


@pytest.mark.parametrize("batches", [1, 7])
@pytest.mark.parametrize("disks", [1, 2])
def test_no_byte_is_lost_or_counted_twice(seed: int, batches: int, disks: int) -> None:
    rows = drawn(seed, disks)
    found = maps(explanation(rows, marks=MARKS, batches=batches), ["work"])
    assert found is not None
    whole = sum(each["length"] for each in rows)
    assert sum(found.timeline["write_bytes"].to_pylist()) == whole
    assert sum(found.blocks["write_bytes"].to_pylist()) == whole


def test_writes_per_place_are_those_of_each_byte(seed: int) -> None:
    rows = drawn(seed)
    found = maps(explanation(rows, marks=MARKS), ["work"])
    assert found is not None
    counts = np.zeros(2 << 20, int)
    for each in rows:
        counts[each["offset"] : each["offset"] + each["length"]] += 1
    expected = Counter(1 << int(number - 1).bit_length() for number in counts[counts > 0])
    table = found.writes_per_place
    assert dict(zip(*(column.to_pylist() for column in table.columns), strict=True)) == expected
    assert max(found.rewrites["most_writes"].to_pylist()) == counts.max()
    hottest = max(found.rewrites.to_pylist(), key=lambda cell: cell["most_writes"])
    cell_bytes = max(4096, -(-int((counts > 0).sum()) // (64 * 24)))
    begin = hottest["offset_bytes"]
    # The cell covers this many written bytes, and the gaps between them.
    written = np.flatnonzero(counts[begin:] > 0)[:cell_bytes] + begin
    assert counts[written].max() == counts.max()


def test_a_cell_has_the_colour_of_most_of_its_bytes() -> None:
    rows = [
        row("file_data", time_ns=S, offset=0, length=8192),
        row("inode_table", time_ns=S, offset=8192, length=4096),
        row("log", time_ns=50 * S, offset=0, length=4096),
    ]
    found = maps(explanation(rows, marks=MARKS), ["work"])
    assert found is not None
    cells = {
        (cell["offset_bytes"], cell["slice_begin_s"] > 10): (cell["area"], cell["write_bytes"])
        for cell in found.blocks.to_pylist()
    }
    assert cells == {
        (0, False): (DATA, 4096),
        (4096, False): (DATA, 4096),
        (8192, False): (INODES, 4096),
        (0, True): (JOURNAL_AREA, 4096),
    }


def test_a_journals_own_blocks_count_with_what_they_carry() -> None:
    causes = ("directory_entries+log", "directory_entries+times", "log", "directory_entries")
    rows = [row("log", time_ns=S, cause=cause) for cause in causes]
    found = maps(explanation(rows, marks=MARKS), ["work"])
    assert found is not None
    sums = {each["cause"]: each["write_bytes"] for each in found.timeline.to_pylist()}
    assert sums == {"directory_entries": 8192, MIXED: 4096, "log": 4096}


def test_without_times_there_is_no_map() -> None:
    assert maps(explanation(drawn(1), is_timed=False), ["work"]) is None
    assert maps(explanation([row("file_data", length=0)], marks=MARKS), ["work"]) is None


def test_every_structure_has_an_area_on_purpose() -> None:
    """Each new structure must be added to an area, or to the exceptions here."""
    other = (
        "superblock superblock_backup mmp quota checkpoint segment_summary chunk_tree root_tree"
        " device_tree csum_tree uuid_tree quota_tree relocation_tree"
    )
    journal = frozenset(name for name, _, is_journal in capture.structures() if is_journal)
    found = {name for name, _, _ in capture.structures() if area(name, journal) == OTHER}
    assert found == set(other.split())
    assert area("log", JOURNAL) == JOURNAL_AREA
