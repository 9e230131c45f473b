"""The studies' figures match the tables of their sources, as printed there."""

import pytest

from fscost import study
from fscost.study.formula import Reference

JOURNAL_TAX = """
profiles              clone        make         clean
strict   strict_nj    367.7 353.0  231.1 203.4  14.6  7.7
noatime  noatime_nj   367.0 353.0  207.6 199.4  6.45  3.73
relatime relatime_nj  366.6 353.0  216.8 203.7  13.34 6.97
ext3     ext2         374.6 357.2  230.9 204.4  14.56 6.54
"""
CHANGES = """
strict    4.00  12.0   47.3
noatime   3.81  3.95   42.17
relatime  3.71  6.04   45.75
ext3      4.64  11.48  55.08
"""
NINE = """
modelled_s        s   ext2   ext3   ext4   btrfs  jfs    nilfs2 reiserfs xfs    ntfs3
write             s   12     11     11     12     11     16     12       12     40
overwrite         s   12     12     12     13     11     18     12       12     40
unpack            s   11     12     12     17     13     13     15       13     78
unpack-over       s   –      12     13     20     14     14     17       139    86
space_used_bytes  GB  ext2   ext3   ext4   btrfs  jfs    nilfs2 reiserfs xfs    ntfs3
mount             GB  0.058  0.183  0.183  0      0.012  0.015  0.032    0.032  –
write             GB  2.1    2.2    2.2    2.1    2.1    2.1    2.1      2.1    –
unpack            GB  2.8    2.9    2.9    2.7    2.7    2.8    2.3      2.7    –
command_cpu_s     s   ext2   ext3   ext4   btrfs  jfs    nilfs2 reiserfs xfs    ntfs3
write             s   2.513  –      –      2.4    2.604  3.512  4.737    2.163  –
overwrite         s   2.679  4.495  –      2.55   2.864  4.609  5.385    2.404  –
unpack            s   7.351  8.445  8.303  11.117 8.485  7.789  –        9.948  –
unpack-over       s   –      8.95   9.424  15.546 9.314  8.346  16.086   13.253 –
"""
SNAPSHOTS = {
    Reference("relatime", "unpack", "metadata_used_bytes"): "8.65 GiB",
    Reference("relatime", "find", "metadata_used_bytes"): "54.26 GiB",
    # 70 MiB/s for an hour.
    Reference("relatime", "find", "device_write_bytes"): "246.1 GiB",
    Reference("relatime", "find", "pause_s_max"): "6 min",
}
CLAIMS = {
    "journal-tax": (
        "doubles metadata-only",
        "12 % at most",
        "4 % at least",
        "noatime removes",
        "just under 4 %",
        "twice noatime",
        "ext3 looks like",
        "chattr +A",
        "read-only pass",
        "stall",
        "lifetime counter",
        "128 KiB",
        "mutt",
    ),
    "nine-filesystems": (
        "ext family",
        "xfs is by far",
        "btrfs is a bit slow",
        "nilfs2 is a bit slow",
        "no big differences",
        "least space",
        "costliest in CPU",
        "above all with small",
        "through the whole",
        "level wear",
        "continuous snapshots",
        "no particular weakness",
        "fsck",
    ),
    "snapshot-atime": (
        "unshares",
        "ENOSPC",
        "noatime prevents",
        "All of the writes",
        "stall",
    ),
}


def journal_tax() -> dict[Reference, str]:
    header, *lines = (line.split() for line in JOURNAL_TAX.strip().splitlines())
    return {
        Reference(profile, phase, "device_write_bytes"): f"{figure} MB"
        for with_, without, *figures in lines
        for number, figure in enumerate(figures)
        for profile, phase in [((with_, without)[number % 2], header[1 + number // 2])]
    }


def nine() -> dict[Reference, str]:
    found, profiles, metric = {}, [], ""
    for first, unit, *figures in (line.split() for line in NINE.strip().splitlines()):
        if figures[0] == "ext2":
            profiles, metric = figures, first
            continue
        found |= {
            Reference(profile, first, metric): f"{figure} {unit}"
            for profile, figure in zip(profiles, figures, strict=True)
            if figure != "–"
        }
    return found


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("journal-tax", journal_tax()),
        ("nine-filesystems", nine()),
        ("snapshot-atime", SNAPSHOTS),
    ],
)
def test_every_figure_is_there_as_it_is_published(
    name: str, expected: dict[Reference, str]
) -> None:
    assert study.load(name).published.texts == expected


def test_the_printed_percentages_are_the_sources_own() -> None:
    printed = {
        comparison.with_: [comparison.printed[phase] for phase in ("clone", "make", "clean")]
        for comparison in study.load("journal-tax").comparisons
    }
    assert printed == {
        name: [f"{figure} %" for figure in figures]
        for name, *figures in (line.split() for line in CHANGES.strip().splitlines())
    }


@pytest.mark.parametrize(("name", "claims"), CLAIMS.items())
def test_every_claim_is_there(name: str, claims: tuple[str, ...]) -> None:
    texts = [claim.text for claim in study.load(name).claims]
    for claim in claims:
        assert any(claim in text for text in texts), claim


@pytest.mark.parametrize("step", ["clone", "make"])
def test_a_share_of_too_little_is_not_judged(step: str) -> None:
    """The effect is 4–12 % on ordinary work; it cannot be judged where everything written is
    metadata."""
    least = {"clone": 64 << 20, "make": 32 << 20}[step]
    criteria = [
        criterion
        for claim in study.load("journal-tax").claims
        for criterion in claim.criteria
        if criterion.formula
        and {each.phase for each in criterion.formula.references} == {step}
        and "+A" not in claim.text
    ]
    assert len(criteria) >= 6
    for criterion in criteria:
        assert criterion.precondition is not None, criterion.label
        assert criterion.precondition.at_least == least
