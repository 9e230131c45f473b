"""Arrays as Python sees them: their spelling, room for the whole disk, and the bytes their members
receive."""

import pytest

from fscost import wear
from fscost._native import Array
from fscost.cli.output.members import alignment
from fscost.errors import InputError

KIB = 1 << 10
SPELLED = {
    "linear,members=2": 1.0,
    "raid0,members=3,chunk=4K": 1.0,
    "raid1,members=2": 2.0,
    "raid4,members=3,chunk=64K": 1.5,
    "raid5,members=5,chunk=64K,layout=parity-first": 1.25,
    "raid6,members=6": 1.5,
    "raid10,members=4,layout=n2": 2.0,
    "raid10,members=3,chunk=64K,layout=f2": 2.0,
    "raid10,members=6,chunk=4K,layout=o3": 3.0,
}
"""Spelled arrays, and the bytes that members receive for each byte when a whole array is written in
order."""


@pytest.mark.parametrize("spelled", SPELLED)
@pytest.mark.parametrize("disk_bytes", [1 << 20, (64 << 20) + 4096, 100_000_256])
def test_an_array_is_at_least_as_large_as_its_disk(spelled: str, disk_bytes: int) -> None:
    shape = wear.parse_array(spelled).for_disk(disk_bytes)
    size = Array(shape.native()).size_bytes()
    assert (
        disk_bytes
        <= size
        <= disk_bytes + (4 * shape.members + 4) * shape.members * max(shape.chunk_bytes, 4096)
    )


@pytest.mark.parametrize(("spelled", "factor"), SPELLED.items())
def test_closed_form_writing_all_of_an_array_costs_its_redundancy(
    spelled: str, factor: float
) -> None:
    shape = wear.parse_array(spelled).for_disk(24 << 20)
    array = Array(shape.native())
    size = array.size_bytes()
    step = 1024 * KIB
    requests = [
        request for at in range(0, size, step) for request in array.write(at, min(step, size - at))
    ] + array.settle()
    written = sum(length for _, kind, _, length, _ in requests if kind == "write")
    assert written == pytest.approx(size * factor)
    assert sum(redundant for *_, redundant in requests) == pytest.approx(size * (factor - 1))
    assert not [request for request in requests if request[1] == "preread"]
    assert {member for member, *_ in requests} == set(range(shape.members))


def test_rmw_level_is_mds() -> None:
    """Four members, one block: both ways read two blocks; md reconstructs at level 1 and modifies
    at level 2."""
    for level, rows in ((1, (0, 0, 1, 0)), (2, (0, 0, 0, 1))):
        array = Array(
            wear.parse_array(f"raid5,members=4,chunk=64K,rmw_level={level}")
            .for_disk(1 << 20)
            .native()
        )
        array.write(0, 4096)
        assert len(array.settle()) == 4
        assert array.rows() == rows


@pytest.mark.parametrize(
    ("spelled", "wide"),
    [
        ("raid0,members=3", 3),
        ("raid5,members=5", 4),
        ("raid6,members=6", 4),
        ("raid10,members=4,layout=n2", 2),
        # raid10_set_io_opt of drivers/md/raid10.c: chunks of a row are on all members.
        ("raid10,members=3,layout=n2", 3),
        ("raid10,members=4,layout=f2", 4),
        ("raid10,members=4,layout=o2", 4),
    ],
)
def test_a_row_of_chunks_goes_over_these_members(spelled: str, wide: int) -> None:
    shape = wear.parse_array(f"{spelled},chunk=512K")
    assert f"stripe_width={128 * wide}; mkfs.xfs -d su=512k,sw={wide}." in alignment(shape)


@pytest.mark.parametrize(
    ("spelled", "says"),
    [
        ("raid5,members=3,chunk=64k,", "'' is not FIELD=VALUE"),
        ("raid5,members=3,chunks=64K", "no field 'chunks'"),
        ("raid1,members=2,chunk=64K", "raid1 has no chunks"),
        ("raid0,members=3,layout=n2", "raid0 has no layouts"),
        ("raid10,members=2,layout=f3", "layout is 'f3'"),
        ("raid5,members=65", "members is '65'"),
        ("raid5,members=3,chunk=2K", "chunk is '2K'"),
        ("raid5,members=3,rmw_level=3", "rmw_level is '3'"),
        ("raid5,members=3,cached_stripes=1", "cached_stripes is '1'"),
        ("raid5,members=\u00b3", "members is"),
    ],
)
def test_a_wrong_shape_names_its_field(spelled: str, says: str) -> None:
    with pytest.raises(InputError, match="--array") as error:
        wear.parse_array(spelled)
    assert says in error.value.what
