"""Refusals of combinations, in the words of mkfs and the kernel."""

from collections.abc import Callable

import pytest

from fscost.lab.base import CellResult
from fscost.matrix import Cell
from fscost.profile.model import Profile
from fscost.run import RunOutcome, RunSpec
from fscost.run.refused import refusal

from .conftest import WORKLOAD

Make = Callable[..., RunSpec]
Go = Callable[..., RunOutcome]
MOUNT = "mount -t ext4 -o 'data=x' /dev/loop2"
INVALID = "Invalid argument (os error 22)"


@pytest.mark.parametrize(
    ("kind", "because", "words"),
    [
        ("mkfs", "`mkfs.xfs -d agcount=1 /dev/loop0` exited with status 1: Too few", "Too few"),
        ("mount", f"{MOUNT} (ext4: Bad value for 'data'): {INVALID}", "ext4: Bad value for 'data'"),
        ("mount", f"{MOUNT}: {INVALID}\nthe kernel said: EXT4-fs (loop2): no", "EXT4-fs: no"),
        ("mount", f"{MOUNT}: {INVALID}", INVALID),
        ("mkfs", "mkfs.f2fs was killed", "mkfs.f2fs was killed"),
    ],
)
def test_the_words_do_not_depend_on_the_combination(
    spec: Make, go: Go, kind: str, because: str, words: str
) -> None:
    manifest = go(spec()).results.manifest
    swept = Profile("ext4 -o a", "ext4", sweep="ext4 -o {a,b}", levels=(("a|b", "a"),))
    failed = CellResult(Cell(swept, WORKLOAD, 0, 1, 0), "failed", because, kind=kind)
    assert refusal(failed, manifest) == f"{kind} refuses it: {words}"
    failed.kind = "workload"
    assert refusal(failed, manifest) is None
    worked = CellResult(
        Cell(Profile("ext4", "ext4", sweep="{ext4,a}"), WORKLOAD, 1, 1, 0), "failed"
    )
    worked.kind = kind
    assert refusal(worked, manifest) is None, "it ran before, so this failure is no refusal"
