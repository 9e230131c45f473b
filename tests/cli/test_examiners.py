"""Where states are examined: what this kernel must not mount, or cannot, is for guests."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.recordings import write

from fscost.cli.examiners import Examined, chosen_lab
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
    profiles = [Examined(type_, type_) for type_ in types]
    assert chosen_lab(asked, profiles, kernels, is_own=is_own) == lab


def test_guests_assemble_arrays() -> None:
    assert chosen_lab("auto", [Examined("ext4-raid1", "ext4", is_array=True)], []) == "vm"


@pytest.mark.parametrize("members", [-1, 2])
def test_an_array_has_members_in_its_recording(tmp_path: Path, members: int) -> None:
    recording = write(tmp_path / "recording", [], size=1 << 20)
    with pytest.raises(InputError, match="other disks than its array"):
        source(recording, "files", Mounted("ext4", (), "", members), "")


@pytest.mark.parametrize("type_", ["vfat", "exfat"])
def test_files_without_inode_numbers_are_not_followed(type_: str) -> None:
    with pytest.raises(InputError, match="new inode numbers at each mount"):
        source(Path("none"), COMMAND, Mounted(type_, (), ""), "")
