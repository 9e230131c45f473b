"""A state with a fault as data that needs no recording: the writes that make its disk, and the
check of what broke."""

import base64
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fscost import capture
from fscost.crash import operations, workloads
from fscost.crash.explore import (
    Limits,
    Outcome,
    Source,
    State,
    about_of,
    job_of,
    kept_at,
    reference,
    silent,
)
from fscost.crash.fsynced import Reference
from fscost.crash.pieces import pieces
from fscost.crash.programs import Answered
from fscost.crash.promises import CONFIG, DATABASE, DATED, LOG, MAIL, SPOOL, STALE, most_rounds
from fscost.crash.sqlite import DAMAGED
from fscost.crash.verdict import faults, kind_of, named
from fscost.errors import InputError

if TYPE_CHECKING:
    from fscost._native import Crash

MOUNT, CHECK, CONTENT, FOREIGN = "mount", "check", "content", "foreign"
_PLACE = re.compile(r"(?P<path>.+?)(?:, (?:sector|record) \d+| \([^()]*\))", re.DOTALL)
_MOST_BYTES = 256 << 20


@dataclass(frozen=True)
class Write:
    """Pending blocks, what they were, and their content if they reach the medium."""

    words: str
    offset: int
    is_kept: bool
    data: bytes


@dataclass(frozen=True)
class Case:
    """`check`: what must hold: the state mounts (`mount`), has no errors (`check`), or the file at
    `path` exists, and begins with one of `versions` if there are any (`content`) or holds only its
    own bytes (`foreign`).
    `base`: offset and content of what was durable. `lines`: the workload as shell commands, up to
    the promise; empty if they are unknown."""

    profile: str
    words: Sequence[str]
    type: str
    mkfs_flags: Sequence[str]
    options: str
    size_bytes: int
    sector_bytes: int
    check: str
    path: str
    versions: Sequence[bytes]
    base: Sequence[tuple[int, bytes]]
    writes: Sequence[Write]
    lines: Sequence[str]


def case(found: Source, profile: str, device: str, outcome: Outcome, answered: Answered) -> Case:
    """Collect what a script needs."""
    if len(found.disks) > 1:
        raise InputError(f"{profile} is on several disks", "a script has one disk")
    kind, where = kind_of(outcome)
    if kind == DAMAGED or found.workload.startswith(("sqlite", "postgresql")):
        raise InputError(
            "what a database promised is checked by fscost itself",
            "show a state of --workload files, of sequences or of a command",
        )
    if kind == DATED:
        raise InputError("a script cannot show a modification time", "show another state")
    check = {"": MOUNT if not outcome.mounts else CHECK, STALE: FOREIGN}.get(kind, CONTENT)
    path = path_of(found, where) if where else ""
    disk, state = found.disks[0], outcome.state
    crash = capture.crash(found.recording, state.without)
    base = _image(crash, device, replace(state, kept=()))
    own = _image(crash, device, state)
    whole = _image(crash, device, _whole(state, state.at_ns))
    try:
        extents = list(_extents(base))
        writes = _writes(found, device, state, own, whole)
    finally:
        for image in (base, own, whole):
            os.close(image)
    # A name may be promised without its content.
    is_about_content = check == CONTENT and not where.endswith("(missing)")
    versions = _versions(found, device, state, path, answered) if is_about_content else []
    return Case(
        profile,
        [*faults(outcome), named(state)],
        found.type,
        found.mkfs_flags,
        found.options,
        disk.size_bytes,
        disk.sector_bytes,
        check,
        path,
        versions,
        extents,
        writes,
        _lines(found, state, path),
    )


def _lines(found: Source, state: State, path: str) -> list[str]:
    """Return the commands up to the promise, if there are any for this workload."""
    chosen = workloads.operations(found.workload)
    is_sequence = workloads.is_sequences(found.workload)
    if chosen is None and not (is_sequence and path):
        return []
    kept = kept_at(found.promises, state.at_ns, found.margin_ns)
    rounds = kept.get(_kind(path), most_rounds(kept))
    return list(operations.lines(chosen, found.type, path, rounds))


def _kind(path: str) -> str:
    """Return the kind of promise that a file of the workload `files` is about."""
    return path.partition("/")[0]


def path_of(found: Source, where: str) -> str:
    """Return the path of the file that a fault names."""
    match = _PLACE.fullmatch(where)
    name = match["path"] if match else where
    if workloads.operations(found.workload):
        for folder in (MAIL, SPOOL):
            if name.startswith(f"{folder}-"):
                return f"{folder}/{name}"
    return name


def _whole(state: State, at_ns: int) -> State:
    """Return a state of the same disk at an instant that lost nothing."""
    count = state.pending if at_ns == state.at_ns else 0
    return replace(state, at_ns=at_ns, kept=range(count), how="all")


def _image(crash: "Crash", device: str, state: State) -> int:
    image = os.memfd_create("state")
    crash.export(state.at_ns, device, list(state.kept), 0, image, Path("state"))
    return image


def _extents(image: int) -> Iterator[tuple[int, bytes]]:
    end, left = 0, _MOST_BYTES
    while True:
        try:
            begin = os.lseek(image, end, os.SEEK_DATA)
        except OSError:
            return
        end = os.lseek(image, begin, os.SEEK_HOLE)
        left -= end - begin
        if left < 0:
            raise InputError(
                f"more than {_MOST_BYTES >> 20} MiB are on the disk", "measure a smaller workload"
            )
        yield begin, os.pread(image, end - begin, begin)


def _writes(found: Source, device: str, state: State, own: int, whole: int) -> list[Write]:
    """Return the pending blocks: kept ones with their content in the state, lost ones with the
    content that they would have given it."""
    blocks = pieces(found.recording, device, state)
    return [
        Write(
            f"{each.structure or 'unknown'}{f' of /{name}' if name else ''} ({each.cause})",
            each.offset,
            each.is_kept,
            os.pread(own if each.is_kept else whole, each.length, each.offset),
        )
        for each in blocks
        if (name := (each.path or "").lstrip("/")) is not None
    ]


def _versions(
    found: Source, device: str, state: State, path: str, answered: Answered
) -> list[bytes]:
    """Return what the file may hold: its content when it was promised, and at the cut."""
    limits = Limits(device=device)
    known, _ = reference(found, {state.at_ns}, limits, answered)
    instants = [*_promised(found, state, path, known), state.at_ns]
    crash = capture.crash(found.recording)
    jobs: list[dict[str, Any]] = []
    for at_ns in dict.fromkeys(instants):
        pending = len(crash.pending(at_ns, device))
        full = State(at_ns, "all", range(pending), pending)
        jobs.append({**job_of(found, full), "read": path})
    answers = answered(about_of(found, limits), jobs, silent)
    contents = [base64.b64decode(told["read"]) for told in answers if told["read"] is not None]
    return list(dict.fromkeys(contents))


def _promised(found: Source, state: State, path: str, known: Reference | None) -> list[int]:
    """Return the instants at which a file had the content that was promised before the cut."""
    by_ns = state.at_ns - found.margin_ns
    if known is not None:
        keys = {
            key
            for each in known.snapshots
            for key, (name, _) in each["files"].items()
            if name == path
        }
        inodes = {int(key.partition(":")[0]) for key in keys}
        made = [at for at, _, inode in found.promises if inode in inodes and at <= by_ns]
    elif _kind(path) in (LOG, CONFIG, DATABASE, MAIL):
        made = [at for at, kind, _ in found.promises if kind == _kind(path) and at <= by_ns]
    else:
        made = []
    return made[-1:] or [found.begin_ns]
