"""N4 of the security review: a disk that would take minutes and gigabytes, and a replay that no
signal ended."""

import signal
from pathlib import Path
from types import FrameType

import pytest

from fscost.errors import InputError
from fscost.wear import Place, Source, find, measure, trace_sources

TIB = 1 << 40


class AlarmedError(Exception):
    pass


def source(path: Path, end_bytes: int) -> Source:
    """Return a trace of one write, which ends at this address."""
    path.write_text(f"128166372003061629,mds,0,Write,{end_bytes - 4096},4096,1\n")
    [found] = trace_sources(path, find("nvme"), None)
    return found


def test_a_disk_beyond_the_budget_is_refused(tmp_path: Path) -> None:
    device = find("nvme")
    with pytest.raises(InputError, match="536,870,912 units") as raised:
        measure(source(tmp_path / "t.csv", 2 * TIB), device)
    assert "--place footprint" in str(raised.value.remedy)
    assert measure(source(tmp_path / "t.csv", 2 * TIB), device, place=Place.FOOTPRINT).is_steady


def test_the_upper_end_of_a_large_disk_is_not_computed_unasked(tmp_path: Path) -> None:
    """Four device writes at random would take a minute for a stray address at 100 GB."""
    device = find("sata-ssd")
    small, large = (source(tmp_path / f"{mib}.csv", mib << 20) for mib in (64, 9 << 10))
    assert measure(small, device).roaming_nand_write_bytes is not None
    assert measure(large, device).roaming_nand_write_bytes is None


def test_a_signal_ends_a_replay(tmp_path: Path) -> None:
    """A replay that looks for no signal returns first, after seconds."""

    def alarmed(_number: int, _frame: FrameType | None) -> None:
        raise AlarmedError

    before = signal.signal(signal.SIGALRM, alarmed)
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    try:
        with pytest.raises(AlarmedError):
            measure(source(tmp_path / "t.csv", TIB // 8), find("nvme"))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
