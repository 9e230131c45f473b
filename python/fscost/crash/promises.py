"""The workload whose promises a power cut must keep, and the check of what it left.

`main` runs as a program in a cell, without the packages that fscost needs otherwise, and prints a
line for each call that has returned. Each sector of each file names its file, version and place, so
that a wrong one says where it came from.
"""

import contextlib
import os
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import lru_cache
from pathlib import Path

from fscost.crash.kept import say_kept

SECTOR_BYTES = 512
_BYSTANDERS, _SLOTS, _SLOT_SECTORS, _OLD_SECTORS = 8, 8, 8, 32 << 10
_SPOOL_SECTORS, _SPOOLED, _ROOM_BYTES = 256, 8, 128 << 10
LOG, CONFIG, MAIL, DATABASE, STILL, OLD = "log", "config", "mail", "database", "still", "old"
SPOOL, SWAP, FILLER = "spool", "swap", "filler"
_OLD_NS = 10**18
"""Modification time of the files that nobody touches later: in 2001."""
CHANGED = "_changed"
"""A kind of promise with this end is a modification time in microseconds: fsync makes it durable,
fdatasync does not (fsync(2))."""
_MISSING = "missing"
_MOST_SECTORS, _MOST_CONTENTS = 1 << 14, 1 << 7
"""Sectors and contents that a check keeps for the next state: up to 24 MiB."""


@lru_cache(_MOST_SECTORS)
def sector(name: str, version: int, number: int) -> bytes:
    """Return a sector of a file's version."""
    head = f"{name} v{version} #{number} ".encode()
    return (head * (SECTOR_BYTES // len(head) + 1))[: SECTOR_BYTES - 1] + b"\n"


@lru_cache(_MOST_CONTENTS)
def content(name: str, version: int, sectors: int) -> bytes:
    """Return a whole version of a file."""
    return b"".join(sector(name, version, number) for number in range(sectors))


def _write(
    name: str,
    data: bytes,
    flags: int = os.O_TRUNC,
    *,
    is_synced: bool = True,
    changed_ns: int | None = None,
) -> int:
    """Write a file, and return its modification time in microseconds."""
    descriptor = os.open(name, os.O_CREAT | os.O_WRONLY | flags, 0o644)
    try:
        os.write(descriptor, data)
        if changed_ns is not None:
            os.utime(descriptor, ns=(changed_ns, changed_ns))
        if is_synced:
            os.fsync(descriptor)
        return os.fstat(descriptor).st_mtime_ns // 1000
    finally:
        os.close(descriptor)


def _sync_folder(name: str = ".") -> None:
    descriptor = os.open(name, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def prepare() -> None:
    """Make the files that nobody touches later, and leave old content in free blocks."""
    for number in range(_BYSTANDERS):
        name = f"{STILL}-{number}"
        _write(name, content(name, 0, 5), changed_ns=_OLD_NS)
    _write(DATABASE, content(DATABASE, 0, _SLOTS * _SLOT_SECTORS))
    _write(OLD, content(OLD, 0, _OLD_SECTORS))
    _write(SWAP, content(SWAP, 0, 8))
    for name in (MAIL, SPOOL):
        Path(name).mkdir()
        # Folders may be in other block groups, and their files beside them (fs/ext4/ialloc.c).
        _write(f"{name}/{OLD}", content(OLD, 0, _SPOOL_SECTORS * _SPOOLED))
        _sync_folder(name)
    _sync_folder()
    if _type() == "ext4":
        _fill()
    for folder in (".", MAIL, SPOOL):
        Path(folder, OLD).unlink()
        _sync_folder(folder)


def _type() -> str:
    """Return the type of this file system (proc_pid_mountinfo(5))."""
    number = Path().stat().st_dev
    device = f"{os.major(number)}:{os.minor(number)}"
    for line in Path("/proc/self/mountinfo").read_text(errors="replace").splitlines():
        words = line.split()
        if words[2] == device:
            return words[words.index("-") + 1]
    return ""


def _fill() -> None:
    """Reserve almost all free space, so that new files get the blocks of deleted ones. ext4 would
    take others first."""
    space = os.statvfs(".")
    descriptor = os.open(FILLER, os.O_CREAT | os.O_WRONLY, 0o644)
    os.posix_fallocate(descriptor, 0, space.f_bavail * space.f_frsize - _ROOM_BYTES)
    os.fsync(descriptor)
    os.close(descriptor)


def _say_kept(kind: str, number: int, changed_us: int) -> None:
    say_kept(**{kind: number, f"{kind}{CHANGED}": changed_us})


def _add_spool(number: int) -> None:
    name = f"{SPOOL}-{number}"
    _write(f"{SPOOL}/{name}", content(name, 0, _SPOOL_SECTORS), is_synced=False)
    Path(SPOOL, f"{SPOOL}-{number - _SPOOLED}").unlink(missing_ok=True)


def _replace_swap(number: int) -> None:
    _write(f"{SWAP}.new", content(SWAP, number, 8), is_synced=False)
    Path(f"{SWAP}.new").rename(SWAP)


def _append_to_log(number: int) -> None:
    changed_us = _write(LOG, sector(LOG, 0, number - 1), os.O_APPEND)
    if number == 1:
        _sync_folder()
    _say_kept(LOG, number, changed_us)


def _replace_config(number: int) -> None:
    changed_us = _write(f"{CONFIG}.new", content(CONFIG, number, 8))
    Path(f"{CONFIG}.new").rename(CONFIG)
    _sync_folder()
    _say_kept(CONFIG, number, changed_us)


def _add_mail(number: int) -> None:
    name = f"{MAIL}-{number}"
    changed_us = _write(f"{MAIL}/{name}", content(name, 0, 3))
    _sync_folder(MAIL)
    _say_kept(MAIL, number, changed_us)


def _overwrite_database(number: int) -> None:
    slot = number % _SLOTS
    descriptor = os.open(DATABASE, os.O_WRONLY)
    first = slot * _SLOT_SECTORS
    data = [sector(DATABASE, number, first + place) for place in range(_SLOT_SECTORS)]
    os.pwrite(descriptor, b"".join(data), first * SECTOR_BYTES)
    os.fdatasync(descriptor)
    os.close(descriptor)
    say_kept(**{DATABASE: number})


OPERATIONS: Mapping[str, Callable[[int], None]] = {
    SPOOL: _add_spool,
    SWAP: _replace_swap,
    LOG: _append_to_log,
    CONFIG: _replace_config,
    MAIL: _add_mail,
    DATABASE: _overwrite_database,
}
"""The operations of a round. No call makes the first two durable."""


def run(rounds: int, chosen: Collection[str] = tuple(OPERATIONS)) -> None:
    """Append, replace, create and overwrite, each followed by the calls that make it durable."""
    for number in range(1, rounds + 1):
        for name, operation in OPERATIONS.items():
            if name in chosen:
                operation(number)


Kept = Mapping[str, int]
"""The newest promise of each kind that was made."""


def most_rounds(kept: Kept) -> int:
    """Return the newest round that has made a promise: the numbers of other promises are times."""
    numbers = (number for kind, number in kept.items() if not kind.endswith(CHANGED))
    return max(numbers, default=0)


LOST, STALE, TORN, DATED, UNREADABLE = "lost", "stale", "torn", "dated", "unreadable"
EMPTIED, UNNAMED = "emptied", "unnamed"
DATA_LOST, NAMES_LOST = "data_lost", "names_lost"
UNPROMISED = (EMPTIED, UNNAMED, DATA_LOST, NAMES_LOST)
"""What breaks no promise of POSIX, but surprises many programs. `unnamed`: a file that was synced
has no name, because its folder was not synced. `data_lost` and `names_lost`: work that no call made
durable; its place is how many seconds, as text."""


def broken(folder: Path, kept: Kept) -> Iterator[tuple[str, str]]:
    """Yield each broken promise: `lost` (acknowledged data is gone or old), `stale` (a file holds
    bytes that nobody wrote to it), `torn` (a file that was replaced at once is neither version),
    `dated` (its modification time is not the one that was made durable) or `unreadable` (a read
    fails), and the place in words. `emptied` breaks no promise of POSIX: a file that was replaced
    without fsync is neither version."""
    for number in range(_BYSTANDERS):
        name = f"{STILL}-{number}"
        yield from _exact(folder / name, name, 0, 5)
        yield from _dated(folder / name, name, lambda found_us: found_us != _OLD_NS // 1000)
    for number in range(1, kept.get(MAIL, 0) + 1):
        name = f"{MAIL}-{number}"
        yield from _exact(folder / MAIL / name, name, 0, 3)
    yield from _unpromised(folder / MAIL, MAIL, kept.get(MAIL, 0))
    yield from _unpromised(folder / SPOOL, SPOOL, 0)
    yield from _swapped(folder / SWAP)
    yield from _log(folder / LOG, kept.get(LOG, 0))
    yield from _config(folder / CONFIG, kept.get(CONFIG, 0))
    yield from _database(folder / DATABASE, kept.get(DATABASE, 0))
    for name in (LOG, CONFIG, f"{MAIL}/{MAIL}-{kept.get(MAIL, 0)}"):
        changed_us = kept.get(f"{name.partition('/')[0]}{CHANGED}", 0)
        yield from _dated(folder / name, name, changed_us.__gt__)


def _read(path: Path) -> tuple[bytes | None, str]:
    """Return a file's content, or why it has none."""
    try:
        return path.read_bytes(), ""
    except FileNotFoundError:
        return None, _MISSING
    except OSError as error:
        return None, error.strerror or str(error)


def _gone(name: str, why: str) -> tuple[str, str]:
    return LOST if why == _MISSING else UNREADABLE, f"{name} ({why})"


def _dated(path: Path, name: str, is_wrong: Callable[[int], bool]) -> Iterator[tuple[str, str]]:
    """A file that is there has the modification time that was promised, in microseconds."""
    with contextlib.suppress(OSError):
        if is_wrong(path.stat().st_mtime_ns // 1000):
            yield DATED, name


def _sectors(data: bytes) -> list[bytes]:
    return [data[at : at + SECTOR_BYTES] for at in range(0, len(data), SECTOR_BYTES)]


def _kind(found: bytes, name: str) -> str:
    """Return `stale` for a sector that was not written to this file, otherwise `lost`."""
    is_own = not found.strip(b"\0") or found.startswith(f"{name} v".encode())
    return LOST if is_own else STALE


def _exact(path: Path, name: str, version: int, sectors: int) -> Iterator[tuple[str, str]]:
    data, why = _read(path)
    if data is None:
        yield _gone(name, why)
        return
    found = _sectors(data)
    for number in range(sectors):
        mine = found[number] if number < len(found) else b""
        if mine != sector(name, version, number):
            yield _kind(mine, name), f"{name}, sector {number}"
            return


def _unpromised(folder: Path, kind: str, kept: int) -> Iterator[tuple[str, str]]:
    """Files whose calls had not returned may be missing or short, but hold no other bytes."""
    try:
        names = sorted(path.name for path in folder.iterdir())
    except OSError:
        return
    for name in names:
        number = name.removeprefix(f"{kind}-")
        if not number.isdigit() or int(number) <= kept:
            continue
        data = _read(folder / name)[0] or b""
        if data == content(name, 0, len(data) // SECTOR_BYTES):
            continue
        for place, mine in enumerate(_sectors(data)):
            if mine != sector(name, 0, place) and _kind(mine, name) == STALE:
                yield STALE, f"{name}, sector {place}"


def _swapped(path: Path) -> Iterator[tuple[str, str]]:
    """The old version was durable, so there is a file of this name, whichever version it is."""
    data, why = _read(path)
    if data is None:
        yield _gone(SWAP, why)
        return
    version = data.removeprefix(f"{SWAP} v".encode()).split(b" ", 1)[0]
    if version.isdigit() and data == content(SWAP, int(version[:9]), 8):
        return
    kinds = {_kind(mine, SWAP) for mine in _sectors(data)}
    yield (STALE if STALE in kinds else EMPTIED), f"{SWAP} ({len(data)} bytes)"


def _log(path: Path, kept: int) -> Iterator[tuple[str, str]]:
    data, why = _read(path)
    if data is None:
        if kept:
            yield _gone(LOG, why)
        return
    found = _sectors(data)
    if len(found) < kept:
        yield LOST, f"{LOG} ({len(found)} of {kept} records)"
    for place, mine in enumerate(found):
        if mine != sector(LOG, 0, place):
            kind = _kind(mine, LOG)
            if place < kept or kind == STALE:
                yield kind, f"{LOG}, record {place}"


def _config(path: Path, kept: int) -> Iterator[tuple[str, str]]:
    data, why = _read(path)
    if data is None:
        if kept:
            yield _gone(CONFIG, why)
        return
    if data == content(CONFIG, kept + 1, 8):  # its calls had not returned yet
        return
    if kept and data == content(CONFIG, kept, 8):
        return
    if any(data == content(CONFIG, version, 8) for version in range(1, kept)):
        yield LOST, f"{CONFIG} (older than version {kept})"
        return
    kinds = {_kind(mine, CONFIG) for mine in _sectors(data)}
    yield (STALE if STALE in kinds else TORN), f"{CONFIG} ({len(data)} bytes)"


def _database(path: Path, kept: int) -> Iterator[tuple[str, str]]:
    data, why = _read(path)
    if data is None:
        yield _gone(DATABASE, why)
        return
    found = _sectors(data)
    for slot in range(_SLOTS):
        newest = max((each for each in range(kept + 1) if each % _SLOTS == slot), default=0)
        allowed = [newest, *((kept + 1,) if (kept + 1) % _SLOTS == slot else ())]
        for place in range(slot * _SLOT_SECTORS, (slot + 1) * _SLOT_SECTORS):
            mine = found[place] if place < len(found) else b""
            if not any(mine == sector(DATABASE, version, place) for version in allowed):
                yield _kind(mine, DATABASE), f"{DATABASE}, sector {place}"
                break


def main() -> None:
    """Run as a program: `prepare [OPERATION…] N` or `run [OPERATION…] N`."""
    part, *chosen, rounds = sys.argv[1:]
    prepare() if part == "prepare" else run(int(rounds), chosen or tuple(OPERATIONS))
