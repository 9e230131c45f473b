"""Random mkfs flags, mount options and work: our attribution of random blocks agrees with other
tools and with the contents of the blocks.

FSCOST_FLAG_DRAWS=200 draws that many of each family; FSCOST_TEST_SEED repeats a run.
"""

import os
import random
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

import pyarrow.compute as pc
import pytest
from tests.analysis.draws import DISK_BYTES, draw
from tests.analysis.ext.test_ext import record as record_cell
from tests.analysis.oracles import CHECKS, LastWriters, Names
from tests.images import export_image
from tests.variants import some

from fscost import capture, profile
from fscost.analyze import explain
from fscost.lab.base import LabOptions
from fscost.lab.cell.binaries import find_binaries
from fscost.lab.native import NativeLab
from fscost.matrix import Cell
from fscost.workload.model import Step, Workload

pytestmark = pytest.mark.root

HERE = Path(__file__).parent
COUNTS = {"ext": 8, "xfs": 5, "btrfs": 5}
ASKED = int(os.environ.get("FSCOST_FLAG_DRAWS") or 0)
FEW = 1
"""Draws of each family in a run of all tests. The soak runs the others."""
DRAWS = [(family, number) for family, count in COUNTS.items() for number in range(ASKED or count)]
ALWAYS = [(family, number) for family, number in DRAWS if ASKED or number < FEW]
MOST_UNKNOWN = 0.001
LEAST_COMPARED = 300
"""Minimum number of blocks compared in each draw, however many draws were refused before it:
thousands in all."""
MOST_REFUSED = 5
"""Maximum number of consecutive draws that mkfs or mount may refuse."""


@dataclass(frozen=True)
class Drawn:
    spelled: str
    recording: Path
    names: Names


def record(family: str, number: int, seed: int, rng: random.Random, folder: Path) -> Drawn:
    """Record a draw. If mkfs or mount refuses it, draw again."""
    (folder / "input").mkdir()
    shutil.copy(HERE / "exercise.py", folder / "input")
    shell = f"python3 {{input}}/exercise.py {seed}-{number}-%d %d %d"
    steps = (
        Step("one", shell % (1, 500, 0), settle="remount"),
        Step("two", shell % (2, 400, 1_000_000)),
    )
    work = Workload("mine", steps, disk_bytes=1 << 20, input=folder / "input")
    for refused in range(MOST_REFUSED + 1):
        spelled = draw(family, rng)
        print(f"FSCOST_TEST_SEED={seed}: {spelled}")
        options = LabOptions(folder / f"cell{refused}", DISK_BYTES[family])
        result = NativeLab(find_binaries()).run(
            Cell(profile.resolve(spelled), work, 0, seed % 1000, 0), options, lambda name: None
        )
        if result.kind not in ("mkfs", "mount"):
            break
        print(f"refused by {result.kind}: {result.because}")
    assert result.status == "done", f"{result.status} ({result.kind}): {result.because}"
    assert result.recording
    assert result.output
    has_journal = not re.search(r"^ext2|\^has_journal", spelled)
    names = Names(
        is_atomic=family == "xfs"
        or (family == "ext" and has_journal and "fast_commit" not in spelled)
    )
    for inode, parent, path in re.findall(
        r"^NAME\t(\d+)\t(\d+)\t(.+)$", result.output.read_text(), re.MULTILINE
    ):
        names.add(int(inode), int(parent), path)
    return Drawn(spelled, result.recording, names)


@pytest.mark.parametrize(("family", "number"), some(DRAWS, 0, ALWAYS))
def test_what_was_written_is_what_the_tools_say(
    family: str, number: int, tmp_path: Path, seed: int
) -> None:
    rng = random.Random(f"{seed}/{family}/{number}")
    check(family, record(family, number, seed, rng, tmp_path), rng, tmp_path)


def check(family: str, drawn: Drawn, rng: random.Random, folder: Path) -> None:
    explanation = explain(drawn.recording)
    table = explanation.table
    with capture.opened(drawn.recording) as recording:
        totals = [disk for interval in recording.intervals() for disk in interval["disks"].values()]
        written = sum(disk["write_bytes"] + disk["zero_bytes"] for disk in totals)
        for mark in ("two", "end"):
            for disk, suffix in enumerate((".img", ".log")[: len(recording.info()["disks"])]):
                export_image(recording, disk, (folder / mark).with_suffix(suffix), mark=mark)
    assert pc.sum(table["length"]).as_py() == written
    within = explanation.within(explanation.measured).table
    unknown = within.filter(
        pc.or_(
            pc.equal(within["structure"], "unknown"),
            pc.fill_null(pc.equal(within["home_structure"], "unknown"), False),
        )
    )
    assert (pc.sum(unknown["length"]).as_py() or 0) <= MOST_UNKNOWN * pc.sum(
        within["length"]
    ).as_py(), unknown.slice(0, 5).to_pylist()

    compared = 0
    for mark in ("two", "end"):
        phases = explanation.phases[: explanation.phases.index(mark)]
        last = LastWriters(table, phases, folder / f"{mark}.img")
        compared += CHECKS[family](folder / f"{mark}.img", last, drawn.names, rng)
    print(f"{compared} blocks compared")
    assert compared > LEAST_COMPARED


GIVEN = """
import os, subprocess
value = b"x" * 3000
for number in range(200):
    open(f"a{number}", "w").close()
    os.setxattr(f"a{number}", "user.a", value)
subprocess.run(["sync", "-f", "."], check=True)
for number in range(200):
    os.removexattr(f"a{number}", "user.a")
subprocess.run(["sync", "-f", "."], check=True)
free = os.statvfs(".").f_bavail * 2048
subprocess.run(["fallocate", "--length", str(free * 9 // 10), "all"], check=True)
"""


@pytest.mark.parametrize("options", ["noatime", "noatime,discard"])
def test_a_block_that_a_file_was_given_and_has_not_written_is_what_it_was(
    options: str, tmp_path: Path
) -> None:
    (tmp_path / "input").mkdir()
    (tmp_path / "input" / "work.py").write_text(GIVEN)
    work = Workload(
        "mine", (Step("work", "python3 {input}/work.py"),), disk_bytes=1, input=tmp_path / "input"
    )
    recording = record_cell(f"xfs -b size=2048 -o {options}", work, tmp_path / "cell", 512)
    table = explain(recording).table
    image = tmp_path / "end.img"
    with capture.opened(recording) as opened:
        export_image(opened, 0, image, mark="end")
    last = LastWriters(table, ("work", "unmount", "end"), image)
    rows = [(at, last.at(at)) for at in last.sample(2048, random.Random(1))]
    given = [at for at, row in rows if row and row.structure == "xattr" and row.length == 4096]
    assert given
    assert {last.is_zero(at, 2048) for at in given} == {"discard" in options}
    # Values written before the log had their inodes.
    values = table.filter(
        pc.and_(pc.equal(table["structure"], "xattr"), pc.equal(table["length"], 4096))
    )
    assert set(values["path"].to_pylist()) == {f"/a{number}" for number in range(200)}
    assert CHECKS["xfs"](image, last, Names(is_atomic=True), random.Random(1))
