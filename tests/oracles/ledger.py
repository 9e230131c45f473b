"""The journal of tagged_work.py: which file had which names when, and what was on the disk by
when."""

from collections import defaultdict
from dataclasses import dataclass, field

NEVER = 1 << 62


@dataclass
class Ledger:
    """The parsed journal; times are action numbers."""

    root: int = 0
    """Inode of the root directory."""
    inodes: dict[int, int] = field(default_factory=dict)
    """Inode number by identity."""
    steps: defaultdict[tuple[int, str], list[list[int]]] = field(
        default_factory=lambda: defaultdict(list)
    )
    """Steps by directory and name: identity, action that gained the name, action that dropped
    it."""
    syncs: list[tuple[int, int | None]] = field(default_factory=list)
    """Action at which a sync ended, and what it made durable: one file, or all (None)."""
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
                    ledger.steps[folder, words[3]].append([identity, action, NEVER])
                case "DROPPED":
                    action, identity, folder = map(int, words[:3])
                    last = [
                        step
                        for step in ledger.steps[folder, words[3]]
                        if step[0] == identity and step[2] == NEVER
                    ][-1]
                    last[2] = action
                case "SYNCED":
                    ledger.syncs.append((int(words[0]), None if words[1] == "*" else int(words[1])))
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

    def intervals(self, path: str, *, is_atomic: bool) -> dict[int, list[tuple[int, int]]]:
        """Return by identity the intervals in which the file had this path. Unless `is_atomic`,
        each component must have existed, but not all of them at the same time."""
        at = [(0, 0, NEVER)]
        for name in path.removeprefix("/").split("/"):
            found = []
            for folder, begin, end in at:
                for identity, gained, dropped in self.steps.get((folder, name), ()):
                    first, last = max(begin, gained), min(end, dropped) if is_atomic else dropped
                    if first <= last or not is_atomic:
                        found.append((identity, first, last))
            at = found
        had = defaultdict(list)
        for identity, first, last in at:
            had[identity].append((first, last))
        return had
