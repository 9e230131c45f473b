"""What any command's calls promised: the content of each file at its fsync, read from the recording
itself. Here is also the check of whether a state still has it.

A snapshot (`snapshot.py`) is what a mount of the disks at an instant shows, if everything that was
submitted by then had survived. At the end of an fsync, that includes what it promised.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar

from fscost import analyze, capture
from fscost.crash.promises import LOST, UNNAMED, UNREADABLE
from fscost.crash.snapshot import ZERO
from fscost.errors import InputError

FSYNC = "fsync"
"""Kind of a promise that any command made: its number is the inode."""
_MOST_BYTES = 1 << 30
"""Memory of all snapshots of a recording."""
_NAME_BYTES = 300
"""Memory of an entry, beside its name and its content."""
_MOST_LEVELS = 256
"""Folders that are named in a path."""
T = TypeVar("T")


def heard(recording: Path, phases: Sequence[str]) -> tuple[list[tuple[int, str, int]], int]:
    """Return the end and the inode of each fsync and fdatasync of these phases, and the number of
    calls whose end or inode is unknown: a recording holds those of the first calls alone."""
    with capture.opened(recording) as opened:
        marks = [analyze.mark(*each) for each in opened.marks()]
    calls, count = analyze.heard(marks, phases)
    known = [
        (call.at_ns + call.took_ns, FSYNC, call.inode)
        for call in calls
        if call.took_ns is not None and call.inode is not None
    ]
    return known, count - len(known)


Snapshot = Mapping[str, Mapping[str, Any]]


class Album:
    """Snapshots that are kept at a time. What two of them have in common takes memory once."""

    def __init__(self) -> None:
        self._left_bytes = _MOST_BYTES
        self._last: dict[str, dict[str, Any]] = {"files": {}, "folders": {}}

    def kept(self, found: Snapshot) -> Snapshot:
        """Return a snapshot, in little memory. InputError if all of them take too much."""
        files, folders = self._last["files"], self._last["folders"]
        for key, (path, sectors) in found["files"].items():
            mine = (path, None if sectors is None else array("q", sectors))
            files[key] = self._new(files.get(key), mine, 4 * len(path) + 8 * len(mine[1] or ()))
        for key, names in found["folders"].items():
            lengths = 4 * sum(map(len, names))
            folders[key] = self._new(folders.get(key), names, lengths + _NAME_BYTES * len(names))
        self._left_bytes -= _NAME_BYTES * (len(found["files"]) + len(found["folders"]))
        if self._left_bytes < 0:
            raise InputError(
                f"what files held at several instants takes more than {_MOST_BYTES >> 20} MiB",
                "give fewer --cuts",
            )
        return {
            "files": {key: files[key] for key in found["files"]},
            "folders": {key: folders[key] for key in found["folders"]},
        }

    def _new(self, known: T | None, found: T, found_bytes: int) -> T:
        """Return what is known if it is equal to what was found."""
        if known is not None and known == found:
            return known
        self._left_bytes -= _NAME_BYTES + found_bytes
        return found


@dataclass(frozen=True)
class Reference:
    """Snapshots at several instants, in order. `promises`: the instants at which each file or
    folder was promised, by inode; all were at the first one, which follows a sync."""

    instants: Sequence[int]
    snapshots: Sequence[Mapping[str, Any]]
    promises: Mapping[int, Sequence[int]]

    def broken(self, at_ns: int, found: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        """Yield each broken promise of a state, whose promises were made by `at_ns`."""
        made = {
            inode: place
            for inode, ends in self.promises.items()
            if (place := bisect_right(ends, at_ns) - 1) >= 0
        }
        for inode, place in made.items():
            first = bisect_left(self.instants, self.promises[inode][place])
            yield from self._kept(first, {inode}, found)
        others = {_inode(key) for part in self.snapshots[0].values() for key in part}
        yield from self._kept(0, others - made.keys(), found)

    def _kept(
        self, first: int, inodes: Collection[int], found: Mapping[str, Any]
    ) -> Iterator[tuple[str, str]]:
        """Compare files and folders with their snapshot at an instant."""
        earlier, later = self.snapshots[:first], self.snapshots[first:]
        paths = _Paths(later[0]["folders"])
        for key in later[0]["files"]:
            if _inode(key) in inodes:
                yield from _file(key, earlier, later, found)
        for key in later[0]["folders"]:
            if _inode(key) in inodes:
                yield from _folder(key, earlier, later, found, paths)


class _Paths:
    """The paths of folders. Hard links to folders do not exist."""

    def __init__(self, folders: Mapping[str, Mapping[str, str]]) -> None:
        self._folders = folders

    def of(self, key: str) -> PurePosixPath:
        """Return the path of a folder: at most its last `_MOST_LEVELS` names."""
        names: list[str] = []
        while key in self._parents and len(names) < _MOST_LEVELS:
            key, name = self._parents[key]
            names.append(name)
        return PurePosixPath(*reversed(names))

    @cached_property
    def _parents(self) -> dict[str, tuple[str, str]]:
        folders = self._folders.items()
        return {child: (parent, name) for parent, of in folders for name, child in of.items()}


def _inode(key: str) -> int:
    return int(key.partition(":")[0])


def _file(
    key: str,
    earlier: Sequence[Mapping[str, Any]],
    later: Sequence[Mapping[str, Any]],
    found: Mapping[str, Any],
) -> Iterator[tuple[str, str]]:
    """Compare a file with the version that was promised. Each sector may also be newer."""
    path, promised = later[0]["files"][key]
    if key not in found["files"]:
        # Its name is the promise of its folder.
        if all(key in each["files"] for each in later):
            yield UNNAMED, path
        return
    mine = found["files"][key][1]
    if promised is None:
        return  # it could not be read even if nothing was lost, which is a fault of that state
    if mine is None:
        yield UNREADABLE, path
        return
    versions = _versions(key, later)
    shortest = min(len(version) for version in versions)
    if len(mine) < min(shortest, len(promised)):
        yield LOST, f"{path} ({len(mine)} of {len(promised)} sectors)"
        return
    old = _versions(key, earlier)
    for number in range(min(len(promised), len(mine))):
        allowed = {version[number] for version in versions if number < len(version)}
        if any(len(version) <= number for version in versions):
            # A truncate that had not returned: the rest of a block is zero before the size is new.
            allowed.add(ZERO)
        if mine[number] in allowed:
            continue
        before = {ZERO, *(version[number] for version in old if number < len(version))}
        # Unknown content may be a newer version that came and went between two snapshots, but not
        # if there never was a newer one.
        if mine[number] in before or len(allowed) == 1:
            yield LOST, f"{path}, sector {number}"
            return


def _versions(key: str, snapshots: Sequence[Mapping[str, Any]]) -> list[Sequence[int]]:
    """Return a file's content in each snapshot in which it could be read."""
    found = (each["files"].get(key, (None, None))[1] for each in snapshots)
    return [version for version in found if version is not None]


def _folder(
    key: str,
    earlier: Sequence[Mapping[str, Any]],
    later: Sequence[Mapping[str, Any]],
    found: Mapping[str, Any],
    paths: _Paths,
) -> Iterator[tuple[str, str]]:
    """Compare the names of a folder with those that were promised. Each may also be newer."""
    if key not in found["folders"]:
        return
    mine = found["folders"][key]
    old = [each["folders"][key] for each in earlier if key in each["folders"]]
    for name in later[0]["folders"][key]:
        allowed = {each["folders"].get(key, {}).get(name) for each in later}
        before = {None, *(each.get(name) for each in old)}
        here = mine.get(name)
        if here not in allowed and here in before:
            path = paths.of(key) / name
            yield LOST, f"{path} ({'missing' if here is None else 'the file before'})"
            return


def instants(
    promises: Mapping[int, Sequence[int]], cuts: Sequence[int], margin_ns: int, most: int
) -> list[int]:
    """Return the instants of promises that are the newest ones before a cut: at most `most` of
    each."""
    ends = sorted({at_ns for made in promises.values() for at_ns in made})
    chosen: set[int] = set()
    for at_ns in cuts:
        place = bisect_right(ends, at_ns - margin_ns)
        chosen.update(ends[max(0, place - most) : place])
    return sorted(chosen)
