"""Soaks: the draws that they choose, and what becomes of draws that fail."""

import random
import re
import time
from itertools import islice
from pathlib import Path

import pytest
from tests.oracles import soak, tally
from tests.oracles.tagged_check import NEVER_WAS, RIGHT, Summary
from tests.oracles.tagged_draw import GUESTS, NATIVE, Drawn, kinds, spelling
from tests.oracles.tagged_run import SHELL, run


def made(name: str, right: int, wrong: int) -> Drawn:
    _, _, family, kind = name.split("/")
    summary = Summary()
    for result, sectors in ((RIGHT, right), (NEVER_WAS, wrong)):
        summary.add(result, sectors, lambda: "an example", is_doubtful=False)
    return Drawn(family, family, kind, summary)


def test_a_failing_draw_ends_no_soak(tmp_path: Path) -> None:
    def make(name: str) -> Drawn:
        if "/2/" in name:
            raise OSError("mkfs is missing")
        return made(name, 10, 90 if "/1/" in name else 0)

    names = [f"7/{number}/xfs/renames" for number in (1, 2, 3)]
    file = tmp_path / "tally"
    for _ in range(2):
        failed = soak.soak(names, make, lambda cell: tally.append(file, cell))
        assert failed == names[:2]
    cells = tally.read(file)
    assert [cell.draw for cell in cells] == [names[0], names[2]] * 2
    assert [cell.worst for cell in cells] == [NEVER_WAS, None] * 2
    row = tally.table(cells, "family", "kind").splitlines()[-1]
    assert row.startswith("| xfs | renames | 4 | 0 | 81.818%, worst 90.00% | 0.000%")


def test_each_family_runs_each_of_its_kinds() -> None:
    names = list(islice(soak.for_so_long(time.monotonic() + 60, "7"), 60))
    drawn = {tuple(name.split("/")[2:]) for name in names}
    assert drawn == {(family, kind) for family in (*NATIVE, *GUESTS) for kind in kinds(family)}
    assert {family for family, kind in drawn if kind == "clones"} == {"xfs", "btrfs"}


def test_threads_never_use_what_deadlocks_the_kernel(tmp_path: Path) -> None:
    used = re.compile(r"(?<!\^)ea_inode")
    rng = random.Random(7)
    assert any(used.search(spelling("ext", "mixed", rng)) for _ in range(100))
    assert not any(used.search(spelling("ext", "threads", rng)) for _ in range(300))
    threads = [f"{SHELL} --draw 1 1 --kind threads"]
    with pytest.raises(AssertionError, match="deadlock"):
        run("ext4 -O ea_inode", tmp_path / "run", threads)
