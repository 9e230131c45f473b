"""The native lab with a fake agent: its handling of everything that an agent may say."""

import dataclasses
import os
import signal
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fscost.errors import HostError, InputError
from fscost.lab.base import CellResult, LabOptions
from fscost.results import written


def value(result: Any, phase: str, metric: str, disk: str = "") -> float:
    [found] = [
        sample.value
        for sample in result.samples
        if (sample.phase, sample.metric, sample.disk) == (phase, metric, disk)
    ]
    return float(found)


def test_a_complete_cell_becomes_samples(stage: Any) -> None:
    stage.say(stage.good_events())
    stage.record()
    result = stage.run()
    assert (result.status, result.because) == ("done", "")
    assert stage.steps == ["mkfs", "mount", "unpack", "build"]
    assert value(result, "build", "device_write_bytes") == 12288
    assert value(result, "build", "write_amplification") == 2.0
    assert value(result, "build", "cpu_s") == pytest.approx(0.6)
    assert value(result, "build", "cpu_disk_server_s") == pytest.approx(0.4)
    assert {sample.phase: sample.measured for sample in result.samples} == {
        "mkfs": False,
        "mount": False,
        "unpack": False,
        "build": True,
    }
    assert not any(
        sample.phase == "mkfs" and sample.metric == "space_used_bytes" for sample in result.samples
    )
    assert result.facts["mount"]["mountinfo"].startswith("36 1 7:0")
    assert result.facts["inspect"] == {"superblock": "features: has_journal"}


def test_the_plan_is_what_the_protocol_says(stage: Any) -> None:
    stage.say(stage.good_events())
    stage.record()
    stage.run()
    plan = stage.plan()
    assert plan["version"] == 1
    assert plan["parent_pid"] == os.getpid()
    assert plan["disk_server"][1:] == [
        "serve",
        "--recording",
        str(stage.recording),
        "--disk",
        "main=1073741824,logical=512,physical=4096",
    ]
    assert plan["mkfs"] == [["mkfs.ext4", "-q", "{disk.main}"]]
    assert plan["mount"] == {
        "type": "ext4",
        "device": "{disk.main}",
        "options": "",
    }
    assert [step["env"] for step in plan["steps"]] == [
        {"FSCOST_SEED": "7"},
        {"FSCOST_SEED": "7", "JOBS": "2"},
    ]


def test_the_runs_settle_and_probe_are_for_phases_only(stage: Any) -> None:
    stage.say(stage.good_events())
    stage.record()
    stage.options = dataclasses.replace(
        stage.options, settle="remount", drop_caches=True, probe_interval_ms=5
    )
    assert stage.run().cell == stage.cell
    prepare, alone, phase = stage.plan()["steps"]
    assert (alone["name"], alone["measured"], alone["settle"], alone["probe_interval_ms"]) == (
        "probe-alone",
        False,
        "sync",
        5,
    )
    assert (prepare["settle"], prepare["drop_caches"], prepare["probe_interval_ms"]) == (
        "sync",
        False,
        None,
    )
    assert (phase["settle"], phase["drop_caches"], phase["probe_interval_ms"]) == (
        "remount",
        True,
        5,
    )


@pytest.mark.parametrize("keep", [True, False])
def test_a_recording_stays_only_when_asked_and_its_table_always(stage: Any, keep: bool) -> None:
    stage.say(stage.good_events())
    stage.record()
    result = stage.measure(keep)
    assert stage.recording.exists() is keep
    assert (result.recording is not None) is keep
    assert (stage.options.cell_dir / "requests.parquet").exists()


def test_a_recording_that_stays_is_packed(stage: Any) -> None:
    stage.say(stage.good_events())
    stage.record()
    stage.measure(keep=True)
    assert stage.recording.read_bytes() == b"packed"


def test_a_recording_that_cannot_be_packed_stays_as_it_is(stage: Any) -> None:
    stage.say(stage.good_events())
    stage.record()
    stage.native.pack_error = "no room"
    result = stage.measure(keep=True)
    assert result.status == "done"
    assert "no room" in result.facts["recording_not_packed"]
    assert [path.name for path in stage.options.cell_dir.glob("recording*")] == ["recording.fscost"]
    assert stage.recording.read_bytes() != b"packed"


def test_a_classifier_that_panics_costs_no_cell_and_keeps_the_recording(stage: Any) -> None:
    stage.say(stage.good_events())
    stage.record()
    stage.native.panic = "index out of bounds"
    result = stage.measure(keep=False)
    assert (result.status, result.recording) == ("done", stage.recording)
    assert stage.recording.exists()
    because = result.facts["not_explained"]
    assert "a bug in fscost (index out of bounds); its recording is kept" in because
    assert f"`fscost recording strip {stage.recording} to-send.fscost`" in because
    assert not {sample.metric for sample in result.samples} & written.MEANINGS.keys()


@pytest.mark.parametrize("stage", [("main", "journal")], indirect=True)
def test_several_disks_have_rows_of_their_own_beside_their_sum(stage: Any) -> None:
    stage.say(stage.good_events())
    stage.record()
    result = stage.run()
    assert value(result, "build", "device_write_bytes") == 24576
    assert value(result, "build", "device_write_bytes", "journal") == 12288
    assert not any(sample.disk and sample.metric == "wall_s" for sample in result.samples)


def test_what_nobody_could_measure_is_left_out(stage: Any) -> None:
    """A container hides kernel threads, and a real device has no disk server."""
    events = stage.good_events()
    events[-2] |= {
        "cpu_kernel_threads_ns": None,
        "cpu_disk_server_ns": None,
        "program_write_bytes": 0,
    }
    stage.say(events)
    stage.record()
    result = stage.run()
    metrics = {sample.metric for sample in result.samples if sample.phase == "build"}
    assert not metrics & {
        "cpu_s",
        "cpu_kernel_threads_s",
        "cpu_disk_server_s",
        "write_amplification",
        "metadata_used_bytes",
        "pause_s_max",
    }
    assert metrics >= {"cpu_user_s", "cpu_system_s"}


def test_pauses_are_those_that_happened(stage: Any) -> None:
    events = stage.good_events()
    events[-2] |= {
        "probe": {
            "interval_ms": 10,
            "pauses_ns": [*range(1_000_000, 101_000_000, 1_000_000)],
            "failures": 0,
        }
    }
    stage.say(events)
    stage.record()
    result = stage.run()
    assert value(result, "build", "pause_s_p99") == pytest.approx(0.099)
    assert value(result, "build", "pause_s_max") == pytest.approx(0.1)
    assert value(result, "build", "probe_operations") == 100


@pytest.mark.parametrize(
    ("total", "change"),
    [
        ("write_bytes", 512),
        ("read_bytes", -4096),
        ("zero_bytes", 4096),
        ("punch_bytes", -512),
        ("discard_bytes", 512),
    ],
)
def test_bytes_that_are_not_conserved_fail_the_cell(stage: Any, total: str, change: int) -> None:
    stage.say(stage.good_events())
    stage.record()
    stage.native.intervals[4]["disks"]["main"][total] += change
    result = stage.run()
    assert (result.status, result.kind) == ("failed", "conservation")
    assert "build, disk main" in result.because
    assert "4096" in result.because or "20480" in result.because
    assert result.samples == []
    assert stage.recording.exists(), "somebody will want to look at it"


@pytest.mark.parametrize(
    ("outside", "words"), [(0, "mkfs, disk main"), (-1, "512 bytes changed after the end")]
)
def test_a_byte_written_outside_of_the_intervals_fails_the_cell(
    stage: Any, outside: int, words: str
) -> None:
    stage.say(stage.good_events())
    stage.record()
    stage.native.intervals[outside]["disks"]["main"]["write_bytes"] = 512
    result = stage.run()
    assert (result.status, result.kind) == ("failed", "conservation")
    assert words in result.because


def test_a_zero_cannot_hide_behind_a_discard(stage: Any) -> None:
    """The counters are compared by the sum of zeroes and discards, but bytes recorded as written
    cannot have been discarded."""
    stage.say(stage.good_events())
    stage.record()
    totals = stage.native.intervals[4]["disks"]["main"]
    totals["write_bytes"], totals["punch_bytes"] = (
        totals["write_bytes"] + 4096,
        totals["punch_bytes"] - 4096,
    )
    result = stage.run()
    assert (result.status, result.kind) == ("failed", "conservation")


def test_zeros_may_be_written_as_holes(stage: Any) -> None:
    stage.say(stage.good_events())
    stage.record()
    totals = stage.native.intervals[4]["disks"]["main"]
    totals["write_bytes"], totals["punch_bytes"] = (
        totals["write_bytes"] - 4096,
        totals["punch_bytes"] + 4096,
    )
    result = stage.run()
    assert (result.status, result.because) == ("done", "")


def test_a_damaged_recording_fails_the_cell(stage: Any) -> None:
    stage.say(stage.good_events())
    stage.record()
    stage.native.error = "record 17: checksum differs"
    result = stage.run()
    assert (result.status, result.kind) == ("failed", "recording")
    assert "checksum differs" in result.because


def failure(**changes: Any) -> dict[str, Any]:
    message = "make: exit status 2"
    return {
        "event": "failed",
        "step": "build",
        "kind": "workload",
        "message": message,
        "status": 2,
        "signal": None,
        "kernel": [],
    } | changes


def test_a_failure_keeps_the_agents_words_and_the_kernels(stage: Any) -> None:
    stage.say(
        [
            *stage.good_events()[:-2],
            failure(kind="mount", kernel=["EXT4-fs (loop9): unknown option"]),
        ],
        then="1",
    )
    stage.record()
    (stage.options.cell_dir / "output.log").write_text("=== build\nno rule\n")
    result = stage.run()
    assert (result.status, result.kind) == ("failed", "mount")
    assert "make: exit status 2" in result.because
    assert "EXT4-fs (loop9): unknown option" in result.because
    assert result.output is not None
    assert result.output.read_text() == "=== build\nno rule\n"
    assert not stage.recording.exists()


def test_an_agent_that_ends_early_is_a_failed_cell_with_its_last_words(stage: Any) -> None:
    stage.say(stage.good_events()[:-1], then="3")
    result = stage.run()
    assert (result.status, result.kind) == ("failed", "internal")
    assert "exit status 3" in result.because
    assert "the agent's last words" in result.because


@pytest.mark.parametrize(
    ("name", "spoil"),
    [
        ("missing", lambda events: [event for event in events if event.get("name") != "build"]),
        ("twice", lambda events: [*events[:-1], *events[-2:]]),
        ("swapped", lambda events: [*events[:-3], events[-2], events[-3], events[-1]]),
        ("after the end", lambda events: [*events, events[0]]),
        ("done twice", lambda events: [*events, events[-1]]),
        ("no mount", lambda events: [event for event in events if event["event"] != "mounted"]),
        (
            "other disk",
            lambda events: [
                *events[:-2],
                events[-2] | {"counters": {"other": events[-2]["counters"]["main"]}},
                events[-1],
            ],
        ),
        ("negative", lambda events: [*events[:-2], events[-2] | {"wall_ns": -1}, events[-1]]),
        ("true", lambda events: [*events[:-2], events[-2] | {"wall_ns": True}, events[-1]]),
        ("huge", lambda events: [*events[:-2], events[-2] | {"wall_ns": 1 << 63}, events[-1]]),
        ("fraction", lambda events: [*events[:-2], events[-2] | {"wall_ns": 1.5}, events[-1]]),
        ("unknown", lambda events: [{"event": "dance"}, *events]),
        ("nothing", lambda events: []),
    ],
)
def test_a_stream_that_cannot_be_true_is_a_failed_cell(stage: Any, name: str, spoil: Any) -> None:
    stage.say(spoil(stage.good_events()))
    stage.record()
    result = stage.run()
    assert (result.status, result.kind) == ("failed", "internal"), name
    assert result.samples == []


def test_a_line_without_end_is_not_swallowed_into_memory(stage: Any) -> None:
    stage.say(b"x" * (3 << 20))
    result = stage.run()
    assert result.status == "failed"
    assert "longer than" in result.because


def test_endless_events_end(stage: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fscost.lab.native.agent.MAX_EVENTS", 50)
    stage.say([stage.good_events()[0]] * 100)
    assert "more than 50 events" in stage.run().because


def alive(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().split()[2]
    except OSError:
        return False


LIMIT_S = 600.0


def late_in_mount(stage: Any, monkeypatch: pytest.MonkeyPatch) -> CellResult:
    """Run the cell with a clock that jumps past `LIMIT_S` once the agent is in mount."""
    late_s = 0.0

    def hear(step: str) -> None:
        nonlocal late_s
        if step == "mount":
            late_s = LIMIT_S

    clock = SimpleNamespace(monotonic=lambda: time.monotonic() + late_s)
    monkeypatch.setattr("fscost.lab.cell.lines.time", clock)
    stage.say(stage.good_events()[:3], then="sleep")
    begin = time.monotonic()
    result: CellResult = stage.lab.run(stage.cell, stage.options, hear)
    assert time.monotonic() - begin < LIMIT_S / 4, "the agent itself sleeps for LIMIT_S"
    return result


def test_a_silent_agent_is_ended(stage: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fscost.lab.cell.plan.deadline_s", lambda *_: LIMIT_S)
    result = late_in_mount(stage, monkeypatch)
    assert result.status == "failed"
    assert "exceeded the time limits" in result.because
    assert not alive(int((stage.folder / "pid").read_text()))


def test_a_cell_past_its_timeout_is_ended_and_says_in_which_step(
    stage: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.options = dataclasses.replace(stage.options, timeout_s=LIMIT_S)
    result = late_in_mount(stage, monkeypatch)
    assert (result.status, result.kind) == ("failed", "timeout")
    assert "exceeded its limit of 600 s (--timeout) and was stopped in mount" in result.because
    assert [step["timeout_s"] for step in stage.plan()["steps"]] == [600, 600], (
        "the steps' own limits make way"
    )
    assert not alive(int((stage.folder / "pid").read_text()))


def test_ctrl_c_ends_the_agent_and_removes_its_recording(stage: Any) -> None:
    stage.say(stage.good_events()[:4], then="sleep")
    stage.record()

    def interrupt(step: str) -> None:
        if step == "mount":
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        stage.lab.run(stage.cell, stage.options, interrupt)
    assert not alive(int((stage.folder / "pid").read_text()))
    assert not stage.recording.exists()


def test_a_device_that_nobody_confirmed_reaches_no_agent(stage: Any) -> None:
    stage.options = dataclasses.replace(stage.options, device=Path("/dev/null"))
    with pytest.raises(InputError, match="not confirmed"):
        stage.run()
    assert not (stage.folder / "plan.json").exists()


def test_a_folder_that_cannot_be_made_stops_the_run(stage: Any, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    stage.options = LabOptions(cell_dir=tmp_path / "file" / "cell", disk_size_bytes=1 << 30)
    with pytest.raises(HostError, match="file/cell"):
        stage.run()


def test_a_disk_too_small_for_the_workload_says_how_large(stage: Any) -> None:
    stage.options = dataclasses.replace(stage.options, disk_size_bytes=1 << 19)
    result = stage.run()
    assert (result.status, result.kind) == ("failed", "plan")
    assert "--size 1M" in result.because


def test_two_steps_of_one_name_are_refused(stage: Any) -> None:
    step = stage.cell.workload.steps[0]
    workload = dataclasses.replace(stage.cell.workload, steps=(step, step))
    with pytest.raises(InputError, match="named unpack"):
        stage.lab.run(dataclasses.replace(stage.cell, workload=workload), stage.options, print)
