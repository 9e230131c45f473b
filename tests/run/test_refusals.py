"""Requests that are refused before anything is created."""

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fscost.errors import FscostError, HostError, InputError
from fscost.lab.fake import FakeLab
from fscost.profile.model import Profile
from fscost.run import (
    Local,
    RunOutcome,
    RunSpec,
    StoppingRule,
    default_folder,
    estimate,
    execute,
    lock,
)
from fscost.run.lock import exclusive
from fscost.workload.model import Step

Make = Callable[..., RunSpec]
Go = Callable[..., RunOutcome]


@pytest.mark.parametrize(
    ("other", "words"),
    [
        ({"profiles": ()}, "no profile"),
        ({"profiles": (Profile("xfs", "xfs"), Profile("xfs", "xfs"))}, "named twice"),
        ({"profiles": (Profile("x\x1b[31m", "xfs"),)}, "cannot be printed"),
        ({"baseline": "zfs"}, "is not one of the profiles"),
        ({"disk_size_bytes": 4096}, "cannot be made"),
        ({"disk_size_bytes": (1 << 30) + 1}, "cannot be made"),
        ({"disk_size_bytes": 2 << 40}, "cannot be made"),
        ({"disk_size_bytes": 64 << 20}, "too small for two-steps"),
        ({"keep": "some"}, "--keep 'some'"),
        ({"settle": "never"}, "--settle 'never'"),
        ({"probe_interval_ms": 0}, "--probe 0"),
    ],
)
def test_specs_that_cannot_be(spec: Make, other: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError) as caught:
        spec(**other)
    assert words in caught.value.what
    assert caught.value.remedy


@pytest.mark.parametrize(
    "rule",
    [
        {"min_repetitions": 0},
        {"min_repetitions": 5, "max_repetitions": 4},
        {"max_minutes": 0},
        {"max_minutes": float("nan")},
        {"precision": 0},
        {"precision": 1.0},
        {"metric": "speed"},
        {"metric": "pause_s_p99"},
    ],
)
def test_stopping_rules_that_cannot_be(rule: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        StoppingRule(**rule)


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("mkfs", "is reserved"),
        ("mount", "is reserved"),
        ("total", "is reserved"),
        ("write", "is used twice"),
    ],
)
def test_steps_need_names_of_their_own(spec: Make, name: str, fault: str) -> None:
    workload = spec().workload
    with pytest.raises(InputError, match=f"the step name '{name}' {fault}"):
        spec(workload=replace(workload, steps=(*workload.steps, Step(name, "true"))))


def test_the_disk_grows_with_the_workload(spec: Make) -> None:
    assert spec(workload=replace(spec().workload, disk_bytes=6 << 30)).disk_size_bytes == 6 << 30


@pytest.mark.parametrize(("keep", "recordings"), [("all", 30), ("one", 4), ("none", 1)])
def test_the_host_disk_that_a_run_needs(spec: Make, keep: str, recordings: int) -> None:
    found = estimate.estimate(spec(keep=keep, stopping=StoppingRule()), FakeLab(delay_s=1), 3)
    assert found.host_bytes == recordings << 20
    assert (found.cells_min, found.cells_max) == (9, 30)
    assert 0 < found.seconds_min <= found.seconds_max <= 15 * 60


def test_a_command_of_unknown_size_needs_an_unknown_amount(spec: Make) -> None:
    assert (
        estimate.estimate(
            spec(workload=replace(spec().workload, write_bytes_estimate=None)), FakeLab(), 3
        ).host_bytes
        is None
    )


def test_too_little_host_disk_is_refused(spec: Make, go: Go) -> None:
    with pytest.raises(HostError, match=r"the run may need .* MiB for recordings"):
        go(spec(workload=replace(spec().workload, write_bytes_estimate=1 << 60)))
    assert not spec().folder.exists()


@pytest.mark.parametrize(
    ("size", "free", "is_refused"),
    [
        (40 << 30, (2 << 30) + (300 << 20), False),
        (40 << 30, 2 << 30, True),
        (4 << 40, (4 << 30) + (300 << 20), False),
    ],
)
def test_what_a_recording_leaves_to_others_is_not_counted_as_free(
    spec: Make, go: Go, monkeypatch: pytest.MonkeyPatch, size: int, free: int, is_refused: bool
) -> None:
    """The disk server stops below 5 % free space or 4 GiB, so a run that would get there is refused
    before its first cell."""
    usage = SimpleNamespace(total=size, free=free)
    monkeypatch.setattr(estimate, "disk_usage", lambda _: usage)
    if not is_refused:
        assert go(spec()).exit_code == 0
        return
    with pytest.raises(
        HostError, match=r"2,048 MiB free, of which 2,048 MiB are kept for other programs"
    ):
        go(spec())
    assert not spec().folder.exists()


def test_too_little_memory_is_refused(spec: Make, go: Go, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(estimate, "memory_available_bytes", lambda: 300 << 20)
    with pytest.raises(HostError, match="only 300 MiB of memory"):
        go(spec())
    assert not spec().folder.exists()


def test_memory_is_read_from_the_kernel(tmp_path: Path) -> None:
    meminfo = tmp_path / "meminfo"
    meminfo.write_text("MemTotal:  100 kB\nMemAvailable:    42 kB\n")
    assert estimate.memory_available_bytes(meminfo) == 42 * 1024
    assert estimate.memory_available_bytes(tmp_path / "nothing") is None


def test_two_runs_at_once_refuse_and_the_first_goes_on(spec: Make, tmp_path: Path) -> None:
    name = f"fscost.test.{os.getpid()}.{tmp_path.name}"
    with exclusive(name), pytest.raises(HostError, match="another fscost run"):
        execute(spec(), Local(FakeLab()), lock=name)
    assert not spec().folder.exists()
    assert execute(spec(), Local(FakeLab()), lock=name).exit_code == 0


def test_the_lock_says_who_holds_it_and_leaves_nothing(tmp_path: Path) -> None:
    name = f"fscost.test.{os.getpid()}.{tmp_path.name}"
    with (
        exclusive(name),
        pytest.raises(HostError, match=rf"\(process {os.getpid()}, since "),
        exclusive(name),
    ):
        pass
    assert not lock._path(name).exists()


def test_what_another_user_can_take_keeps_nobody_from_running(tmp_path: Path) -> None:
    """Any user can bind the name of an abstract socket, and the lock used to be one."""
    name = f"fscost.test.{os.getpid()}.{tmp_path.name}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as theirs:
        theirs.bind(f"\0{name}")
        with exclusive(name):
            pass


def test_a_link_in_place_of_the_lock_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    victim = tmp_path / "victim"
    victim.write_text("theirs")
    monkeypatch.setattr(lock, "_path", lambda name: tmp_path / name)
    (tmp_path / "lock").symlink_to(victim)
    with pytest.raises(HostError, match="cannot be opened"), exclusive("lock"):
        pass
    assert victim.read_text() == "theirs"


@pytest.mark.root
def test_another_users_run_gives_way_to_roots(tmp_path: Path) -> None:
    name = f"fscost.test.{os.getpid()}.{tmp_path.name}"
    with exclusive(name):
        os.seteuid(65534)
        try:
            with (
                pytest.raises(HostError, match=rf"\(process {os.getpid()}, since "),
                exclusive(name),
            ):
                pass
        finally:
            os.seteuid(0)


def test_the_lock_goes_with_its_process(tmp_path: Path) -> None:
    name = f"fscost.test.{os.getpid()}.{tmp_path.name}"
    code = (
        f"import time\nfrom fscost.run.lock import exclusive\nwith exclusive({name!r}):\n   "
        " print('held', flush=True)\n    time.sleep(60)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(HostError), exclusive(name):
            pass
        holder.send_signal(signal.SIGKILL)
    with exclusive(name):
        pass


def test_a_lock_that_is_no_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock, "_path", lambda name: tmp_path / name)
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(HostError, match="fifo is not a regular file"), exclusive("fifo"):
        pass


def test_a_lock_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock, "_path", lambda name: tmp_path / name)
    (tmp_path / "lock").touch()
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    with pytest.raises(HostError, match=f"lock belongs to user {os.getuid()}"), exclusive("lock"):
        pass


def test_a_lab_that_cannot_run_says_so_first(spec: Make, go: Go) -> None:
    class NoRoot(FakeLab):
        def check(self) -> None:
            raise HostError("this is user 1000; mounting needs root", "sudo")

    with pytest.raises(FscostError, match="mounting needs root"):
        go(spec(), NoRoot())
    assert not spec().folder.exists()


def test_a_folder_that_cannot_be_made_is_refused(spec: Make, go: Go, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(FscostError):
        go(spec(folder=tmp_path / "file" / "run"))
    with pytest.raises(InputError, match="is not a folder"):
        go(spec(folder=tmp_path / "file"))


def test_the_default_folder_is_a_time_and_a_name() -> None:
    folder = default_folder("make -j2; rm ../x")
    assert folder.parent == Path("fscost-runs")
    assert re.fullmatch(r"\d{4}-\d\d-\d\d-\d{4}-make-j2-rm-\.\.-x", folder.name)
