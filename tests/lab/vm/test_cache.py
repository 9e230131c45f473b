"""The cache holds what is complete, or nothing; and says why."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from fscost.errors import HostError
from fscost.lab.vm import cache, snapshot


@pytest.fixture
def full(tmp_path: Path) -> Iterator[Path]:
    """A file system with little room."""
    folder = tmp_path / "full"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", folder], check=True)
    yield folder
    subprocess.run(["umount", folder], check=True)


def fill(folder: Path) -> None:
    with (folder / "much").open("wb", buffering=0) as file:
        while file.write(bytes(1 << 16)):
            pass


def fill_by_a_program(folder: Path) -> None:
    """One that does not say why it failed."""
    try:
        fill(folder)
    except OSError:
        raise HostError("it ended") from None


@pytest.mark.root
@pytest.mark.parametrize("make", [fill, fill_by_a_program])
def test_a_full_disk_is_told_and_nothing_is_left(full: Path, make: object) -> None:
    with pytest.raises(HostError, match="No space left on device") as raised:
        cache.complete(full / "snapshots" / "one", make)  # type: ignore[arg-type]
    assert str(full) in raised.value.what
    assert [path.name for path in full.rglob("*")] == ["snapshots", ".lock"]


def test_another_failure_is_told_as_it_is(tmp_path: Path) -> None:
    def make(_: Path) -> None:
        raise HostError("the guest did not start")

    with pytest.raises(HostError, match="the guest did not start"):
        cache.complete(tmp_path / "one", make)


def test_those_used_last_stay(tmp_path: Path) -> None:
    names = [f"{number:02}" for number in range(12)]
    for age, name in enumerate(reversed(names)):
        (tmp_path / name).mkdir()
        os.utime(tmp_path / name, (1000 - age, 1000 - age))
    (tmp_path / ".making-x").mkdir()
    snapshot._forget_others(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [".making-x", *names[-7:]]
