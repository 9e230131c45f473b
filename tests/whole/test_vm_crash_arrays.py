"""Arrays of md after a power cut: a guest assembles them, and parity that disagrees with its data
makes up data that nobody wrote (the write hole)."""

import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.schemas import valid

from fscost import capture
from fscost.cli.examine import sources
from fscost.cli.examiners import in_guests
from fscost.crash import states
from fscost.crash.explore import Limits, Source, State, about_of, job_of
from fscost.crash.journal import answers
from fscost.crash.losses import with_spares
from fscost.crash.lost import ARRAY, WAYS
from fscost.crash.pieces import pieces
from fscost.crash.promises import UNPROMISED
from fscost.lab.vm import VmLab
from fscost.results import load

pytestmark = [pytest.mark.guest, pytest.mark.slow]
PROGRAM = (sys.executable, "-c", "from fscost.cli import main; main()", "crash", "--wait")
FEW = ("--lab", "vm", "--rounds", "1", "--cuts", "1", "--states", "4")
PLAIN, FORCED = range(len(WAYS[ARRAY]))
DEVICE = "reorder-4k"


def recorded(folder: Path, name: str) -> Any:
    """Record a profile. Return its row and its recording, with what examines it."""
    words = [*PROGRAM, *FEW, "--on", name, "-o", "run", "--json"]
    done = subprocess.run(words, cwd=folder, check=True, capture_output=True, text=True)
    [row] = valid(done.stdout)["rows"]
    results = load(folder / "run")
    [(profile, source)] = sources(results, states.load(results.folder).workload)
    return row, profile, source


def half_written(source: Source) -> Iterator[State]:
    """Yield states of one instant: of the stripe in which a part of the database was overwritten,
    the data or its parity is missing."""
    crash = capture.crash(source.recording)
    for at_ns in reversed(crash.cuts(source.begin_ns, source.end_ns, 1 << 16)):
        pending = crash.pending(at_ns, DEVICE)
        everything = State(at_ns, "all", tuple(range(len(pending))), len(pending))
        found = pieces(source.recording, DEVICE, everything)
        rows = {each.offset for each in found if each.path == "/database"}
        stripe = [place for place, (_, _, offset, _) in enumerate(pending) if offset in rows]
        if len(stripe) == 2:
            for lost in stripe:
                kept = tuple(place for place in everything.kept if place != lost)
                yield replace(everything, how="all but one", kept=kept)
            return


@pytest.mark.parametrize(
    ("flags", "is_safe"),
    [
        ("", False),
        pytest.param(" -b internal", False, marks=pytest.mark.long),
        pytest.param(" -k ppl", True, marks=pytest.mark.long),
    ],
)
def test_parity_without_a_log_loses_what_nobody_wrote(
    flags: str, is_safe: bool, tmp_path: Path, vm_lab: VmLab
) -> None:
    """With the partial parity log, md starts a dirty array that lacks a member, and it is whole
    (Documentation/driver-api/md/raid5-ppl.rst)."""
    row, profile, source = recorded(tmp_path, f"ext4 -b 4096 on md -l 5 -n 3 -c 4{flags}")
    assert row["verdict"] == "SAFE"
    found = list(half_written(source))
    assert len(found) == 2
    losses = [(number, way) for number in range(3) for way in (PLAIN, FORCED)]
    jobs = [
        {**job_of(source, state), "lost": {"number": number, "how": "gone", "way": way}}
        for number, way in losses
        for state in found
    ]
    examine = answers(in_guests(vm_lab)(profile), profile.name, None)
    about = with_spares(source, about_of(source, Limits(device=DEVICE)))
    told = examine(about, jobs, lambda done, of: None)
    pairs = list(zip(jobs, told, strict=True))
    mounts = {
        way: [answer["mounts"] for job, answer in pairs if job["lost"]["way"] == way]
        for way in (PLAIN, FORCED)
    }
    assert mounts == {PLAIN: [is_safe] * 6, FORCED: [True] * 6}, told
    broken = {way: _kinds(pairs, way) - set(UNPROMISED) for way in (PLAIN, FORCED)}
    # --force calls the array clean, so that its log is not read either (drivers/md/raid5-ppl.c,
    # ppl_load_distributed).
    assert not broken[PLAIN]
    assert broken[FORCED]


def _kinds(pairs: Sequence[tuple[dict[str, Any], dict[str, Any]]], way: int) -> set[str]:
    """Return the kinds of broken promises after one way back."""
    return {
        kind for job, answer in pairs if job["lost"]["way"] == way for kind, _ in answer["broken"]
    }
