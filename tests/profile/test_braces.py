"""Braces: several profiles in one spelling."""

import pytest

from fscost import profile
from fscost.errors import InputError


@pytest.mark.parametrize(
    ("spelling", "expected"),
    [
        ("ext4", ["ext4"]),
        ("ext4 -o commit={5,30}", ["ext4 -o commit=5", "ext4 -o commit=30"]),
        (
            "{ext4,xfs} -o {noatime,relatime}",
            [
                "ext4 -o noatime",
                "ext4 -o relatime",
                "xfs -o noatime",
                "xfs -o relatime",
            ],
        ),
        ("ext4 -J device={disk.journal}", ["ext4 -J device={disk.journal}"]),
        ("xfs -l logdev={disk.log} -o logbsize={32k,256k}", None),
        ("ext4 -O {,^has_journal} -b 1024", ["ext4 -b 1024", "ext4 -O ^has_journal -b 1024"]),
        ("ext4 -O{,^has_journal}", ["ext4", "ext4 -O^has_journal"]),
        ("ext4 -o {,noatime}", ["ext4", "ext4 -o noatime"]),
        ("ext4 -o a,{,b},c", ["ext4 -o a,c", "ext4 -o a,b,c"]),
        ("ext4 -o {,a},{,b}", ["ext4", "ext4 -o b", "ext4 -o a", "ext4 -o a,b"]),
        ("xfs -m crc=0{,}", ["xfs -m crc=0", "xfs -m crc=0"]),
        ("ext4{,-noatime}", ["ext4", "ext4-noatime"]),
        ("ext4 {,-O fast_commit} -b 1024", ["ext4 -b 1024", "ext4 -O fast_commit -b 1024"]),
        # The flag before a brace of flags is not its own.
        ("ext2 -j {,-b 1024}", ["ext2 -j", "ext2 -j -b 1024"]),
        ("btrfs --mixed {,-m single}", ["btrfs --mixed", "btrfs --mixed -m single"]),
        ("ext4 -o data={,journal}", ["ext4", "ext4 -o data=journal"]),
        ("ext4 -o noatime,data={,journal}", ["ext4 -o noatime", "ext4 -o noatime,data=journal"]),
    ],
)
def test_braces_with_a_comma_are_choices(spelling: str, expected: list[str] | None) -> None:
    found = [each.spelling for each in profile.expand(spelling)]
    if expected is None:
        assert len(found) == 2
        assert all("{disk.log}" in each for each in found)
    else:
        assert found == expected


@pytest.mark.parametrize(
    ("spelling", "factors"),
    [
        (
            "ext4 -b {1024,4096} -O {,^has_journal} -o commit={5,30},{relatime,noatime}",
            {
                "-b": ["-b 1024", "-b 4096"],
                "^has_journal": ["without ^has_journal", "^has_journal"],
                "commit": ["commit=5", "commit=30"],
                "relatime|noatime": ["relatime", "noatime"],
            },
        ),
        ("{ext4,xfs}", {"type": ["ext4", "xfs"]}),
        (
            "xfs -i size={512,1024} -b size={1k,4k}",
            {"size": ["size=512", "size=1024"], "-b size": ["-b size=1k", "-b size=4k"]},
        ),
        ("ext4 -o {a,b},{a,b}", {"a|b": ["a", "b"], "-o a|b": ["-o a", "-o b"]}),
        # No factor is named by the level of another one.
        (
            "{ext4,xfs}{, -o noatime}",
            {"type": ["ext4", "xfs"], "-o noatime": ["without -o noatime", "-o noatime"]},
        ),
        (
            "{ext4,xfs}{,-noatime}",
            {"type": ["ext4", "xfs"], "-noatime": ["without -noatime", "-noatime"]},
        ),
        ("ext4 -o data={,journal}", {"data": ["without data", "data=journal"]}),
        ("ext{3,4} -o {a,b}", {"ext": ["ext3", "ext4"], "a|b": ["a", "b"]}),
        ("ext4 -o no{,dir}atime", {"no": ["without dir", "nodir"]}),
    ],
)
def test_a_brace_is_a_factor_with_levels(spelling: str, factors: dict[str, list[str]]) -> None:
    found = profile.expand(spelling)
    for each in found:
        assert [name for name, _ in each.levels] == list(factors)
    for place, levels in enumerate(factors.values()):
        assert list(dict.fromkeys(each.levels[place][1] for each in found)) == levels


@pytest.mark.parametrize(
    "spelling",
    [
        "ext4 -o " + "x{a,b}," * 26,
        "{a," * 300 + "b" + "}" * 300,
        "ext4 -o " + "x" * 5000,
        "ext4\0{,a}",
    ],
    ids=["product", "nested", "long", "zero"],
)
def test_more_profiles_than_anybody_means_are_refused(spelling: str) -> None:
    with pytest.raises(InputError, match=r"expands to more than 1000|has 5,008 characters|x00"):
        profile.expand(spelling)
