"""A workload whose data names its owner: `tagged_work.py STATE --draw SEED COUNT`, run in the root
of the file system under test.

Every 512 bytes of every file name the file, its path, the offset and the action that wrote them
(TAG in tagged_tree.py). Standard output is the journal: what each identity is, when it gained and
lost each name, and what was made durable when (see ledger.py). The module needs the standard
library only, so that it runs in guests. STATE, outside of the file system, carries the trees from
one call to the next.
"""

import argparse
import errno
import os
import pickle
import random
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tagged_actions import UNSUPPORTED  # beside this file, in guests too
from tagged_kinds import KINDS, WORKERS
from tagged_scenarios import Scenarios
from tagged_tree import Journal


class Work(Scenarios):
    """The actions of one thread."""

    def drawn(self, kind: str, actions: int, without: list[str]) -> list[str]:
        """Draw all actions of the kind in random order, then random ones. Each action has a seed of
        its own, so leaving some out does not change the others."""
        weights = {do: weight for do, weight in KINDS[kind].items() if do not in without}
        chosen = self.rng.sample(list(weights), len(weights)) + self.rng.choices(
            list(weights), list(weights.values()), k=actions
        )
        return [f"{do}:{self.rng.randrange(1 << 32)}" for do in chosen]

    def run(self, actions: list[str]) -> None:
        self.tell("DOES", *actions)
        for action in actions:
            name, seed = action.split(":")
            self.rng = random.Random(seed)
            self.step()
            try:
                getattr(self, name)()
            except OSError as error:
                if error.errno not in UNSUPPORTED:
                    raise
                self.tell("REFUSED", name, errno.errorcode[error.errno or 0])
        for file in [file for file in self.files if file.descriptor is not None]:
            self.closed(file)
        self.journal.end(self.worker)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("state", type=Path)
    chosen = parser.add_mutually_exclusive_group(required=True)
    chosen.add_argument("--draw", nargs=2, metavar=("SEED", "COUNT"))
    chosen.add_argument("--do", nargs="+", metavar="ACTION:SEED")
    parser.add_argument("--kind", choices=KINDS, default="mixed")
    parser.add_argument("--without", action="append", default=[], metavar="ACTION")
    parser.add_argument("--long", action="store_true")
    parser.add_argument("--filler", choices=("dots", "random", "numbers"), default="dots")
    asked = parser.parse_args()
    if asked.state.exists():
        journal, workers = pickle.loads(asked.state.read_bytes())
    else:
        journal, count = Journal(), 1 if asked.do else WORKERS.get(asked.kind, 1)
        workers = [
            Work(journal, number, is_long=asked.long, filler=asked.filler)
            for number in range(count)
        ]
    journal.write(f"INODE\t0\t{os.stat('.').st_ino}")  # noqa: PTH116
    lists = [asked.do] * len(workers)
    if asked.draw:
        seed, count = asked.draw
        for number, worker in enumerate(workers):
            worker.rng = random.Random(f"{seed}/{number}")
            each = worker.drawn(asked.kind, int(count) // len(workers), asked.without)
            lists[number] = each
    with ThreadPoolExecutor(len(workers)) as threads:
        for ended in [threads.submit(Work.run, *each) for each in zip(workers, lists, strict=True)]:
            ended.result()
    journal.write("END")
    asked.state.write_bytes(pickle.dumps((journal, workers)))


if __name__ == "__main__":
    main()
