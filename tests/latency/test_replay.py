"""Recordings replayed on models: the printed figures add up, and the models rank like the
devices."""

import csv
import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fscost import capture, latency
from fscost.errors import InputError
from fscost.latency import Latencies

PROGRAM = Path(sys.executable).with_name("fscost")
RECORDING = (
    Path(__file__).resolve().parents[2]
    / "crates"
    / "explain"
    / "tests"
    / "data"
    / "ext"
    / "ext4.fscost"
)


def fscost(*words: str) -> str:
    found = subprocess.run([PROGRAM, *words], check=True, capture_output=True, text=True)
    return found.stdout


def replayed(model: str) -> latency.Replay:
    return latency.replay(RECORDING, {"main": latency.find(model)})


def test_percentiles_are_upper_ends_of_buckets_and_no_more_than_the_largest() -> None:
    found = Latencies([(1, 1, 50), (10, 19, 49), (100, 199, 1)], 1000, 120)
    assert (found.count, found.mean_ns) == (100, 10)
    assert [found.percentile_ns(each) for each in (0, 50, 51, 99, 100)] == [1, 1, 19, 19, 120]
    assert (Latencies().mean_ns, Latencies().percentile_ns(50)) == (None, None)


def test_sums_of_latencies_keep_every_request() -> None:
    one = Latencies([(1, 1, 5), (8, 9, 1)], 13, 8)
    two = Latencies([(1, 1, 2), (4, 4, 1)], 6, 4)
    assert one + two == Latencies([(1, 1, 7), (4, 4, 1), (8, 9, 1)], 19, 8)


def test_every_request_of_the_measured_phases_is_replayed() -> None:
    from fscost import analyze

    phases = analyze.measured_phases(RECORDING)
    recorded = [each.disks["main"] for each in capture.intervals(RECORDING) if each.name in phases]
    found = replayed("sata-ssd")
    (disk,) = found.disks
    assert disk.latencies["write"].count > 100
    assert disk.latencies["flush"].count > 0
    names = {"read": "read_requests", "write": "write_requests", "flush": "flushes"}
    for op, name in names.items():
        assert disk.latencies[op].count == sum(each[name] for each in recorded), op


def test_slower_devices_take_longer_and_the_bound_is_below() -> None:
    found = {name: replayed(name) for name in ("ram", "nvme", "sata-ssd", "hdd-7200")}
    closed = [each.closed_s for each in found.values()]
    least = [each.least_s for each in found.values()]
    assert closed == sorted(closed)
    assert least == sorted(least)
    for each in found.values():
        assert each.least_s <= each.closed_s
        assert each.disks[0].utilisation is not None
        assert 0 <= each.disks[0].utilisation <= 1
    assert found["ram"].closed_s <= found["ram"].recorded_s
    extra = {name: each.closed_s - found["ram"].closed_s for name, each in found.items()}
    assert extra["hdd-7200"] > 3 * extra["nvme"]


def test_the_command_prints_the_same_in_each_form() -> None:
    words = ("replay", str(RECORDING), "--disk", "main=hdd-7200")
    found: dict[str, Any] = json.loads(fscost(*words, "--json"))
    (entry,) = found["entries"]
    expected = replayed("hdd-7200")
    assert (entry["modelled_s"], entry["modelled_least_s"]) == (expected.closed_s, expected.least_s)
    (disk,) = entry["disks"]
    assert disk["model"] == "hdd-7200"
    buckets = disk["latency_histograms"]["flush"]
    assert sum(count for _, _, count in buckets) == expected.disks[0].latencies["flush"].count
    (row,) = csv.DictReader(io.StringIO(fscost(*words, "--csv", "-")))
    assert float(row["modelled_s"]) == expected.closed_s
    assert float(row["flush_latency_ns_p99"]) == disk["flush_latency_ns_p99"]
    for text in (fscost(*words), fscost(*words, "--markdown", "-")):
        assert "main = hdd-7200" in text
        assert "at least" in text
        assert "flush" in text


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        (["hdd-7200"], "--disk 'hdd-7200' is not NAME=MODEL"),
        (["main="], "--disk 'main=' is not NAME=MODEL"),
        (["a=ram", "a=nvme"], "--disk a is given twice"),
        (["a=hdd"], "unknown device 'hdd'"),
        (["a=intel-x25-m-80gb"], r"device 'intel-x25-m-80gb' has no section \[latency\]"),
    ],
)
def test_a_wrong_disk_is_refused_by_name(asked: list[str], says: str) -> None:
    with pytest.raises(InputError, match=says) as error:
        latency.parse_models(asked)
    assert error.value.remedy


def test_a_disk_that_was_not_recorded_is_refused() -> None:
    with pytest.raises(InputError, match="has no disk 'journal'"):
        latency.replay(RECORDING, {"journal": latency.find("nvme")})


def test_a_run_recorded_on_a_model_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from fscost.cli import replay as command
    from fscost.cli.kept import Kept

    kept = Kept(RECORDING, "ext4", device_models={"main": "hdd-7200"})
    monkeypatch.setattr(command, "every_kept", lambda *_, **__: [kept])
    with pytest.raises(
        InputError, match=r"ext4 \(repetition 0\) was recorded with modelled disk times"
    ) as error:
        command.replay(tmp_path, ["main=nvme"])
    assert "without --disk" in error.value.remedy


def test_the_answer_tells_which_time_is_whose() -> None:
    """For a queue, *in order* is several times too long, and *at least* the useful one."""
    shown = fscost("replay", str(RECORDING), "--disk", "main=hdd-7200")
    lead = shown.split("\n\n")[1]
    found = replayed("hdd-7200")
    words = " ".join(lead.split())
    assert words.startswith(f"{found.least_s:.3g} s if the program queues its requests"), words
    assert words.endswith(f"; {found.closed_s:.3g} s if it waits for each."), words
    shown = fscost("replay", str(RECORDING), "--disk", "main=ram")
    assert "whether or not requests are queued." in shown.split("\n\n")[1]


CONSTANT = "[latency]\nmodel = 'constant'\n"


def traced(folder: Path, text: str, latency_us: int) -> latency.Replay:
    (folder / "t").write_text(text)
    (folder / "d.toml").write_text(f"{CONSTANT}read_us = {latency_us}\nwrite_us = {latency_us}\n")
    return latency.replay_trace(folder / "t", {"0": latency.find(str(folder / "d.toml"))})


def test_a_trace_is_replayed_at_its_own_times_or_one_after_the_other(tmp_path: Path) -> None:
    # Four writes of 100 ms, 10 ms apart: all but the last begin before the one before has ended.
    text = "".join(f"0,{at},4096,w,{5 + at / 100:.2f}\n" for at in range(4))
    found = traced(tmp_path, text, 100_000)
    assert found.recorded_s == pytest.approx(0.03)
    assert found.least_s == pytest.approx(0.13)
    assert found.closed_s == pytest.approx(0.43)
    assert found.disks[0].latencies["write"].count == 4


def test_a_disk_that_a_trace_does_not_have_is_refused(tmp_path: Path) -> None:
    (tmp_path / "t").write_text("0,8,4096,w,0.5\n")
    with pytest.raises(InputError, match="has no disk 'main'") as raised:
        latency.replay_trace(tmp_path / "t", {"main": latency.find("nvme")})
    assert raised.value.remedy == "name one of its disks: 0"
    (tmp_path / "t").write_text("9,127 1 0 0.000000000 0 m N md\n")
    with pytest.raises(InputError, match="has no requests"):
        latency.replay_trace(tmp_path / "t", {})
