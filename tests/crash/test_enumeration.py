"""The states of all cuts: each image once, in bounded memory."""

import struct
from pathlib import Path

import pytest
from tests.recordings import WRITE, Body, write

from fscost import capture
from fscost.crash import explore
from fscost.errors import InputError

_UNITS = 40


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    """Return many pending blocks with different contents."""
    content = b"".join(f"block {number}".encode().ljust(4096) for number in range(_UNITS))
    events = [
        struct.pack("<QQQQIHBB", at, at, 4096 * at, 4096, at * 4096, 0, WRITE, 0)
        for at in range(_UNITS)
    ]
    return write(tmp_path / "recording", [(1, Body(events, content))], size=1 << 20)


def test_each_image_is_planned_once(recording: Path) -> None:
    crash, limits = capture.crash(recording), explore.Limits(states_per_cut=100)
    plan = explore.planned(crash, [10, 20, 20, 40], limits)
    images = [
        identity
        for at_ns in (10, 20, 20, 40)
        for _, _, identity in crash.states(at_ns, limits.device, 100, limits.seed)
    ]
    assert plan.tried == len(images)
    assert len(plan.states) == len(set(images)) < len(images)
    assert [list(each.kept) for each in plan.states if each.how == "none"] == [[]]


def test_too_many_states_are_refused(recording: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(explore, "_MOST_PLAN_BYTES", 1 << 20)
    crash, limits = capture.crash(recording), explore.Limits(states_per_cut=100_000)
    with pytest.raises(InputError, match="more than 1 MiB of memory") as found:
        explore.planned(crash, [40], limits)
    assert "fewer --cuts or --states" in str(found.value.remedy)
