"""`fscost calibrate` recovers the figures of a disk that is served with a known model."""

import contextlib
import os
import shlex
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.calibrate.conftest import served_device
from tests.calibrate.seen import Seen, flash_jobs, hard_disk_jobs, requests
from tests.cli.conftest import Fscost, fscost
from tests.loop_devices import attached_file

from fscost import latency
from fscost.calibrate import fio, toml
from fscost.calibrate.fio import Answer

__all__ = ["fscost"]
MIB = 1 << 20
REVOLUTION_US = 60e6 / 7200
RATES = ("channel_bytes_per_s", "interface_bytes_per_s")
FLASH = """
[latency]
model = "flash"
queue_depth = 32
command_us = 400
interface_bytes_per_s = 40_000_000
channel_bytes_per_s = 200_000_000
channels = 16
page_bytes = 16384
page_read_us = 4000
program_bytes = 16384
program_us = 12000
write_us = 2000
discard_us = 5000
buffer_bytes = 1048576
"""


@pytest.fixture
def empty(tmp_path: Path) -> Iterator[Path]:
    image = tmp_path / "image"
    image.write_bytes(b"\xff" * 32 * MIB)
    with attached_file(image) as node:
        yield node


def values(text: str) -> dict[str, Any]:
    section = tomllib.loads(text)["latency"]
    return {
        name: each["value"] if isinstance(each, dict) else each for name, each in section.items()
    }


def within(value: float, lowest: float, highest: float) -> bool:
    return lowest <= value <= highest  # pytest prints the three if this is false


@pytest.mark.root
@pytest.mark.long
def test_a_flash_device_is_measured_and_found_back(fscost: Fscost, tmp_path: Path) -> None:
    with served_device(FLASH, 256 * MIB, tmp_path) as node:
        arguments = ["--write", "--erase-device", str(node), "--seconds", "3", "--kind", "flash"]
        fscost("calibrate", str(node), *arguments, "--out", "mine.toml")
        ended_unix_ns = time.time_ns()
    jobs = flash_jobs(requests(tmp_path, ended_unix_ns))
    found = values((tmp_path / "mine.toml").read_text())
    command_us, rate = found["command_us"], found["interface_bytes_per_s"]
    moved_us = {name: 4096 / found[name] * 1e6 for name in RATES}
    measured_us = {
        "random-read": found["page_read_us"] + command_us + moved_us["channel_bytes_per_s"],
        "random-write": found["write_us"] + command_us + moved_us["interface_bytes_per_s"],
        "synced-write": found["program_us"] + command_us,
        "discard": found["discard_us"] + command_us,
    }
    for name, us in measured_us.items():
        assert within(us, *jobs[name].latency_us()), name
    programmed = found["program_bytes"] / found["program_us"] * found["channels"] * 1e6
    for name, bytes_per_s in (
        ("deep-random-read", 4096e6 / command_us),
        ("sequential-read", rate),
        ("sequential-write", programmed),
    ):
        lowest, highest = jobs[name].bytes_per_s(settled=name == "sequential-write")
        assert within(bytes_per_s, lowest * 0.85, highest * 1.15), name
    assert found["queue_depth"] == 32
    sources = latency.find(str(tmp_path / "mine.toml")).sources
    assert sources["page_read_us"].startswith("measured with fio ")
    assert str(node) in sources["page_read_us"]
    assert fscost("devices", str(tmp_path / "mine.toml")).stdout.count("source:") > 8
    check_flash({name: job.modelled() for name, job in jobs.items()})


def check_flash(modelled: dict[str, Answer]) -> None:
    """Check that the model's figures are recovered from the model's own times. Rates at full queues
    are computed from the model's figures."""
    known = values(FLASH)
    dies_per_s = known["channels"] / (known["program_us"] + 16384 / 200) * 1e6
    for name, bytes_per_s in (
        ("deep-random-read", 4096e6 / known["command_us"]),
        ("sequential-read", known["interface_bytes_per_s"]),
        ("sequential-write", 16384 * dies_per_s),
    ):
        modelled[name] = replace(modelled[name], bytes_per_s=bytes_per_s)
    found = flash(modelled)
    assert found["command_us"] == pytest.approx(known["command_us"])
    assert found["page_read_us"] == pytest.approx(known["page_read_us"], rel=0.02)
    assert found["program_us"] == pytest.approx(known["program_us"] + 16384 / 200, rel=0.02)
    assert found["write_us"] == pytest.approx(known["write_us"], rel=0.02)
    assert found["discard_us"] == pytest.approx(known["discard_us"], rel=0.02)
    programmed = found["program_bytes"] / found["program_us"] * found["channels"] * 1e6
    assert programmed == pytest.approx(16384 * dies_per_s, rel=0.1)


@pytest.mark.root
@pytest.mark.long
def test_a_hard_disk_is_measured_and_found_back(fscost: Fscost, tmp_path: Path) -> None:
    model = latency.find("hdd-7200")
    known = model.values
    size_bytes = known["capacity_bytes"] // 4096 * 4096
    with served_device(model.text, size_bytes, tmp_path) as node:
        words = ["--kind", "hard-disk", "--seconds", "2"]
        found = values(fscost("calibrate", str(node), *words).stdout)
        ended_unix_ns = time.time_ns()
    jobs = hard_disk_jobs(requests(tmp_path, ended_unix_ns), size_bytes)
    assert within(found["command_us"], *jobs["same-read"].latency_us(mean=True))
    for end in ("outer", "inner"):
        rate = found[f"{end}_track_bytes"] / (REVOLUTION_US + found["track_seek_us"]) * 1e6
        lowest, highest = jobs[f"{end}-read"].bytes_per_s()
        assert within(rate, lowest * 0.85, highest * 1.15), end
    if found["track_seek_us"] > 0:  # else the host took longer than half a revolution
        whole_us = mean_seek_us(found) + found["command_us"] + REVOLUTION_US / 2
        assert within(whole_us, *jobs["random-read"].latency_us(mean=True))
    check_hard_disk({name: job.modelled() for name, job in jobs.items()}, known, size_bytes, jobs)


def mean_seek_us(disk: Mapping[str, Any]) -> float:
    return float(disk["track_seek_us"] + 8 / 15 * (disk["full_seek_us"] - disk["track_seek_us"]))


def check_hard_disk(
    modelled: dict[str, Answer], known: Mapping[str, Any], size_bytes: int, jobs: Mapping[str, Seen]
) -> None:
    """Check a hard disk as `check_flash` does. Sequential reads cover the tracks of all heads of a
    cylinder, then the next cylinder."""
    heads = known["heads"]
    lost_us = ((heads - 1) * known["head_switch_us"] + known["track_seek_us"]) / heads
    for end in ("outer", "inner"):
        rate = known[f"{end}_track_bytes"] / (REVOLUTION_US + lost_us) * 1e6
        modelled[f"{end}-read"] = replace(modelled[f"{end}-read"], bytes_per_s=rate)
    text = toml("hard-disk", modelled, size_bytes=size_bytes, rpm=7200, measured="m", summary="s")
    found = values(text)
    # The mean over so few random seeks and revolutions is no more precise than this.
    apart = 1.5 / min(len(jobs[name].rows) for name in ("random-read", "short-random-read")) ** 0.5
    assert mean_seek_us(found) == pytest.approx(mean_seek_us(known), rel=apart)
    assert found["full_seek_us"] == pytest.approx(known["full_seek_us"], rel=2.5 * apart)
    for end in ("outer", "inner"):
        ratio = found[f"{end}_track_bytes"] / known[f"{end}_track_bytes"]
        assert 0.85 < ratio < 1.25, end


@pytest.mark.root
def test_without_write_nothing_is_written(fscost: Fscost, empty: Path) -> None:
    before = Path(f"/sys/block/{empty.name}/stat").read_text().split()
    said = fscost("calibrate", str(empty), "--seconds", "0.5", "--kind", "flash")
    after = Path(f"/sys/block/{empty.name}/stat").read_text().split()
    written, discarded = 6, 13
    assert [after[each] for each in (written, discarded)] == [before[each] for each in (6, 13)]
    assert int(after[2]) > int(before[2])
    assert "writes were not measured (--write)" in said.stdout


def reads(node: Path) -> int:
    return int(Path(f"/sys/block/{node.name}/stat").read_text().split()[0])


@pytest.mark.root
def test_ctrl_c_ends_fio_too(empty: Path) -> None:
    """fio's jobs are processes in sessions of their own, which went on reading or writing."""
    program = Path(sys.executable).with_name("fscost")
    words = [str(program), "calibrate", str(empty), "--kind", "flash"]
    with subprocess.Popen([*words, "--seconds", "60"], stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        assert any(b"random-read" in line for line in iter(process.stderr.readline, b""))
        looked = reads(empty)
        while reads(empty) == looked:  # until the job runs
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        assert process.stderr.read() == b"fscost: interrupted\n"
    assert process.returncode == 130
    assert not [words for words in command_lines() if f"--filename={empty}".encode() in words]


def command_lines() -> Iterator[list[bytes]]:
    """Yield the words of every process, as long as it runs (proc_pid_cmdline(5))."""
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            yield file.read_bytes().split(b"\0")


@pytest.mark.root
def test_out_is_replaced_if_it_is_a_file(fscost: Fscost, empty: Path, tmp_path: Path) -> None:
    words = ["calibrate", str(empty), "--seconds", "0.5", "--kind", "flash", "--out"]
    (tmp_path / "file.toml").write_text("old")
    (tmp_path / "folder.toml").mkdir()
    (tmp_path / "link.toml").symlink_to("file.toml")
    said = fscost(*words, "folder.toml", check=(2,)).stderr
    assert "folder.toml" in said
    assert "measurements" not in said  # refused before any work
    fscost(*words, "link.toml")
    assert "page_read_us" in (tmp_path / "link.toml").read_text()
    fscost(*words, "file.toml")
    assert "page_read_us" in (tmp_path / "file.toml").read_text()
    assert sorted(each.name for each in tmp_path.glob("*.toml")) == [
        "file.toml",
        "folder.toml",
        "link.toml",
    ]


@pytest.mark.root
def test_dry_run_prints_every_command_and_runs_none(fscost: Fscost, empty: Path) -> None:
    before = Path(f"/sys/block/{empty.name}/stat").read_text().split()[2]
    words = ["--write", "--erase-device", str(empty), "--kind", "flash", "--dry-run"]
    lines = fscost("calibrate", str(empty), *words).stdout.splitlines()
    assert len(lines) == 7
    assert all("--runtime=5000ms" in line for line in lines)
    assert all(line.startswith("fio ") and f"--filename={empty}" in line for line in lines)
    assert ["--readonly" in line for line in lines] == [True] * 3 + [False] * 4
    # wipefs has looked.
    assert int(Path(f"/sys/block/{empty.name}/stat").read_text().split()[2]) - int(before) < 4096


@pytest.mark.root
def test_refusals(fscost: Fscost, empty: Path) -> None:
    def refused(*arguments: str) -> str:
        return " ".join(fscost("calibrate", *arguments, check=(2,)).stderr.split())

    node = str(empty)
    assert "calibrate --write" in refused(node, "--write")
    assert "names /dev/null" in refused(node, "--write", "--erase-device", "/dev/null")
    assert "requires --write" in refused(node, "--erase-device", node)
    assert "requires --write" in refused(node, "--force")
    assert "is unknown" in refused(node, "--kind", "tape")
    assert "out of range" in refused(node, "--seconds", "0.1")
    assert "out of range" in refused(node, "--rpm", "1")
    assert "does not end in .toml" in refused(node, "--out", "model")
    assert "is not a block device" in refused("/dev/null")
    hard_disk = ("--kind", "hard-disk", "--write", "--erase-device", node)
    assert "measures flash only" in refused(node, *hard_disk)
    holder = os.open(node, os.O_RDONLY | os.O_EXCL)
    try:
        assert f"{node} is in use" in refused(node)
    finally:
        os.close(holder)
    subprocess.run(["mkfs.ext4", "-q", node], check=True)
    assert "is not empty" in refused(node, "--write", "--erase-device", node)


def answers(**more: Answer) -> dict[str, Answer]:
    return {
        "random-read": Answer(100, 100, 40e6),
        "deep-random-read": Answer(320, 320, 4096e5),
        "sequential-read": Answer(1000, 1000, 500e6),
    } | {name.replace("_", "-"): answer for name, answer in more.items()}


def flash(found: dict[str, Answer]) -> dict[str, Any]:
    text = toml("flash", found, size_bytes=MIB, rpm=1, measured="m", summary='a "b" \\')
    return values(text)


def test_a_device_without_a_queue_has_none() -> None:
    slow = answers(deep_random_read=Answer(3200, 3200, 40.96e6))
    assert flash(slow)["queue_depth"] == 1
    assert flash(slow)["command_us"] == 0
    assert flash(answers())["queue_depth"] == 32
    assert flash(answers())["command_us"] == 10


def test_a_device_without_a_buffer_has_none() -> None:
    def written(write_us: float, sync_us: float) -> dict[str, Any]:
        return flash(
            answers(
                random_write=Answer(write_us, write_us, 1),
                synced_write=Answer(write_us, write_us, 1, sync_us),
                sequential_write=Answer(1, 1, 100e6),
            )
        )

    buffered, direct = written(30, 1000), written(1000, 20)
    assert buffered["program_us"] == 990
    assert buffered["buffer_bytes"] > 0
    assert "power_loss_protection" not in buffered
    assert direct["power_loss_protection"] is True
    assert direct["write_us"] == pytest.approx(1000 - 10 - 8.192)
    assert direct["flush_us"] == 10


def test_a_device_with_a_colon_is_one_file() -> None:
    for line in fio.commands(fio.WRITES, Path("/dev/a:b"), 1 << 30, 1):
        assert "--filename=/dev/a\\:b" in shlex.split(line)
