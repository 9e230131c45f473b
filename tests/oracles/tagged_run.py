"""One cell with the tagged workload, compared with its content: `python -m tests.oracles.tagged_run
'ext4 -b 1024' -- --draw 7 150`."""

import argparse
import re
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from tests.oracles.bounds import NO_JOURNAL, WRITEBACK
from tests.oracles.ledger import Ledger
from tests.oracles.tagged_check import Summary, compare

from fscost import capture, profile
from fscost.analyze import explain
from fscost.lab.base import LabOptions
from fscost.lab.cell.binaries import find_binaries
from fscost.lab.native import NativeLab
from fscost.lab.vm import VmLab, kernels
from fscost.matrix import Cell
from fscost.workload.model import Step, Workload

MIB = 1 << 20


class RefusedError(Exception):
    """Refusal by mkfs or mount: this file system cannot be made here."""


EXT = ("ext2", "ext3", "ext4")
NATIVE = (*EXT, "xfs", "btrfs")
FAT = ("vfat", "exfat")
SCRIPTS = [
    Path(__file__).with_name(f"tagged_{part}.py")
    for part in ("work", "kinds", "scenarios", "actions", "tree")
]
SHELL = f"python3 {{input}}/{SCRIPTS[0].name} {{scratch}}/state"
DEADLOCKS = "ea_inode"
"""Feature that deadlocks Linux 6.18 if several threads use it, so it is never used natively with
them: only a restart ends the threads."""


@dataclass(frozen=True)
class Ran:
    """A cell that succeeded."""

    spelled: str
    folder: Path
    recording: Path
    said: str
    ledger: Ledger
    written: Mapping[tuple[str, str], int]
    """Bytes that the kernel counted, by phase and disk."""

    @property
    def type(self) -> str:
        return profile.resolve(self.spelled).type

    @property
    def family(self) -> str:
        """Name of its bounds."""
        if self.type not in EXT:
            return self.type
        if self.type == "ext2" or "^has_journal" in self.spelled:
            return NO_JOURNAL
        return WRITEBACK if "data=writeback" in self.spelled else "ext"

    @property
    def inline_bytes(self) -> int:
        """Size below which files, or their tails, may be stored beside their metadata."""
        if self.type in (*EXT, "xfs", "nilfs2", *FAT) and "inline_data" not in self.spelled:
            return 0
        return 8 << 10 if self.type in ("ext4", "btrfs", "f2fs") else 64 << 10

    def compared(self, table: pa.Table | None = None) -> Summary:
        """Compare all rows, or those of another explanation."""
        if table is None:
            explanation = explain(self.recording)
            table = explanation.table
            totals = [
                disk
                for interval in capture.intervals(self.recording)
                for disk in interval.disks.values()
            ]
            written = sum(disk["write_bytes"] + disk["zero_bytes"] for disk in totals) + sum(
                explanation.punched_bytes.values()
            )
            assert pc.sum(table["length"]).as_py() == written, "rows are not the bytes written"
        return compare(
            self.recording,
            self.ledger,
            table,
            inline_bytes=self.inline_bytes,
            has_inodes=self.type not in FAT,
            is_compressed="compress" in self.spelled,
        )


def words(type_: str, draw: str, count: int, filler: str = "dots", kind: str = "mixed") -> str:
    """Return the arguments of a drawn workload. FAT has no holes and writes zeroes in their place,
    so `vast` is left out there."""
    said = f"--draw {draw} {count} --kind {kind} --filler {filler}"
    return said + " --without vast" * (type_ in FAT)


def is_native(spelled: str) -> bool:
    """True if the native lab runs cells of this profile, and a guest otherwise."""
    resolved = profile.resolve(spelled)
    return resolved.type in NATIVE and resolved.array is None


def run(
    spelled: str,
    folder: Path,
    shells: list[str],
    *,
    size: int = 512 * MIB,
    settle: str = "remount",
    inputs: Sequence[Path] = (),
) -> Ran:
    """Run a cell with one command for each step. File systems that the native lab does not have run
    in a guest."""
    (folder / "input").mkdir(parents=True)
    for script in (*SCRIPTS, *inputs):
        shutil.copy(script, folder / "input")
    steps = tuple(
        Step(name, shell, settle=settle)
        for name, shell in zip(("one", "two", "three"), shells, strict=False)
    )
    work = Workload("tagged", steps, disk_bytes=MIB, input=folder / "input")
    resolved = profile.resolve(spelled)
    if is_native(spelled):
        assert not any("--kind threads" in shell for shell in shells) or not re.search(
            rf"(?<!\^){DEADLOCKS}", spelled
        ), f"threads with {DEADLOCKS} deadlock the host's kernel"
        lab = NativeLab(find_binaries())
    else:
        kernels.fetch()
        lab = VmLab()
    result = lab.run(
        Cell(resolved, work, 0, 1, 0),
        LabOptions(folder / "cell", size),
        lambda _: None,
    )
    if result.kind in ("mkfs", "mount"):
        raise RefusedError(result.because)
    said = result.output.read_text(errors="replace") if result.output else ""
    assert result.status == "done", (
        f"{result.status} ({result.kind}): {result.because}\n{said[-2000:]}"
    )
    assert result.recording
    ledger = Ledger.read(said)
    assert ledger.is_whole, "the journal was cut"
    written = {
        (sample.phase, sample.disk): int(sample.value)
        for sample in result.samples
        if sample.metric == "device_write_bytes" and sample.disk
    }
    return Ran(spelled, folder, result.recording, said, ledger, written)


def reduced(spelled: str, kinds: list[str], actions: list[str], also: list[str]) -> list[str]:
    """Return a minimal subset of the actions that still shows one of these kinds of rows (Zeller's
    ddmin, without complements)."""

    def shows(part: list[str]) -> bool:
        with tempfile.TemporaryDirectory(prefix="tagged-") as folder:
            try:
                summary = run(
                    spelled, Path(folder) / "run", [" ".join([SHELL, *also, "--do", *part])]
                ).compared()
            except AssertionError as error:
                print(error)
                return False
        return bool(sum(summary.bytes[kind] for kind in kinds))

    piece = len(actions)
    while piece := piece // 2:
        at = 0
        while at < len(actions):
            part = actions[:at] + actions[at + piece :]
            if part and shows(part):
                actions = part
                print(f"{len(actions)} actions", flush=True)
            else:
                at += piece
    return actions


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("profile")
    parser.add_argument(
        "words", nargs="+", help="of tagged_work.py: --draw SEED COUNT or --do ACTION:SEED …"
    )
    parser.add_argument("--steps", type=int, default=2)
    parser.add_argument(
        "--keep", type=Path, metavar="DIR", help="keep the recording and the journal there"
    )
    parser.add_argument(
        "--reduce",
        metavar="KIND",
        action="append",
        help="find the fewest actions of the first step that still show such rows",
    )
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tagged-") as folder:
        ran = run(
            asked.profile,
            asked.keep or Path(folder) / "run",
            [" ".join([SHELL, *asked.words])] * asked.steps,
        )
        print(ran.compared(), dict(ran.ledger.refused), sep="\n")
    if asked.reduce:
        also = [
            word
            for at, word in enumerate(asked.words)
            if "--filler" in (word, asked.words[at - 1]) or word == "--long"
        ]
        print(*reduced(asked.profile, asked.reduce, ran.ledger.does[0], also))


if __name__ == "__main__":
    main()
