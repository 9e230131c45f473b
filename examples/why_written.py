"""Print why the bytes of a recording were written: `.venv/bin/python examples/why_written.py`.

By default, it reads a small ext4 recording in the repository, so it needs neither root nor a run.
Pass another recording as the argument; `fscost compare … --keep all` keeps those of all its cells.
"""

import sys
from pathlib import Path

import fscost

SMALL = Path(__file__).parents[1] / "crates/explain/tests/data/ext/ext4.fscost"


def main() -> None:
    """Print the bytes of each cause, then of each kind of block."""
    explanation = fscost.explain(sys.argv[1] if len(sys.argv) > 1 else SMALL)
    work = explanation.within(explanation.measured)
    for column in ("cause", "structure"):
        sums = work.sums(column).sort_by([("length_sum", "descending")])
        print(f"{column}, KiB")
        for row in sums.to_pylist():
            print(f"  {row['length_sum'] / 1024:8.1f}  {row[column]}")


if __name__ == "__main__":
    main()
