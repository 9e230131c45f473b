"""One cell, from its plan to its samples, wherever its agent runs."""

import errno
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from fscost import capture, files, host, profile
from fscost.errors import DiskFullError, FscostError, HostError
from fscost.lab.base import CellResult, LabOptions
from fscost.lab.cell import plan, real_disks
from fscost.lab.cell.completions import Completions
from fscost.lab.cell.events import Event, Failed, OverdueError, ProtocolError
from fscost.lab.cell.samples import histograms, samples, totals
from fscost.lab.cell.story import Story
from fscost.matrix import Cell

LAST_WORDS_BYTES = 2000

Agent = Callable[[dict[str, Any], Callable[[Event], None]], str]
"""Runs a plan, tells each event as it comes, and returns how the agent ended; ProtocolError for a
stream that is no story."""


def measure(
    cell: Cell,
    options: LabOptions,
    built: dict[str, Any],
    agent: Agent,
    on_step: Callable[[str], None],
    *,
    disk_model: str,
    is_emulated: bool = False,
    in_guest: bool = False,
) -> CellResult:
    """Run the plan `built` of `cell` by `agent`; what it wrote is recorded if a disk server is in
    the plan."""
    paths = plan.Paths(options.cell_dir)
    _make_folder(options.cell_dir)
    keep = False
    is_recorded = built["disk_server"] is not None
    try:
        _write_models(cell, options, paths)
        disks, inspects = ([each["name"] for each in built[kind]] for kind in ("disks", "inspect"))
        story = Story(plan.interval_names(cell), disks, inspects, on_step)
        result = _run(cell, options, story, built, agent, in_guest)
        if result.status == "done" and is_recorded:
            result = _proven(result, paths, story)
        if result.status == "done":
            result.samples = samples(story.intervals, is_emulated)
            result.totals = totals(story.intervals, is_emulated)
            if found := histograms(story.intervals):
                result.facts["time_histograms"] = found
        result.facts |= {
            "disk_model": disk_model,
            "recording_on": host.folder_facts(paths.cell_dir),
            "plan": {
                key: built[key]
                for key in (
                    "disk_server",
                    "mkfs",
                    "mount",
                    "after_mount",
                    "background",
                    "after_unmount",
                    "steps",
                )
            },
        }
        if result.status == "done" and is_recorded and options.look is not None:
            # Before packing: what is not compressed is read faster.
            options.look(result, paths.recording)
        keep = result.keep_recording or result.kind in _KEEP_RECORDING
        if options.keep_recording and result.status == "done":
            keep = True
            if is_recorded:
                _pack(paths.recording, result.facts)
    finally:
        # Ctrl-C included: a partial recording is of no use to anybody, and may be large.
        if not keep:
            paths.recording.unlink(missing_ok=True)
        for disk in plan.timed_disks(cell):
            paths.model(disk.name).unlink(missing_ok=True)
        paths.completions.unlink(missing_ok=True)
        _remove_if_empty(paths.agent_errors)
    result.recording = paths.recording if keep and paths.recording.exists() else None
    result.output = paths.output if paths.output.exists() else None
    return result


def _run(
    cell: Cell,
    options: LabOptions,
    story: Story,
    built: dict[str, Any],
    agent: Agent,
    in_guest: bool,
) -> CellResult:
    paths = plan.Paths(options.cell_dir)
    try:
        story.begin()
        ended = agent(built, story.hear)
        if story.ending is None:
            raise ProtocolError(f"it ended without a word ({ended})")
        if not isinstance(story.ending, Failed):
            story.check_complete()
    except ProtocolError as error:
        if isinstance(error, OverdueError) and options.timeout_s is not None:
            because = f"{cell.id} did not end within {options.timeout_s:g} s (--timeout) and was ended in {story.step}"
            return CellResult(cell, "failed", because, facts=story.facts(), kind="timeout")
        because = f"the {'guest' if in_guest else 'agent'} of {cell.id} failed: {error}{_last_words(paths.agent_errors)}"
        return CellResult(
            cell, "failed", because, facts=story.facts(), kind="guest" if in_guest else "internal"
        )
    facts = story.facts()
    if isinstance(story.ending, Failed):
        facts["failure"] = {
            "step": story.ending.step,
            "status": story.ending.status,
            "signal": story.ending.signal,
            "kernel": list(story.ending.kernel),
        }
        because = _because(story.ending)
        if (
            story.ending.kind == "mkfs"
            and (first := _first_line(paths.output))
            and first not in because
        ):
            # Some print their usage behind the reason, and the agent tells the end of what was
            # printed.
            because += f"\nit first printed: {first}"
        if (suggestion := profile.suggestion(cell.profile, story.ending.kind)) is not None:
            because += f"\n{suggestion}"
        return CellResult(cell, "failed", because, facts=facts, kind=story.ending.kind)
    facts["conservation"] = "kernel's counters only: a real device is not recorded"
    return CellResult(cell, "done", facts=facts)


def _proven(result: CellResult, paths: plan.Paths, story: Story) -> CellResult:
    """As it is, or failed, if the recording is not what the kernel counted."""
    failure = _prove(paths, story, result)
    if failure is not None:
        kind, because = failure
        return replace(result, status="failed", because=because, kind=kind)
    result.facts["conservation"] = (
        "the recording's bytes equal the kernel's counters, for each interval and disk"
    )
    return result


_KEEP_RECORDING = ("conservation", "recording")
"""Failures that are about the recording itself, which somebody will want to look at."""


def _prove(paths: plan.Paths, story: Story, result: CellResult) -> tuple[str, str] | None:
    """Promise 1: the recording's bytes are the kernel's, else the kind of failure and why. Writes
    the table of requests."""
    kernel = [
        capture.KernelInterval(interval.name, interval.counters) for interval in story.intervals
    ]
    try:
        completions = Completions(paths.completions) if plan.timed_disks(result.cell) else None
        _, result.recorded = capture.write_requests(paths.recording, paths.requests, completions)
        different = capture.differences(result.recorded, kernel)
        different += real_disks.differences(result.facts.get("recording"))
        if different:
            return "conservation", "the recording and the kernel disagree: " + "; ".join(different)
    except DiskFullError as error:
        return "host-disk-full", str(error)
    except HostError:
        raise
    except FscostError as error:
        return "recording", str(error)
    except OSError as error:
        kind = "host-disk-full" if error.errno in (errno.ENOSPC, errno.EDQUOT) else "recording"
        return (
            kind,
            f"{paths.cell_dir}: {error.strerror}; free some space there, or choose another folder with --out",
        )
    return None


def _pack(recording: Path, facts: dict[str, Any]) -> None:
    """Compress a recording that stays; not while recording, when it would take the CPU from the
    workload. Unpacked it is as good."""
    try:
        capture.pack(recording)
    except (FscostError, OSError) as error:
        facts["recording_not_packed"] = str(error)


def _because(failed: Failed) -> str:
    """The agent's paragraph, and the kernel's own words, unless it only complains about a disk that
    we took away."""
    because = failed.message.strip() or f"{failed.kind} in {failed.step}"
    if failed.kernel and failed.kind not in (
        "host-disk-full",
        "disk-server",
        "recording-too-large",
        "host-memory",
    ):
        because += "\nthe kernel said: " + "\n  ".join(list(dict.fromkeys(failed.kernel))[-5:])
    return because


def _first_line(output: Path) -> str:
    """Of what the commands of a cell printed, of which mkfs is the first."""
    try:
        with output.open(encoding="utf-8", errors="replace") as file:
            return file.readline(LAST_WORDS_BYTES).strip()
    except OSError:
        return ""


def _last_words(errors: Path) -> str:
    try:
        with errors.open("rb") as file:
            file.seek(max(0, errors.stat().st_size - LAST_WORDS_BYTES))
            words = file.read().decode(errors="replace").strip()
    except OSError:
        return ""
    return f"\n{words}" if words else ""


def _write_models(cell: Cell, options: LabOptions, paths: plan.Paths) -> None:
    for disk in plan.modelled_disks(cell):
        with files.creating(paths.model(disk.name)) as file:
            file.write(options.device_models[disk.model].encode())


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise HostError(f"{folder}: {error.strerror}", "choose another folder with --out") from None


def _remove_if_empty(file: Path) -> None:
    if file.exists() and file.stat().st_size == 0:
        file.unlink()
