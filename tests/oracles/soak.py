"""Draws of the tagged workload for a given time: `python -m tests.oracles.soak SECONDS SEED [FAMILY
…]`; or repeats of earlier draws: `python -m tests.oracles.soak --draw SEED/NUMBER/FAMILY/KIND …`.

A soak ends with two Markdown tables, by family and kind and by variant, and with the draws that
failed. Its exit status is 1 if any draw failed. Each draw adds a line to the tally (tally.py).
"""

import argparse
import math
import random
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path

from tests.oracles import tally
from tests.oracles.tagged_draw import GUESTS, NATIVE, UNREPEATABLE, Drawn, drawn, kinds

LONG_EVERY = 10
"""Interval between long draws, in draws."""
REPEAT = "PYTHONPATH=. .venv/bin/python -m tests.oracles.soak --draw"


def in_turn(names: Sequence[str], seed: str) -> Iterator[str]:
    """Yield each name once before any is repeated, in a new order each round. Short soaks do not
    always start with the same family, and long draws do not all hit one family."""
    rng = random.Random(seed)
    while True:
        yield from rng.sample(names, len(names))


def for_so_long(
    end: float, seed: str, *families: str, without: Collection[str] = ()
) -> Iterator[str]:
    """Yield names of draws (seed, number, family, kind) until the time is up."""
    chosen = families or (*NATIVE, *GUESTS)
    next_kind = {
        family: in_turn([kind for kind in kinds(family) if kind not in without], f"{seed}/{family}")
        for family in chosen
    }
    for number, family in enumerate(in_turn(chosen, seed), 1):
        if time.monotonic() >= end:
            return
        yield f"{seed}/{number}/{family}/{next(next_kind[family])}"


def one(name: str) -> Drawn:
    """Make the draw with this name."""
    _, number, family, kind = name.split("/")
    is_long = int(number) % LONG_EVERY == 0
    with tempfile.TemporaryDirectory(prefix="soak-") as folder:
        return drawn(family, kind, random.Random(name), Path(folder), print, is_long=is_long)


def soak(
    names: Iterable[str], make: Callable[[str], Drawn], keep: Callable[[tally.Cell], None]
) -> list[str]:
    """Make all draws, and return the names of those that failed or were out of bounds."""
    revision, failed = tally.revision(), []
    for name in names:
        print(f"== {name}", flush=True)
        try:
            draw = make(name)
            keep(tally.Cell.of(name, draw, revision))
            draw.check()
        except Exception as error:  # noqa: BLE001 Whatever fails is reported at the end.
            if not isinstance(error, AssertionError):
                traceback.print_exc(file=sys.stdout)
            print(f"FAILED: {error}", flush=True)
            failed.append(name)
    return failed


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("words", nargs="+", metavar="SECONDS SEED [FAMILY …]")
    parser.add_argument("--draw", action="store_true", help="repeat the draws with these names")
    parser.add_argument(
        "--repeatable",
        type=int,
        metavar="N",
        help="make N draws, of kinds that a seed repeats, however long they take",
    )
    parser.add_argument("--tally", type=Path, default=tally.FILE)
    asked = parser.parse_args()
    begun = time.monotonic()
    cells: list[tally.Cell] = []

    def keep(cell: tally.Cell) -> None:
        cells.append(cell)
        if not asked.draw:
            tally.append(asked.tally, cell)

    if asked.draw:
        names = iter(asked.words)
    elif asked.repeatable is not None:
        endless = for_so_long(math.inf, *asked.words[1:], without={UNREPEATABLE})
        names = islice(endless, asked.repeatable)
    else:
        names = for_so_long(begun + int(asked.words[0]), *asked.words[1:])
    failed = soak(names, one, keep)
    rate = len(cells) / (time.monotonic() - begun) * 60
    rows = sum(cell.rows for cell in cells)
    print(f"\n{len(cells)} draws, {rate:.1f} a minute; {rows} rows compared\n")
    print(tally.table(cells, "family", "kind"), tally.table(cells, "variant"), sep="\n\n")
    if failed:
        print(f"\n{len(failed)} draws FAILED; to repeat them:")
        print(*(f"{REPEAT} {name}" for name in failed), sep="\n")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
