"""The native lab: cells on the running kernel, each by one agent in a mount namespace of its own."""

import errno
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fscost import capture, host
from fscost.errors import FscostError, HostError, InputError
from fscost.lab.base import CellResult, LabOptions
from fscost.lab.native import plan
from fscost.lab.native.agent import run_agent
from fscost.lab.native.binaries import Binaries, find_binaries
from fscost.lab.native.commands import commands
from fscost.lab.native.events import Failed, ProtocolError
from fscost.lab.native.real_device import RealDevice
from fscost.lab.native.requirements import PlanFormat, why_not
from fscost.lab.native.samples import samples
from fscost.lab.native.story import Story
from fscost.matrix import Cell
from fscost.profile import plan_format
from fscost.profile.model import FormatPlan, Profile

DISK_MODEL = "recorded: FUSE-served file + loop device"
LAST_WORDS_BYTES = 2000


class NativeLab:
    """Root, FUSE and loop devices; file systems limited to what this kernel has.

    `device` is a real block device that a person gave up (`real_device.claim`); cells then run on it and nothing is recorded.
    """

    name = "native"

    def __init__(self, binaries: Binaries | None = None, device: RealDevice | None = None, plan_format: PlanFormat | None = None) -> None:
        self._binaries = binaries or find_binaries()
        self._device = device
        self._plan_format = plan_format or _plan_format

    def check(self) -> None:
        """Raise HostError when no cell at all can run here."""
        host.require()
        capture.require_native()

    def why_not(self, cell: Cell, disk_size_bytes: int | None = None) -> str | None:
        """None when the cell can run here; else what is missing and what would enable it."""
        return why_not(cell, disk_size_bytes, self._plan_format, self._device)

    def commands(self, cell: Cell, options: LabOptions) -> list[str]:
        """Every command `run` would execute, as shell text, for --dry-run."""
        cell = plan.with_probe_alone(cell, options)
        formatted = self._formatted(cell, options)
        return commands(cell, options, formatted, self._binaries, host.base_directory(), self._device)

    def environment(self) -> dict[str, Any]:
        """Kernel, CPU, versions of mkfs: kept in the manifest."""
        return host.environment()

    def run(self, cell: Cell, options: LabOptions, on_step: Callable[[str], None]) -> CellResult:
        """Run the cell; on Ctrl-C it is ended, and waited for, before KeyboardInterrupt goes on."""
        self._refuse_unclaimed(options)
        because = self.why_not(cell, self._disk_size_bytes(options))
        if because is not None:
            # The run asked before, without the disk's size; a cell that comes this far and cannot run is a failure of its plan.
            return CellResult(cell, "failed", because, kind="plan")
        asked, cell = cell, plan.with_probe_alone(cell, options)
        plan.refuse_impossible(cell)
        built = plan.build(cell, options, self._formatted(cell, options), self._binaries, host.base_directory(), self._device)
        paths = plan.Paths(options.cell_dir)
        _make_folder(options.cell_dir)
        keep = False
        try:
            result = self._run(cell, built, paths, on_step)
            if result.status == "done" and self._device is None and options.look is not None:
                # Before packing: what is not compressed is read faster.
                options.look(result, paths.recording)
            keep = result.keep_recording or result.kind in _KEEP_RECORDING
            if options.keep_recording and result.status == "done":
                keep = True
                if self._device is None:
                    _pack(paths.recording, result.facts)
        finally:
            # Ctrl-C included: a partial recording is of no use to anybody, and may be large.
            if not keep:
                paths.recording.unlink(missing_ok=True)
            _remove_if_empty(paths.agent_errors)
        result.cell = asked
        result.recording = paths.recording if keep and paths.recording.exists() else None
        result.output = paths.output if paths.output.exists() else None
        return result

    def _run(self, cell: Cell, built: dict[str, Any], paths: plan.Paths, on_step: Callable[[str], None]) -> CellResult:
        story = Story(plan.interval_names(cell), [disk["name"] for disk in built["disks"]], on_step)
        try:
            story.begin()
            status = run_agent(self._binaries.agent, built, paths.agent_errors, plan.deadline_s(cell), story.hear)
            if story.ending is None:
                raise ProtocolError(f"it ended without a word ({_status(status)})")
            if not isinstance(story.ending, Failed):
                story.check_complete()
        except ProtocolError as error:
            because = f"the agent of {cell.id} failed: {error}{_last_words(paths.agent_errors)}"
            return CellResult(cell, "failed", because, facts=self._facts(story, built, paths), kind="internal")
        facts = self._facts(story, built, paths)
        if isinstance(story.ending, Failed):
            facts["failure"] = {
                "step": story.ending.step,
                "status": story.ending.status,
                "signal": story.ending.signal,
                "kernel": list(story.ending.kernel),
            }
            return CellResult(cell, "failed", _because(story.ending), facts=facts, kind=story.ending.kind)
        if self._device is None:
            failure = _prove(paths, story)
            if failure is not None:
                kind, because = failure
                return CellResult(cell, "failed", because, facts=facts, kind=kind)
            facts["conservation"] = "the recording's bytes equal the kernel's counters, for each interval and disk"
        else:
            facts["conservation"] = "kernel's counters only: a real device is not recorded"
        return CellResult(cell, "done", samples=samples(story.intervals), facts=facts)

    def _facts(self, story: Story, built: dict[str, Any], paths: plan.Paths) -> dict[str, Any]:
        facts = story.facts()
        facts["disk_model"] = DISK_MODEL if self._device is None else f"{self._device.model} ({self._device.path})"
        facts["recording_on"] = host.folder_facts(paths.cell_dir)
        facts["plan"] = {key: built[key] for key in ("disk_server", "mkfs", "mount", "after_mount", "steps")}
        return facts

    def _formatted(self, cell: Cell, options: LabOptions) -> FormatPlan:
        return self._plan_format(cell.profile, self._disk_size_bytes(options), cell.seed)

    def _disk_size_bytes(self, options: LabOptions) -> int:
        return options.disk_size_bytes if self._device is None else self._device.size_bytes

    def _refuse_unclaimed(self, options: LabOptions) -> None:
        """A device in the options that nobody claimed reaches no agent."""
        if self._device is None:
            if options.device is not None:
                raise InputError(f"{options.device} was not confirmed", f"--device {options.device} --erase-device {options.device}")
            return
        if options.device is None or options.device.resolve() != self._device.path:
            raise InputError(f"{options.device} is not {self._device.path}, the device that was confirmed")
        self._device.refuse_if_busy()


_KEEP_RECORDING = ("conservation", "recording")
"""Failures that are about the recording itself, which somebody will want to look at."""


def _prove(paths: plan.Paths, story: Story) -> tuple[str, str] | None:
    """Promise 1: the recording's bytes are the kernel's, else the kind of failure and why. Writes the table of requests."""
    kernel = [capture.KernelInterval(interval.name, interval.counters) for interval in story.intervals]
    try:
        different = capture.differences(capture.intervals(paths.recording), kernel)
        if different:
            return "conservation", "the recording and the kernel disagree: " + "; ".join(different)
        capture.write_requests(paths.recording, paths.requests)
    except HostError:
        raise
    except FscostError as error:
        return "recording", str(error)
    except OSError as error:
        kind = "host-disk-full" if error.errno in (errno.ENOSPC, errno.EDQUOT) else "recording"
        return kind, f"{paths.cell_dir}: {error.strerror}; free some space there, or choose another folder with --out"
    return None


def _pack(recording: Path, facts: dict[str, Any]) -> None:
    """Compress a recording that stays; not while recording, when it would take the CPU from the workload. Unpacked it is as good."""
    try:
        capture.pack(recording)
    except (FscostError, OSError) as error:
        facts["recording_not_packed"] = str(error)


def _because(failed: Failed) -> str:
    """The agent's paragraph, and the kernel's own words, unless it only complains about a disk that we took away."""
    because = failed.message.strip() or f"{failed.kind} in {failed.step}"
    if failed.kernel and failed.kind not in ("host-disk-full", "disk-server"):
        because += "\nthe kernel said: " + "\n  ".join(list(dict.fromkeys(failed.kernel))[-5:])
    return because


def _status(status: int) -> str:
    return f"signal {-status}" if status < 0 else f"exit status {status}"


def _last_words(errors: Path) -> str:
    try:
        with errors.open("rb") as file:
            file.seek(max(0, errors.stat().st_size - LAST_WORDS_BYTES))
            words = file.read().decode(errors="replace").strip()
    except OSError:
        return ""
    return f"\n{words}" if words else ""


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise HostError(f"{folder}: {error.strerror}", "choose another folder with --out") from None


def _remove_if_empty(file: Path) -> None:
    if file.exists() and file.stat().st_size == 0:
        file.unlink()


def _plan_format(profile: Profile, disk_size_bytes: int, seed: int) -> FormatPlan:
    return plan_format(profile, disk_size_bytes=disk_size_bytes, seed=seed)
