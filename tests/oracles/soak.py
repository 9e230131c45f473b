"""Draws of the tagged workload for a given time: `python -m tests.oracles.soak SECONDS SEED [FAMILY
…]`; or repeats of earlier draws: `python -m tests.oracles.soak --draw SEED/NUMBER/FAMILY …`.

A soak ends with two Markdown tables, by family and by variant. Its exit status is 1 if any draw was
out of bounds.
"""

import random
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tests.oracles.tagged_check import Summary
from tests.oracles.tagged_draw import GUESTS, NATIVE, drawn

LONG_EVERY = 10
"""Interval between long draws, in draws."""


def table(first: str, summaries: Mapping[str, list[Summary]]) -> str:
    lines = [
        f"| {first} | draws | rows | MB | silent | doubtful | missing |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for name, draws in sorted(summaries.items()):
        all_ = Summary.sum(draws)
        shares = f"{all_.silent:.3%} | {all_.doubtful:.2%} | {all_.missing:.2%}"
        lines.append(
            f"| {name} | {len(draws)} | {all_.rows:,} | {all_.compared / 1e6:.0f} | {shares} |"
        )
    return "\n".join(lines)


def in_turn(families: Sequence[str], seed: str) -> Iterator[str]:
    """Yield each family once before any is repeated, in a new order each round. Short soaks do not
    always start with the same family, and long draws do not all hit one family."""
    rng = random.Random(seed)
    while True:
        yield from rng.sample(families, len(families))


def for_so_long(end: float, seed: str, *families: str) -> Iterator[str]:
    """Yield names of draws (seed, number, family) until the time is up."""
    for number, family in enumerate(in_turn(families or [*NATIVE, *GUESTS], seed), 1):
        if time.monotonic() >= end:
            return
        yield f"{seed}/{number}/{family}"


def main() -> None:
    first, *rest = sys.argv[1:]
    begun = time.monotonic()
    failed: list[str] = []
    by_family: defaultdict[str, list[Summary]] = defaultdict(list)
    by_variant: defaultdict[str, list[Summary]] = defaultdict(list)
    for said in rest if first == "--draw" else for_so_long(begun + int(first), *rest):
        _, number, family = said.split("/")
        print(f"== {said}", flush=True)
        with tempfile.TemporaryDirectory(prefix="soak-") as folder:
            is_long = int(number) % LONG_EVERY == 0
            try:
                draw = drawn(family, random.Random(said), Path(folder), print, is_long=is_long)
                by_family[draw.family].append(draw.summary)
                by_variant[draw.variant].append(draw.summary)
                draw.check()
            except AssertionError as error:
                print(f"FAILED: {error}", flush=True)
                failed.append(said)
    draws = [summary for summaries in by_family.values() for summary in summaries]
    rate = len(draws) / (time.monotonic() - begun) * 60
    rows = sum(summary.rows for summary in draws)
    print(f"\n{len(draws)} draws, {rate:.1f} a minute; {rows} rows compared")
    print(f"out of bounds: {failed or 'none'}\n")
    print(table("family", by_family), table("variant", by_variant), sep="\n\n")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
