"""Zeroes that a loop device turns into holes look like discards. The kernel's counters tell how
many bytes were which, and so do our rows."""

from typing import Any

import pytest
from tests.variants import some

from fscost import analyze, capture
from fscost.results import written
from fscost.run.after import explained
from fscost.workload.model import Step

pytestmark = pytest.mark.root
MIB = 1 << 20
LAZY = "-E lazy_itable_init=1,lazy_journal_init=1 -o init_itable=0"
MAKE = "for i in $(seq 40); do head -c 300000 /dev/urandom > f$i; done; sync -f .; rm f1* f2*; sync -f ."
# The lazy-initialisation thread begins some seconds after the mount and ends with the last group's
# table.
WAIT = (
    "for i in $(seq 240); do dumpe2fs {disk.main} > {scratch}/groups 2> /dev/null; groups=$(grep -c"
    " '^Group [0-9]' {scratch}/groups); [ $groups = $(grep -c ITABLE_ZEROED {scratch}/groups) ] && break;"
    " sleep 0.5; done; [ $groups -gt 0 ]"
)
TRIM = "fstrim -v {dir}"
# Half of an unwritten extent is written: the kernel zeroes the rest.
ZERO_OUT = (
    "for i in $(seq 20); do fallocate -l 32768 z$i; done; sync -f .; for i in $(seq 20); do head -c 4096"
    " /dev/urandom | dd of=z$i conv=notrunc status=none; done"
)


def run(
    bench: Any, spelled: str, *steps: str
) -> tuple[dict[str, dict[str, float]], dict[str, int], Any]:
    """Return the bytes each phase wrote, by metric, and the bytes that the kernel counted as
    discarded."""
    named = [Step(f"step{number}", step) for number, step in enumerate(steps)]
    result = bench.done(bench.cell(spelled, *named))
    explained.add_to(result, result.recording)
    phases: dict[str, dict[str, float]] = {}
    for sample in result.samples:
        if not sample.disk:
            phases.setdefault(sample.phase, {})[sample.metric] = sample.value
    for phase, values in phases.items():
        assert sum(values[kind] for kind in written.KINDS) == values["device_write_bytes"], phase
    whole = analyze.explain(result.recording)
    punched = {
        interval.name: sum(disk["punch_bytes"] for disk in interval.disks.values())
        for interval in capture.intervals(result.recording)
    }
    assert not any(whole.punched_bytes[phase] > punched[phase] for phase in punched)
    return phases, punched, whole


@pytest.mark.parametrize(
    ("spelled", "steps"),
    some(
        [
            (f"ext4 {LAZY}", [MAKE, WAIT]),
            (f"ext4 {LAZY},discard", [f"{MAKE}; {WAIT}", MAKE]),
            (f"ext4 {LAZY}", [f"{MAKE}; {TRIM}; {WAIT}", TRIM]),
            (f"ext4 {LAZY},discard", [f"{MAKE}; {TRIM}; {WAIT}; {TRIM}"]),
            (f"ext4 -O ^has_journal {LAZY},discard", [f"{MAKE}; {TRIM}; {WAIT}"]),
        ],
        2,
    ),
)
def test_inode_tables_that_are_zeroed_later_are_known(
    bench: Any, spelled: str, steps: list[str]
) -> None:
    phases, punched, whole = run(bench, spelled, *steps)
    lazy = sum(
        values["lazy_init_write_bytes"] for phase, values in phases.items() if phase != "total"
    )
    assert lazy > 4 * MIB
    assert sum(whole.punched_bytes.values()) >= lazy
    assert all(values[written.UNKNOWN] == 0 for phase, values in phases.items() if phase != "mkfs")
    if "discard" in spelled or any(TRIM in step for step in steps):
        assert sum(punched.values()) > sum(whole.punched_bytes.values())


def test_what_is_left_of_an_unwritten_extent_is_its_files(bench: Any) -> None:
    phases, punched, whole = run(bench, "ext4", ZERO_OUT)
    assert phases["step0"][written.UNKNOWN] == 0
    if punched["step0"]:
        assert whole.punched_bytes["step0"] == punched["step0"]


@pytest.mark.parametrize("spelled", ["xfs -o discard", "btrfs -o discard"])
def test_elsewhere_all_holes_are_discards(bench: Any, spelled: str) -> None:
    phases, punched, whole = run(bench, spelled, f"{MAKE}; {ZERO_OUT}; {TRIM}")
    assert punched["step0"] > MIB
    assert sum(whole.punched_bytes.values()) == 0
    assert phases["step0"][written.UNKNOWN] == 0
