"""The tally of all soaks, a file of JSON lines that grows with each draw: `python -m
tests.oracles.tally [FILE] [--revision REVISION]` prints it as a table."""

import argparse
import json
import subprocess
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.oracles.bounds import SHARES
from tests.oracles.tagged_draw import Drawn

FILE = Path("soak.jsonl")


@dataclass(frozen=True)
class Cell:
    """One draw in the tally."""

    revision: str
    draw: str
    """The draw's name, which repeats it at this revision: SEED/NUMBER/FAMILY/KIND."""
    family: str
    kind: str
    lab: str
    variant: str
    rows: int
    bytes: int
    silent: float
    doubtful_right: float
    doubtful_wrong: float
    missing: float
    worst: str | None
    """The kind of silent error with the most bytes."""

    @classmethod
    def of(cls, name: str, drawn: Drawn, revision: str) -> "Cell":
        summary = drawn.summary
        return cls(
            revision,
            name,
            drawn.family,
            drawn.kind,
            drawn.lab,
            drawn.variant,
            summary.rows,
            summary.compared,
            **summary.shares(),
            worst=summary.worst,
        )


def revision() -> str:
    """Return the commit that is checked out, marked if files differ from it."""
    described = ["git", "describe", "--always", "--dirty", "--abbrev=10"]
    return subprocess.run(described, check=True, capture_output=True, text=True).stdout.strip()


def append(file: Path, cell: Cell) -> None:
    with file.open("a") as lines:
        lines.write(json.dumps(asdict(cell)) + "\n")


def read(file: Path) -> list[Cell]:
    return [Cell(**json.loads(line)) for line in file.read_text().splitlines()]


def table(cells: Iterable[Cell], *by: str) -> str:
    """Return a Markdown table of the mean of all bytes and of the worst draw."""
    groups: defaultdict[tuple[str, ...], list[Cell]] = defaultdict(list)
    for cell in cells:
        groups[tuple(getattr(cell, column) for column in by)].append(cell)
    columns = [*by, "draws", "MB", *(share.replace("_", ", ") for share in SHARES), "mostly"]
    lines = [
        f"| {' | '.join(columns)} |",
        f"|{'---|' * len(by)}{'---:|' * (2 + len(SHARES))}---|",
    ]
    for group, draws in sorted(groups.items()):
        total = sum(cell.bytes for cell in draws)
        shares = []
        for share in SHARES:
            mean = sum(getattr(cell, share) * cell.bytes for cell in draws) / max(total, 1)
            worst = max(getattr(cell, share) for cell in draws)
            shares.append(f"{mean:.3%}, worst {worst:.2%}")
        mostly = max(draws, key=lambda cell: cell.silent).worst or ""
        said = [*group, str(len(draws)), f"{total / 1e6:.0f}", *shares, mostly]
        lines.append(f"| {' | '.join(said)} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description="Print a tally of soaks.")
    parser.add_argument("file", type=Path, nargs="?", default=FILE)
    parser.add_argument("--revision", help="only draws of revisions that begin like this")
    asked = parser.parse_args()
    cells = [cell for cell in read(asked.file) if cell.revision.startswith(asked.revision or "")]
    print(table(cells, "family", "kind"), table(cells, "family"), sep="\n\n")


if __name__ == "__main__":
    main()
