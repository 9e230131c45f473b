"""Kill processes of guest runs for a given time: `python -m tests.whole.kill_soak SECONDS SEED`.

The script prints a running count, and a table at the end. Its exit status is 1 if anything but a
cell was lost.
"""

import random
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tests.whole.kills import Soak

from fscost.files import cache


def cache_without_snapshots(folder: Path) -> Path:
    """Create a folder for XDG_CACHE_HOME with the user's kernels and the cached facts about KVM,
    but no snapshot."""
    own = folder / "cache" / "fscost"
    own.mkdir(parents=True)
    for name in ("kernels", "kvm"):
        if (cache.root() / name).exists():
            (own / name).symlink_to(cache.root() / name)
    return own.parent


def soak(folder: Path, empty_cache: Path, seed: int, goes_on: Callable[[int], bool]) -> Soak:
    """Kill processes while `goes_on`, which gets the number of kills so far, returns true. Four in
    ten draws kill fscost itself; one in ten kills a process while there is no snapshot."""
    print(f"seed {seed}", flush=True)
    made = Soak(folder, seed, {})
    made.whole()
    draw = random.Random(seed)
    done = 0
    while goes_on(done):
        chance = draw.random()
        # Each run of guests loses several processes; the other runs lose one.
        done += (
            made.runner()
            if chance < 0.4
            else made.making(empty_cache)
            if chance < 0.5
            else made.guests()
        )
        print(done, dict(made.outcomes), flush=True)
    made.whole()
    made.whole({"XDG_CACHE_HOME": str(empty_cache)})
    for outcome, count in sorted(made.outcomes.items()):
        print(*outcome, count, sep=" | ")
    print(f"{done} kills, seed {seed}; troubles: {len(made.troubles)}", flush=True)
    return made


def main() -> None:
    seconds, seed = map(int, sys.argv[1:])
    end = time.monotonic() + seconds
    with tempfile.TemporaryDirectory(prefix="kills-") as name:
        folder = Path(name)
        made = soak(folder, cache_without_snapshots(folder), seed, lambda _: time.monotonic() < end)
    sys.exit(bool(made.troubles))


if __name__ == "__main__":
    main()
