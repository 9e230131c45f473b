"""Cells over ublk in one guest of Debian's 6.12, beside the same cells over FUSE and loop devices:
file systems, several disks, killed processes, and the cost of a request."""

import json
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.front_end import guest, kills

from fscost import profile
from fscost.host import search_path
from fscost.lab.base import CellResult, LabOptions
from fscost.lab.cell.binaries import find_binaries
from fscost.lab.cell.events import Event, parse
from fscost.lab.native import NativeLab, lab
from fscost.matrix import Cell
from fscost.run.after import explained
from fscost.run.measure import Task, measure
from fscost.workload.model import Step, Workload

pytestmark = [pytest.mark.root, pytest.mark.guest, pytest.mark.slow, pytest.mark.long]
HERE = Path(__file__).parent
MIB = 1 << 20
WORK = f"""\
: {kills.TOKEN}
mkdir folder && cd folder
dd if=/dev/zero of=file bs=64k count=16 conv=fsync status=none
for name in a b c d; do echo $name >$name; done
sync -f . && mv a e && rm b && ln c f
"""
PROFILES = ("ext4 -J device={disk.journal}", "xfs", "btrfs")
IN_GUEST = """\
import json, os, subprocess, sys
plan = json.load(open(sys.argv[2])) | {"parent_pid": os.getpid()}
with open(sys.argv[3], "wb") as events:
    ended = subprocess.run([sys.argv[1], "run"], input=json.dumps(plan).encode(), stdout=events)
print(ended.returncode)
"""


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[guest.Session]:
    out, work = tmp_path_factory.mktemp("out"), tmp_path_factory.mktemp("work")
    with guest.session(out, work) as begun:
        yield begun


def in_session(session: guest.Session, front_end: str) -> Callable[..., int]:
    """Return a function that runs an agent in the guest, in place of `run_agent`."""

    def run(
        agent: Path, plan: dict[str, Any], errors: Path, _: float, hear: Callable[[Event], None]
    ) -> int:
        told, events = errors.with_name("plan.json"), errors.with_name("events")
        plan = plan | {"disk_server": [*plan["disk_server"], "--front-end", front_end]}
        told.write_text(json.dumps(plan))
        words = ["python3", "-c", IN_GUEST, str(agent), str(told), str(events)]
        said = session.run(f"export PATH={search_path()}\n{shlex.join(words)}\n")
        for line in events.read_bytes().splitlines(keepends=True):
            hear(parse(line))
        return int(said.splitlines()[-1])

    return run


def done(
    session: guest.Session, name: str, front_end: str, monkeypatch: pytest.MonkeyPatch
) -> tuple[CellResult, Path]:
    """Run a cell. The lab compares its recording with the kernel's counters; here the rows of the
    explanation must add up to them, disk by disk."""
    monkeypatch.setattr(lab, "run_agent", in_session(session, front_end))
    chosen = profile.resolve(name)
    cell = Cell(chosen, Workload("mine", (Step("work", WORK),), disk_bytes=MIB), 0, 7, 0)
    room = session.out / f"cell-{len(list(session.out.glob('cell-*')))}"
    options = LabOptions(room, disk_size_bytes=320 * MIB)
    task = Task(cell, options, keep_recording=True)
    result = measure(NativeLab(find_binaries()), task, lambda _: None)
    assert result.status == "done", f"{result.kind}: {result.because}"
    assert explained.NOT_EXPLAINED not in result.facts
    return result, room


def values(result: CellResult) -> dict[tuple[str, str, str], float]:
    return {(each.phase, each.disk, each.metric): each.value for each in result.samples}


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("name", PROFILES)
def test_a_cell_is_conserved_over_either_front_end(
    session: guest.Session, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    over = {}
    for front_end, node in (("fuse", "/dev/loop"), ("ublk", "/dev/ublkb")):
        result, _ = done(session, name, front_end, monkeypatch)
        disks = result.facts["disks"]
        assert all(each["device"].startswith(node) for each in disks.values()), disks
        assert len({each["device"] for each in disks.values()}) == 1 + ("journal" in name)
        over[front_end] = values(result)
        # The explanation is not empty: it contains the file's own megabyte.
        assert over[front_end]["work", "", "data_write_bytes"] >= MIB
        if "journal" in name:
            assert over[front_end]["work", "journal", "device_write_bytes"] > 0
    for metric in ("program_write_bytes", "data_write_bytes"):
        assert over["fuse"]["work", "", metric] == over["ublk"]["work", "", metric], metric


@pytest.mark.timeout(2400)
def test_a_killed_process_leaves_nothing(
    session: guest.Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, room = done(session, "ext4", "ublk", monkeypatch)
    words = ["python3", str(HERE / "kills.py"), str(find_binaries().agent.resolve())]
    words += [str(room / "plan.json"), "/run/kills"]
    said = session.run(f"export PATH={search_path()}\n{shlex.join(words)}\n", 2000)
    found = json.loads(said.splitlines()[-1])
    assert len(found) == len(kills.CASES)
    for each in found:
        assert each["began"], each
        assert each["hit"] == len(each["whom"].split("+")), each
        assert each["ended"], each
        # A cell survives the loss of its guard, and fails if any other process is killed.
        assert (each["last"].get("event") == "done") == (each["whom"] == "guard"), each
    *others, both, after = found
    assert [each for each in others if each["left"]] == []
    # Without its guard, a killed server leaves its devices, which the next server removes.
    assert all(path.startswith("/dev/ublk") for path in both["left"]), both
    assert after["left"] == []
    assert after["devices"] == []


@pytest.mark.timeout(1200)
def test_a_request_costs_less_than_over_fuse(session: guest.Session) -> None:
    """The cost is in instructions of an emulated processor: a ratio for docs/time.md, not the time
    of a request."""
    words = ["python3", str(HERE / "cost.py"), str(find_binaries().disk.resolve()), "/run/cost"]
    said = session.run(shlex.join(words), 1000)
    found = json.loads(said.splitlines()[-1])
    print(f"instructions of a request: {found}")
    for name in ("write", "read"):
        assert 0 < found["ublk"][name] < found["fuse"][name], found
