"""Draws of the tagged workload for so long: `python -m tests.oracles.soak SECONDS SEED [FAMILY …]`;
a table at the end, exit status 1 if any was out of bounds."""

import random
import sys
import tempfile
import time
from collections import Counter, defaultdict
from pathlib import Path

from tests.oracles.tagged_check import DOUBTFUL, WRONG, Summary
from tests.oracles.tagged_draw import GUESTS, NATIVE, summed


def main() -> None:
    seconds, seed, *families = sys.argv[1:]
    begun = time.monotonic()
    failed: list[str] = []
    by_variant: defaultdict[str, Summary] = defaultdict(Summary)
    draws: Counter[str] = Counter()
    number = 0
    while time.monotonic() < begun + int(seconds):
        for family in families or (*NATIVE, *GUESTS):
            number += 1
            said = f"{seed}/{number}/{family}"
            print(f"== {said}", flush=True)
            with tempfile.TemporaryDirectory(prefix="soak-") as folder:
                try:
                    variant, summary = summed(
                        family, random.Random(said), Path(folder), print, is_long=number % 10 == 0
                    )
                    draws[variant] += 1
                    by_variant[variant].join(summary)
                    summary.check(family)
                except AssertionError as error:
                    print(f"FAILED: {error}", flush=True)
                    failed.append(said)
    minutes = (time.monotonic() - begun) / 60
    rows = sum(summary.rows.total() for summary in by_variant.values())
    print(
        f"\n{draws.total()} draws, {draws.total() / minutes:.1f} a minute; {rows} rows compared; out of bounds: {failed or 'none'}"
    )
    for variant, summary in sorted(by_variant.items()):
        print(
            f"{draws[variant]:4} {summary.compared:12} bytes  doubtful {summary.share(DOUBTFUL):7.2%}  wrong {summary.share(WRONG):7.2%}  {variant}"
        )
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
