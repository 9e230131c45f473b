"""One cell with the tagged workload, compared: `python -m tests.oracles.tagged_run 'ext4 -b 1024' -- --draw 7 150`."""

import argparse
import shutil
import tempfile
from pathlib import Path

from tests.oracles.ledger import Ledger
from tests.oracles.tagged_check import Summary, compare

from fscost import profile
from fscost.lab.base import LabOptions
from fscost.lab.cell.binaries import find_binaries
from fscost.lab.native import NativeLab
from fscost.matrix import Cell
from fscost.workload.model import Step, Workload

MIB = 1 << 20


class RefusedError(Exception):
    """By mkfs or mount: no such file system can be made here."""


def run(spelled: str, folder: Path, words: list[str], *, size: int = 512 * MIB, steps: int = 2) -> Summary:
    """`words` are tagged_work.py's, for each step the same."""
    (folder / "input").mkdir(parents=True)
    shutil.copy(Path(__file__).with_name("tagged_work.py"), folder / "input")
    shell = f"python3 {{input}}/tagged_work.py {{scratch}}/state {' '.join(words)}"
    made = tuple(Step(f"step{number}", shell, settle="remount") for number in range(steps))
    work = Workload("tagged", made, disk_bytes=MIB, input=folder / "input")
    result = NativeLab(find_binaries()).run(
        Cell(profile.resolve(spelled), work, 0, 1, 0), LabOptions(folder / "cell", size, keep_recording=True), lambda _: None
    )
    if result.kind in ("mkfs", "mount"):
        raise RefusedError(result.because)
    assert result.status == "done", f"{result.status} ({result.kind}): {result.because}\n{result.output and result.output.read_text()[-2000:]}"
    assert result.recording
    assert result.output
    ledger = Ledger.read(result.output.read_text())
    assert ledger.is_whole
    is_atomic = not any(word in spelled for word in ("ext2", "^has_journal", "fast_commit", "btrfs"))
    summary = compare(result.recording, ledger, is_atomic=is_atomic, is_compressed="compress" in spelled)
    summary.does = ledger.does
    summary.refused = dict(ledger.refused)
    return summary


def reduced(spelled: str, kinds: list[str], actions: list[str], words: list[str]) -> list[str]:
    """As few of the actions as still show one of these kinds of rows (Zeller's ddmin, without complements)."""

    def shows(part: list[str]) -> bool:
        with tempfile.TemporaryDirectory(prefix="tagged-") as folder:
            try:
                summary = run(spelled, Path(folder) / "run", [*words, "--do", *part], steps=1)
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
    parser.add_argument("words", nargs="+", help="--draw SEED COUNT or --do ACTION:SEED …")
    parser.add_argument("--steps", type=int, default=2)
    parser.add_argument("--reduce", metavar="KIND", action="append", help="find the fewest actions that still show such rows")
    asked, words = parser.parse_known_args()
    words += asked.words
    with tempfile.TemporaryDirectory(prefix="tagged-") as folder:
        summary = run(asked.profile, Path(folder) / "run", words, steps=asked.steps)
    print(summary, summary.refused, sep="\n")
    if asked.reduce:
        also = [word for word in ("--long", "--dense") if word in words]
        print(*reduced(asked.profile, asked.reduce, summary.does[0], also))


if __name__ == "__main__":
    main()
