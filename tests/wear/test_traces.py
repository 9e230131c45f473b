"""Durations of traces, which decide how often a workload runs a day."""

from pathlib import Path

import pytest

from fscost.cli.app import command
from fscost.errors import InputError
from fscost.wear import find, measure, trace_sources

IOLOG = """fio version 3 iolog
0 /dev/a add
100 /dev/a open
100 /dev/a write 0 4096
200 /dev/a write 4096 4096
300 /dev/b write 0 4096
10000000 /dev/a close
"""


def test_idle_time_before_the_last_line_counts_for_every_disk(tmp_path: Path) -> None:
    """F2: two writes within 100 µs and `close` at 10 s were 864 million runs a day."""
    (tmp_path / "t").write_text(IOLOG)
    found = trace_sources(tmp_path / "t", find("nvme"), None)
    assert [(source.disk, source.seconds) for source in found] == [("/dev/a", 10), ("/dev/b", 10)]


def test_a_window_is_longer_than_its_trace(tmp_path: Path) -> None:
    (tmp_path / "t").write_text(IOLOG)
    found = trace_sources(tmp_path / "t", find("nvme"), None, window_s=60)
    assert [source.seconds for source in found] == [60, 60]
    with pytest.raises(InputError, match="shorter than the trace, which lasts 10 s"):
        trace_sources(tmp_path / "t", find("nvme"), None, window_s=9)


def test_waits_of_the_older_version_count(tmp_path: Path) -> None:
    (tmp_path / "t").write_text(
        "fio version 2 iolog\na add\na write 0 4096\na wait 5000000 0\na close\n"
    )
    [found] = trace_sources(tmp_path / "t", find("nvme"), None)
    assert found.seconds == 5


def test_a_trace_without_requests_is_refused(tmp_path: Path) -> None:
    """F4: it ended with an IndexError."""
    (tmp_path / "t").write_text("9,127 1 0 0.000000000 0 m N md\n")
    with pytest.raises(InputError, match="has no requests"):
        trace_sources(tmp_path / "t", find("nvme"), None)


def test_the_size_of_the_disk_replaces_the_highest_address(tmp_path: Path) -> None:
    (tmp_path / "t").write_text("0,1000,4096,w,0.5\n0,1008,4096,w,1.5\n")
    device = find("nvme")
    for disk_bytes, expected in ((None, 1016 * 512), (1 << 30, 1 << 30)):
        [found] = trace_sources(tmp_path / "t", device, None, disk_bytes=disk_bytes)
        assert measure(found, device).disk_bytes == expected
    with pytest.raises(InputError, match="ends at byte 520,192, beyond --disk-size 65,536"):
        trace_sources(tmp_path / "t", device, None, disk_bytes=1 << 16)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("0,8,4096,R,0.5", "this workload writes nothing."),
        ("0,8,4096,W,0.5", "the device's write buffer holds all"),
    ],
)
def test_what_wears_nothing_is_told(
    tmp_path: Path, line: str, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "t").write_text(f"{line}\n")
    fscost = command("wear").main
    arguments = [str(tmp_path / "t"), "--ssd", "nvme-datacentre", "--disk-size", "64M"]
    fscost([*arguments, "--per-day", "1GB"], standalone_mode=False)
    assert f"No wear: {says}" in capsys.readouterr().out


def test_stray_addresses_and_missing_times_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The model of a card of 32 GB had 95 GiB, and a trace without times "no wear"."""
    (tmp_path / "t").write_text(
        "fio version 2 iolog\na add\na write 0 4096\na write 102000000000 4096\na close\n"
    )
    fscost = command("wear").main
    fscost([str(tmp_path / "t"), "--ssd", "sd-card-32gb"], standalone_mode=False)
    said = " ".join(capsys.readouterr().out.split())
    assert "runs of the workload, if its NAND endures 3,000 cycles. The trace has no times" in said
    assert "Caution: the disk has 102 GB, more than the device (32 GB)" in said
