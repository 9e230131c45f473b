"""The journal of tagged_work.py: which file had which names when, and what was on the disk by
when.

Times are action numbers. Threads run actions at the same time, so an instant is a pair of numbers:
the last action that had certainly completed, and the last one that may have begun.
"""

from collections import defaultdict
from dataclasses import dataclass, field
from typing import NamedTuple

NEVER = 1 << 62


class Had(NamedTuple):
    """A name that a file or directory had."""

    identity: int
    gained: int
    """The action that gained it."""
    left: int = NEVER
    """The action that dropped it."""
    dropped: int = NEVER
    """The last action that had begun when it was gone."""


class Sync(NamedTuple):
    identity: int | None
    """The file that was made durable, or None for everything."""
    covered: int
    """The last action whose effects were made durable, as those of all before it."""
    ended: int
    """The last action that had begun when the sync ended."""


@dataclass
class Ledger:
    """The parsed journal."""

    root: int = 0
    """Inode of the root directory."""
    inodes: dict[int, int] = field(default_factory=dict)
    """Inode number by identity."""
    steps: defaultdict[tuple[int, str], list[Had]] = field(
        default_factory=lambda: defaultdict(list)
    )
    """Files by directory and name."""
    syncs: list[Sync] = field(default_factory=list)
    clones: defaultdict[int, list[tuple[int, int]]] = field(
        default_factory=lambda: defaultdict(list)
    )
    """Clones by identity: the files that share its data, each with the action that cloned it."""
    refused: defaultdict[str, int] = field(default_factory=lambda: defaultdict(int))
    does: list[list[str]] = field(default_factory=list)
    """Actions of each step."""
    is_whole: bool = False

    @classmethod
    def read(cls, text: str) -> "Ledger":
        ledger = cls()
        for line in text.splitlines():
            kind, *words = line.split("\t")
            match kind:
                case "INODE":
                    ledger.root, ledger.is_whole = int(words[1]), False
                case "DOES":
                    ledger.does.append(words[1:])
                case "BORN":
                    ledger.inodes[int(words[1])] = int(words[2])
                case "GAINED":
                    action, identity, folder = map(int, words[:3])
                    ledger.steps[folder, words[3]].append(Had(identity, action))
                case "DROPPED":
                    action, identity, folder = map(int, words[:3])
                    had = ledger.steps[folder, words[3]]
                    [last] = [
                        at
                        for at, each in enumerate(had)
                        if each.identity == identity and each.left == NEVER
                    ][-1:]
                    had[last] = Had(identity, had[last].gained, action, int(words[4]))
                case "SYNCED":
                    identity_ = None if words[1] == "*" else int(words[1])
                    ledger.syncs.append(Sync(identity_, int(words[2]), int(words[3])))
                case "CLONED":
                    action, source, clone = map(int, words)
                    ledger.clones[source].append((clone, action))
                case "REFUSED":
                    ledger.refused[f"{words[1]}: {words[2]}"] += 1
                case "END":
                    ledger.is_whole = True
        return ledger

    def sharing(self, identity: int, by: int) -> set[int]:
        """Return the file and all files that may share blocks it wrote, once action `by` had
        begun."""
        found: set[int] = set()
        waiting = [identity]
        while waiting:
            here = waiting.pop()
            if here not in found:
                found.add(here)
                waiting += [clone for clone, action in self.clones[here] if action <= by]
        return found

    def intervals(self, path: str, *, is_atomic: bool = True) -> dict[int, list[tuple[int, int]]]:
        """Return by identity the intervals in which the file had this path. Unless `is_atomic`,
        each component must have existed, but not all of them at the same time."""
        at = [(0, 0, NEVER)]
        for name in path.removeprefix("/").split("/"):
            found = []
            for folder, begin, end in at:
                for had in self.steps.get((folder, name), ()):
                    first, last = max(begin, had.gained), min(end, had.dropped)
                    if not is_atomic:
                        first, last = had.gained, had.dropped
                    if first <= last:
                        found.append((had.identity, first, last))
            at = found
        paths = defaultdict(list)
        for identity, first, last in at:
            paths[identity].append((first, last))
        return paths
