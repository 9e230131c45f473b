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
    ],
)
def test_braces_with_a_comma_are_choices(spelling: str, expected: list[str] | None) -> None:
    found = profile.expand(spelling)
    if expected is None:
        assert len(found) == 2
        assert all("{disk.log}" in each for each in found)
    else:
        assert found == expected


@pytest.mark.parametrize(
    "spelling",
    ["ext4 -o " + "x{a,b}," * 26, "{a," * 300 + "b" + "}" * 300, "ext4 -o " + "x" * 5000],
    ids=["product", "nested", "long"],
)
def test_more_profiles_than_anybody_means_are_refused(spelling: str) -> None:
    with pytest.raises(InputError, match=r"expands to more than 1000|has 5,008 characters"):
        profile.expand(spelling)
