"""`fscost calibrate` finds back the figures of a disk that is served with a known model."""

import os
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.calibrate.conftest import Served
from tests.cli.conftest import Fscost, fscost
from tests.loop_devices import attached_file

from fscost import latency
from fscost.calibrate import toml
from fscost.calibrate.fio import Answer

__all__ = ["fscost"]
MIB = 1 << 20
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


@pytest.mark.root
@pytest.mark.slow
def test_a_flash_device_is_found_back(fscost: Fscost, served: Served, tmp_path: Path) -> None:
    node = served(FLASH, 256 * MIB)
    arguments = ["--write", "--erase-device", str(node), "--seconds", "1.5", "--kind", "flash"]
    fscost("calibrate", str(node), *arguments, "--out", "mine.toml")
    found, known = values((tmp_path / "mine.toml").read_text()), values(FLASH)
    read_us = known["command_us"] + known["page_read_us"] + 4096 / 200
    assert found["command_us"] + found["page_read_us"] == pytest.approx(read_us, rel=0.1)
    moved_us = 16384 / 200
    assert found["program_us"] == pytest.approx(known["program_us"] + moved_us, rel=0.1)
    assert found["write_us"] + found["command_us"] == pytest.approx(2400, rel=0.15)
    assert found["discard_us"] == pytest.approx(known["discard_us"], rel=0.1)
    rate = found["interface_bytes_per_s"]
    assert 0.85 < rate / known["interface_bytes_per_s"] < 1.05
    programmed = found["program_bytes"] / found["program_us"] * found["channels"]
    expected = 16384 / (known["program_us"] + moved_us) * known["channels"]
    assert 0.85 < programmed / expected < 1.1
    assert found["queue_depth"] == 32
    sources = latency.find(str(tmp_path / "mine.toml")).sources
    assert sources["page_read_us"].startswith("measured with fio ")
    assert str(node) in sources["page_read_us"]
    assert fscost("devices", str(tmp_path / "mine.toml")).stdout.count("source:") > 8


@pytest.mark.root
@pytest.mark.slow
def test_a_hard_disk_is_found_back(fscost: Fscost, served: Served) -> None:
    model = latency.find("hdd-7200")
    known = model.values
    node = served(model.text, known["capacity_bytes"] // 4096 * 4096)
    found = values(fscost("calibrate", str(node), "--kind", "hard-disk", "--seconds", "3").stdout)
    # Sequential reads: tracks of the heads of a cylinder, then the next cylinder.
    lost_us = ((known["heads"] - 1) * known["head_switch_us"] + known["track_seek_us"]) / known[
        "heads"
    ]
    for end in ("outer", "inner"):
        rate = found[f"{end}_track_bytes"] / (60e6 / 7200 + found["track_seek_us"])
        expected = known[f"{end}_track_bytes"] / (60e6 / 7200 + lost_us)
        assert 0.85 < rate / expected < 1.1
    mean_us = [
        each["track_seek_us"] + 8 / 15 * (each["full_seek_us"] - each["track_seek_us"])
        for each in (found, known)
    ]
    assert mean_us[0] / mean_us[1] == pytest.approx(1, rel=0.1)
    assert found["full_seek_us"] / known["full_seek_us"] == pytest.approx(1, rel=0.25)


@pytest.mark.root
def test_without_write_nothing_is_written(fscost: Fscost, empty: Path) -> None:
    before = Path(f"/sys/block/{empty.name}/stat").read_text().split()
    said = fscost("calibrate", str(empty), "--seconds", "0.5", "--kind", "flash")
    after = Path(f"/sys/block/{empty.name}/stat").read_text().split()
    written, discarded = 6, 13
    assert [after[each] for each in (written, discarded)] == [before[each] for each in (6, 13)]
    assert int(after[2]) > int(before[2])
    assert "writes were not measured (--write)" in said.stdout


@pytest.mark.root
def test_out_is_replaced_if_it_is_a_file(fscost: Fscost, empty: Path, tmp_path: Path) -> None:
    words = ["calibrate", str(empty), "--seconds", "0.5", "--kind", "flash", "--out"]
    (tmp_path / "file.toml").write_text("old")
    (tmp_path / "folder.toml").mkdir()
    (tmp_path / "link.toml").symlink_to("file.toml")
    said = fscost(*words, "folder.toml", check=(2,)).stderr
    assert "folder.toml" in said
    assert "measurements" not in said  # refused before the work
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
    assert "goes with --write" in refused(node, "--erase-device", node)
    assert "goes with --write" in refused(node, "--force")
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
    assert direct["buffer_bytes"] == 0
    assert direct["program_us"] == pytest.approx(1000 - 10 - 8.192)
    assert direct["flush_us"] == 10
