"""Measurement of one cell, from its plan to its samples, wherever its agent runs."""

import errno
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from fscost import capture, conservation, files, host, profile
from fscost.errors import DiskFullError, FscostError, HostError
from fscost.lab.base import CellResult, LabOptions
from fscost.lab.cell import plan, real_disks
from fscost.lab.cell.events import Event, Failed, OverdueError, ProtocolError
from fscost.lab.cell.samples import histograms, samples, totals
from fscost.lab.cell.transcript import Transcript
from fscost.matrix import Cell

LAST_WORDS_BYTES = 2000
_PLAN_FACTS = (
    "disk_server",
    "mkfs",
    "mount",
    "after_mount",
    "background",
    "after_unmount",
    "steps",
)
"""Parts of the plan that the manifest keeps."""
_DISK_REMOVED = ("host-disk-full", "disk-server", "recording-too-large", "host-memory")
"""Kinds of failure after which the kernel only complains about a disk that fscost removed."""

Agent = Callable[[dict[str, Any], Callable[[Event], None]], str]
"""Function that runs a plan, reports each event as it arrives, and returns how the agent ended.
ProtocolError for an invalid stream."""


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
    """Run the plan `built` of `cell` with `agent`. Its writes are recorded if the plan has a disk
    server. The recording of a cell that is done stays unmodified, beside the models of its
    disks."""
    paths = plan.Paths(options.cell_dir)
    _make_folder(options.cell_dir)
    keep = is_done = False
    is_recorded = built["disk_server"] is not None
    try:
        _write_models(cell, options, paths)
        disks, inspects = ([each["name"] for each in built[kind]] for kind in ("disks", "inspect"))
        transcript = Transcript(plan.interval_names(cell), disks, inspects, on_step)
        result = _run(cell, options, transcript, built, agent, in_guest)
        if result.status == "done" and is_recorded:
            result = _proven(result, paths, transcript)
        if result.status == "done":
            result.samples = samples(transcript.intervals, is_emulated)
            result.totals = totals(transcript.intervals, is_emulated)
            if built["outside_sync_calls"] and not _are_counted(transcript):
                result.facts["outside_sync_calls"] = {"kept": None}
            if found := histograms(transcript.intervals):
                result.facts["time_histograms"] = found
        result.facts |= {
            "disk_model": disk_model,
            "recording_on": host.folder_facts(paths.cell_dir),
            "plan": {key: built[key] for key in _PLAN_FACTS},
        }
        is_done = result.status == "done"
        keep = is_done or result.kind in _KEEP_RECORDING
    finally:
        # Remove it even on Ctrl-C: a partial recording is useless, and may be large.
        if not keep:
            paths.recording.unlink(missing_ok=True)
        if not is_done:
            plan.remove_timing(cell, paths)
        _remove_if_empty(paths.agent_errors)
    result.recording = paths.recording if keep and paths.recording.exists() else None
    result.output = paths.output if paths.output.exists() else None
    return result


def _run(
    cell: Cell,
    options: LabOptions,
    transcript: Transcript,
    built: dict[str, Any],
    agent: Agent,
    in_guest: bool,
) -> CellResult:
    paths = plan.Paths(options.cell_dir)
    try:
        transcript.begin()
        ended = agent(built, transcript.hear)
        if transcript.ending is None:
            raise ProtocolError(f"it ended without a report ({ended})")
        if not isinstance(transcript.ending, Failed):
            transcript.check_complete()
    except ProtocolError as error:
        if isinstance(error, OverdueError) and options.timeout_s is not None:
            because = (
                f"{cell.id} exceeded its limit of {options.timeout_s:g} s (--timeout) and was"
                f" stopped in {transcript.step}"
            )
            return CellResult(cell, "failed", because, facts=transcript.facts(), kind="timeout")
        because = (
            f"the {'guest' if in_guest else 'agent'} of {cell.id} failed:"
            f" {error}{_last_words(paths.agent_errors)}"
        )
        kind = "guest" if in_guest else "internal"
        return CellResult(cell, "failed", because, facts=transcript.facts(), kind=kind)
    facts = transcript.facts()
    if isinstance(ending := transcript.ending, Failed):
        facts["failure"] = {
            "step": ending.step,
            "status": ending.status,
            "signal": ending.signal,
            "kernel": list(ending.kernel),
        }
        because = _because(ending)
        reason, has_usage = _beginning(paths.output) if ending.kind == "mkfs" else ("", False)
        if reason and has_usage:
            because = f"{because.partition(_LAST_OUTPUT)[0]}: {reason}"
        elif reason and reason not in because:
            because += f"\nit first printed: {reason}"
        if (suggestion := profile.suggestion(cell.profile, ending.kind)) is not None:
            because += f"\n{suggestion}"
        return CellResult(cell, "failed", because, facts=facts, kind=ending.kind)
    facts["conservation"] = "kernel's counters only: a real device is not recorded"
    return CellResult(cell, "done", facts=facts)


def _proven(result: CellResult, paths: plan.Paths, transcript: Transcript) -> CellResult:
    """Return the result unchanged, or as failed if the recording disagrees with the kernel's
    counters."""
    failure = _prove(paths, transcript, result)
    if failure is not None:
        kind, because = failure
        return replace(result, status="failed", because=because, kind=kind)
    result.facts["conservation"] = (
        "the recording's bytes equal the kernel's counters, for each interval and disk"
    )
    return result


_LAST_OUTPUT = "; last output:"
"""Words of the agent before the end of a command's output (crates/agent/src/child.rs)."""
_ANNOUNCED = "=== "
"""Beginning of the agent's line above a command's output."""
_KEEP_RECORDING = ("conservation", "recording")
"""Kinds of failure that concern the recording itself, which is therefore kept for investigation."""


def _prove(paths: plan.Paths, transcript: Transcript, result: CellResult) -> tuple[str, str] | None:
    """Check that the recording's bytes equal the kernel's counters (promise 1), and write the table
    of requests. Return None, or the kind of failure and the reason."""
    kernel = [
        conservation.KernelInterval(
            interval.name, {disk: vars(counters) for disk, counters in interval.counters.items()}
        )
        for interval in transcript.intervals
    ]
    try:
        _, result.recorded = capture.write_requests(paths.recording, paths.requests)
        different = conservation.unrecorded(result.recorded, kernel)
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
        remedy = "free some space there, or choose another folder with --out"
        return kind, f"{paths.cell_dir}: {error.strerror}; {remedy}"
    return None


def _are_counted(transcript: Transcript) -> bool:
    return all(each.outside_sync_calls is not None for each in transcript.intervals)


def _because(failed: Failed) -> str:
    """Return the agent's message and the kernel's messages, unless the kernel only complains about
    a disk that fscost removed."""
    because = failed.message.strip() or f"{failed.kind} in {failed.step}"
    if failed.kernel and failed.kind not in _DISK_REMOVED:
        because += "\nthe kernel said: " + "\n  ".join(list(dict.fromkeys(failed.kernel))[-5:])
    return because


def _beginning(output: Path) -> tuple[str, bool]:
    """Return the first line that mkfs, a cell's first command, printed, and whether its usage
    follows. mkfs.xfs prints 28 lines of usage after the reason, and the agent reports only the end
    of the output."""
    try:
        with output.open(encoding="utf-8", errors="replace") as file:
            lines = file.read(LAST_WORDS_BYTES).splitlines()
    except OSError:
        return "", False
    printed = [line.strip() for line in lines if line.strip() and not line.startswith(_ANNOUNCED)]
    has_usage = any(line.lower().startswith("usage:") for line in printed[1:])
    return (printed[0] if printed else ""), has_usage


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
