"""Where states are examined: what this kernel must not mount, or cannot, is for guests."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from fscost.cli.examiners import chosen_lab
from fscost.crash.explore import Mounted, source
from fscost.crash.workloads import COMMAND
from fscost.errors import InputError


@pytest.mark.parametrize(
    ("asked", "types", "kernels", "is_own", "lab"),
    [
        ("auto", ["ext4", "xfs"], [""], True, "native"),
        ("auto", ["ext4", "f2fs"], [], True, "vm"),
        ("auto", ["ext4"], ["", "6.12"], True, "vm"),
        ("auto", ["ext4"], [], False, "vm"),
        ("vm", ["ext4"], [], True, "vm"),
        ("native", ["ext4"], [], False, "native"),
    ],
)
def test_guests_examine_what_this_kernel_does_not(
    asked: str, types: Sequence[str], kernels: Sequence[str], is_own: bool, lab: str
) -> None:
    assert chosen_lab(asked, types, kernels, is_own=is_own) == lab


@pytest.mark.parametrize("type_", ["vfat", "exfat"])
def test_files_without_inode_numbers_are_not_followed(type_: str) -> None:
    with pytest.raises(InputError, match="new inode numbers at each mount"):
        source(Path("none"), COMMAND, Mounted(type_, (), ""), "")
