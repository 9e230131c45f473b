"""A lab that runs nothing. It returns deterministic numbers with noise, and failures on request,
for tests of everything else."""

import math
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fscost.errors import InputError
from fscost.lab.base import CellResult, LabOptions, Sample
from fscost.matrix import Cell
from fscost.profile.model import Profile

_TYPE_FACTOR = {"ext4": 1.0, "xfs": 0.9, "btrfs": 1.6, "ext2": 0.8, "ext3": 1.1}


@dataclass
class FakeLab:
    """A lab that only pretends to run cells.

    `skip`: profile → because. `fail`: profile, or cell id → (kind, message). `stop_at`: order of a
    cell → exception raised in the middle of the cell. `unexplained`: profile → because. `miscount`:
    profile → excess bytes in its explanation. `outside_syncs`: profile, or cell id → calls of sync by
    other programs in each attempt; the last number applies to all further attempts.
    """

    skip: Mapping[str, str] = field(default_factory=dict)
    fail: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    stop_at: Mapping[int, BaseException] = field(default_factory=dict)
    unexplained: Mapping[str, str] = field(default_factory=dict)
    miscount: Mapping[str, int] = field(default_factory=dict)
    outside_syncs: Mapping[str, Sequence[int]] = field(default_factory=dict)
    noise: float = 0.005
    delay_s: float = 0.0
    kernel: str = "6.1.0-fake"
    name: str = "fake"
    lock: str = ""
    """Name of the lock that its runs take."""
    side_by_side: int = 1
    is_same_everywhere: bool = True
    ran: list[str] = field(default_factory=list)
    """IDs of the cells that began, in order."""

    @staticmethod
    def from_text(text: str) -> "FakeLab":
        """Parse the text of `--lab fake:TEXT`, such as
        `delay_s=0.1,noise=0.01,skip=xfs,fail=btrfs`."""
        lab = FakeLab()
        skip, fail, unexplained, miscount, outside_syncs = {}, {}, {}, {}, {}
        for part in filter(None, text.split(",")):
            key, _, value = part.partition("=")
            match key:
                case "skip":
                    skip[value] = f"{value} is not in this kernel"
                case "fail":
                    ended = "the command ended with status 1\nls: cannot access 'nowhere'"
                    fail[value] = ("workload", ended)
                case "fail_mkfs":
                    fail[value] = (
                        "mkfs",
                        "`mkfs` exited with status 1: mkfs refused: invalid option",
                    )
                case "fail_mount":
                    words = f"mount -t ext4 -o '{value}' /dev/loop0 (ext4: Bad value for 'data')"
                    fail[value] = ("mount", f"{words}: Invalid argument (os error 22)")
                case "unexplained":
                    unexplained[value] = f"{value} is not a supported file system"
                case "miscount":
                    miscount[value] = 4096
                case "outside_syncs":
                    outside_syncs[value] = [1]
                case "lock":
                    lab.lock = value
                case "side_by_side":
                    lab.side_by_side = int(value)
                case "one_machine":
                    lab.is_same_everywhere = False
                case "delay_s" | "noise":
                    setattr(lab, key, float(value))
                case _:
                    raise InputError(
                        f"--lab fake: unknown option {key!r}",
                        "delay_s, noise, skip, fail, fail_mkfs, unexplained, miscount,"
                        " outside_syncs, or lock",
                    )
        lab.skip, lab.fail, lab.unexplained, lab.miscount = skip, fail, unexplained, miscount
        lab.outside_syncs = outside_syncs
        return lab

    def interrupt(self) -> None:
        """Do nothing: cells are short."""

    def guess_s(self, write_bytes: int) -> float:
        """Return the delay: nothing is written."""
        return self.delay_s

    def check(self) -> None:
        """Succeed: a fake lab runs anywhere."""

    def unsupported_reason(self, cell: Cell, disk_size_bytes: int | None = None) -> str | None:
        """Return the reason that `skip` gives for the profile."""
        return self.skip.get(cell.profile.name)

    def commands(self, cell: Cell, options: LabOptions) -> list[str]:
        """Return commands that resemble those of the native lab."""
        mkfs = " ".join([f"mkfs.{cell.profile.type}", *cell.profile.mkfs_flags, "{disk.main}"])
        mounted_with = cell.profile.mount_options or "defaults"
        mount = f"mount -t {cell.profile.type} -o {mounted_with} {{disk.main}} {{dir}}"
        return [mkfs, mount, *(step.shell for step in cell.workload.steps), "umount {dir}"]

    def environment(self, profiles: Sequence[Profile]) -> dict[str, Any]:
        """Describe no real host, so that golden files stay unchanged."""
        return {
            "kernel": {"release": self.kernel},
            "disk_server": "fake disk",
            "recordings_on": {"type": "tmpfs"},
        }

    def run(self, cell: Cell, options: LabOptions, on_step: Callable[[str], None]) -> CellResult:
        """Return numbers that depend only on the profile and the cell's seed."""
        self.ran.append(cell.id)
        assert not any(options.cell_dir.iterdir()), "a cell begins in an empty folder"
        output = options.cell_dir / "output.log"
        output.write_text(f"=== {cell.id}\n")
        recording = options.cell_dir / "recording.fsc"
        recording.write_bytes(b"fake")
        for name in ("mkfs", "mount", *(step.name for step in cell.workload.steps)):
            on_step(name)
            time.sleep(self.delay_s)
        if cell.order in self.stop_at:
            raise self.stop_at[cell.order]
        files: dict[str, Any] = {"output": output, "recording": recording}
        samples = [*self._samples(cell), *self._outside_syncs(cell)]
        if (failure := self.fail.get(cell.profile.name) or self.fail.get(cell.id)) is not None:
            kind, because = failure
            return CellResult(cell, "failed", because, samples=samples[:3], kind=kind, **files)
        mounted_with = cell.profile.mount_options or "relatime"
        facts: dict[str, Any] = {"mounted": {"type": cell.profile.type, "options": mounted_with}}
        if cell.profile.name in self.unexplained:
            facts["not_explained"] = self.unexplained[cell.profile.name]
        return CellResult(cell, "done", samples=samples, facts=facts, **files)

    def _outside_syncs(self, cell: Cell) -> list[Sample]:
        counts = self.outside_syncs.get(cell.id) or self.outside_syncs.get(cell.profile.name)
        if not counts:
            return []
        count = counts[min(self.ran.count(cell.id), len(counts)) - 1]
        first = next(step.name for step in cell.workload.steps if step.measured)
        return [Sample(first, True, "", "outside_sync_calls", "count", float(count))]

    def _samples(self, cell: Cell) -> list[Sample]:
        profile = cell.profile
        work = random.Random(f"{cell.seed}")
        rng = random.Random(f"{cell.seed}/{profile.name}")
        factor = _TYPE_FACTOR.get(profile.type, 1.0)
        if "^has_journal" in profile.mkfs_flags:
            factor *= 0.8
        shared = math.exp(work.gauss(0, self.noise))
        samples: list[Sample] = []
        steps = [("mkfs", False, 0.2), ("mount", False, 0.01)]
        for index, step in enumerate(cell.workload.steps):
            steps.append((step.name, step.measured, 1.0 + index))
        for phase, measured, size in steps:
            noisy = shared * math.exp(rng.gauss(0, self.noise))
            written = round(factor * size * noisy * (8 << 20) / 4096) * 4096
            program = 0 if phase in ("mkfs", "mount") else round(size * shared * (6 << 20))
            wall = size * math.exp(rng.gauss(0, 10 * self.noise)) / factor
            flushes = 0 if "^has_journal" in profile.mkfs_flags else round(3 * size) + 1
            numbers = {
                "device_write_bytes": ("bytes", written),
                "device_read_bytes": ("bytes", written // 10),
                "device_write_requests": ("count", written // 65536),
                "device_flushes": ("count", flushes),
                "program_write_bytes": ("bytes", program),
                "wall_s": ("s", wall),
                "cpu_s": ("s", wall / 2),
                "space_used_bytes": ("bytes", round(factor * size * (10 << 20))),
            }
            for metric, (unit, value) in numbers.items():
                samples.append(Sample(phase, measured, "", metric, unit, float(value)))
                if metric.startswith("device_"):
                    samples.append(Sample(phase, measured, "main", metric, unit, float(value)))
            if program:
                ratio = written / program
                samples.append(Sample(phase, measured, "", "write_amplification", "ratio", ratio))
            if profile.name not in self.unexplained:
                explained = _explained(cell, written)
                explained["metadata_write_bytes"] += self.miscount.get(profile.name, 0)
                samples += [
                    Sample(phase, measured, "", metric, "bytes", float(value))
                    for metric, value in explained.items()
                ]
        return samples


def _explained(cell: Cell, written: int) -> dict[str, int]:
    """Imitate part of the classifier's output: a third of journal and metadata is access times,
    unless they are off."""
    profile = cell.profile
    data = written * 6 // 10
    has_journal = "^has_journal" not in profile.mkfs_flags and profile.type != "btrfs"
    journal = written * 2 // 10 if has_journal else 0
    metadata = written - data - journal
    off = "noatime" in profile.mount_options
    journal_atime, atime = (0, 0) if off else (journal // 3, journal // 3 + metadata // 3)
    log = "log" if profile.type == "xfs" else "journal_copy"
    block = "fs_tree" if profile.type == "btrfs" else "inode_table"
    parts = {
        "file_data": data,
        "journal": journal,
        "metadata": metadata,
        "unknown": 0,
        "doubtful_owner": 0,
        log: journal,
        block: metadata,
        "superblock": 0,
    }
    reasons = {
        "data": data,
        "directory_entries": written - data - atime,
        "atime": atime,
        "mixed": 0,
        "journal_atime": journal_atime,
        "unknown_cause": 0,
    }
    return {f"{name}_write_bytes": value for name, value in (parts | reasons).items()}
