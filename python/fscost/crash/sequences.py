"""Short sequences of system calls, each with a call for durability at its end.

The calls and their objects are those of ACE (CrashMonkey, OSDI 2018): two folders with two files
each, one to three calls, then fsync or fdatasync of something that they changed. What that promised
is read from the recording (`fsynced.py`).

`main` runs as a program in a cell, without the packages that fscost needs otherwise. Each sequence
has a folder of its own, whose name tells it.
"""

import itertools
import mmap
import os
import random
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from fscost.crash.kept import is_guest, say_kept
from fscost.errors import InputError

PER_ROUND = 10
_SEED = 1
_BLOCK = 4096
_FILES, _FOLDERS = ("A/foo", "A/bar", "B/foo"), ("A", "B")
_OLD_BLOCKS = 3
_SYNCS = ("fsync", "fdatasync")


@dataclass(frozen=True)
class Call:
    """A call, the files that must exist before it, and those that must not. `touched`: what a call
    for durability can name after it."""

    words: str
    run: Callable[[], object] = field(compare=False)
    needs: tuple[str, ...] = ()
    refuses: tuple[str, ...] = ()
    touched: tuple[str, ...] = ()
    makes: tuple[str, ...] = ()
    removes: tuple[str, ...] = ()


def _opened(name: str, flags: int, use: Callable[[int], object]) -> None:
    descriptor = os.open(name, flags, 0o644)
    try:
        use(descriptor)
    finally:
        os.close(descriptor)


def _write(name: str, offset: int, length: int) -> None:
    data = (f"new {name} {offset} ".encode() * length)[:length]
    _opened(name, os.O_WRONLY | os.O_CREAT, lambda file: os.pwrite(file, data, offset))


def _write_directly(name: str) -> None:
    with mmap.mmap(-1, _BLOCK) as memory:
        memory.write((f"direct {name} ".encode() * _BLOCK)[:_BLOCK])
        flags = os.O_WRONLY | os.O_DIRECT
        _opened(name, flags, lambda file: os.pwritev(file, [memory], 0))


def _write_mapped(name: str) -> None:
    def change(file: int) -> None:
        length = min(2 * _BLOCK, os.fstat(file).st_size)
        if length:  # otherwise there is nothing to map (mmap(2))
            with mmap.mmap(file, length) as memory:
                memory[:length] = (f"mapped {name} ".encode() * _BLOCK)[:length]

    _opened(name, os.O_RDWR, change)


def _calls() -> Iterator[Call]:
    foo, bar, other = _FILES
    end = _OLD_BLOCKS * _BLOCK
    yield Call(
        "creat A.bar", lambda: Path(bar).touch(exist_ok=False), (), (bar,), (bar, "A"), (bar,)
    )
    yield Call("mkdir A.new", Path("A/new").mkdir, (), ("A/new",), ("A/new", "A"), ("A/new",))
    yield Call("rmdir A.old", Path("A/old").rmdir, ("A/old",), (), ("A",), (), ("A/old",))
    for name, offset, length in (
        ("append", end, _BLOCK),
        ("append 100", end, 100),
        ("overwrite", 0, _BLOCK),
        ("overwrite the start", 0, 100),
        ("overwrite the end", end - 100, 100),
        ("extend", end - 100, 200),
        ("write a hole behind", end + 4 * _BLOCK, _BLOCK),
    ):
        write = partial(_write, foo, offset, length)
        yield Call(f"{name} A.foo", write, (foo,), (), (foo,))
    yield Call("write A.bar", lambda: _write(bar, 0, 5000), (), (bar,), (bar, "A"), (bar,))
    yield Call("write directly A.foo", lambda: _write_directly(foo), (foo,), (), (foo,))
    yield Call("write mapped A.foo", lambda: _write_mapped(foo), (foo,), (), (foo,))
    yield Call(
        "fallocate A.foo",
        lambda: _opened(foo, os.O_WRONLY, lambda file: os.posix_fallocate(file, end, 2 * _BLOCK)),
        (foo,),
        (),
        (foo,),
    )
    for length in (0, 100, _BLOCK, 2 * end):
        cut = partial(os.truncate, foo, length)
        yield Call(f"truncate A.foo {length}", cut, (foo,), (), (foo,))
    yield Call("link A.foo A.bar", lambda: os.link(foo, bar), (foo,), (bar,), (foo, "A"), (bar,))
    yield Call(
        "link A.foo B.foo", lambda: os.link(foo, other), (foo,), (other,), (foo, "B"), (other,)
    )
    yield Call("symlink A.bar", lambda: Path(bar).symlink_to("foo"), (), (bar,), ("A",), (bar,))
    yield Call("unlink A.foo", Path(foo).unlink, (foo,), (), ("A",), (), (foo,))
    for target, is_there in ((bar, False), (bar, True), (other, False), (other, True)):
        move = partial(Path(foo).rename, target)
        over = " over a file" if is_there else ""
        needs, refuses = ((foo, target), ()) if is_there else ((foo,), (target,))
        touched = (target, "A", target.partition("/")[0])
        name = f"rename A.foo {target.replace('/', '.')}{over}"
        yield Call(name, move, needs, refuses, touched, (target,), (foo,))
    yield Call("setxattr A.foo", lambda: os.setxattr(foo, "user.a", b"1" * 100), (foo,), (), (foo,))


def named() -> dict[str, Call]:
    """Return all calls by their words."""
    return {each.words: each for each in _calls()}


@dataclass(frozen=True)
class Sequence:
    """Calls, then one for durability of `name`."""

    calls: tuple[Call, ...]
    sync: str
    name: str

    def __str__(self) -> str:
        words = [each.words for each in self.calls]
        return ", ".join([*words, f"{self.sync} {self.name.replace('/', '.')}"])

    @property
    def given(self) -> set[str]:
        """What must exist before the first call."""
        made: set[str] = set()
        given: set[str] = set()
        for call in self.calls:
            given |= set(call.needs) - made
            made |= set(call.makes)
        return given

    @property
    def is_possible(self) -> bool:
        """True if each call finds what it needs and nothing that it refuses."""
        there = self.given
        for call in self.calls:
            if not set(call.needs) <= there or set(call.refuses) & there:
                return False
            there = (there | set(call.makes)) - set(call.removes)
        return True

    @property
    def parts(self) -> Iterator["Sequence"]:
        """What is left without some of the calls, the fewest calls first and this sequence last:
        each possible, and with a call that touches what is made durable."""
        for length in range(1, len(self.calls) + 1):
            for calls in itertools.combinations(self.calls, length):
                part = Sequence(calls, self.sync, self.name)
                if part.is_possible and any(self.name in each.touched for each in calls):
                    yield part


def parsed(text: str) -> Sequence:
    """Read a sequence from its words."""
    *words, last = text.split(", ")
    known = named()
    if unknown := [each for each in words if each not in known]:
        raise InputError(f"{unknown[0]!r} is no call of a sequence", "such as 'creat A.bar'")
    sync, _, dotted = last.partition(" ")
    calls, name = tuple(known[each] for each in words), dotted.replace(".", "/", 1)
    found = Sequence(calls, sync, name)
    if sync not in _SYNCS or not any(name in each.touched for each in calls):
        raise InputError(
            f"{text!r} is no sequence",
            "end it with fsync or fdatasync of what it changes, such as 'creat A.bar, fsync A'",
        )
    if not found.is_possible:
        raise InputError(
            f"{text!r} is impossible: a call finds a file that must not be there, or none",
            "leave out that call",
        )
    return found


def sequences(length: int, count: int) -> list[Sequence]:
    """Return at most `count` sequences of `length` calls, drawn from all of them."""
    found = [
        Sequence(calls, sync, name)
        for calls in itertools.product(tuple(_calls()), repeat=length)
        if Sequence(calls, "", "").is_possible
        for name in dict.fromkeys(calls[-1].touched)
        for sync in (("fsync",) if name in _FOLDERS else ("fsync", "fdatasync"))
    ]
    if len(found) <= count:
        return found
    chosen = random.Random(_SEED).sample(range(len(found)), count)
    return [found[number] for number in sorted(chosen)]


def _in_folders(found: Iterable[Sequence]) -> Iterator[Sequence]:
    """Yield each sequence, within its folder."""
    top = Path.cwd()
    for number, sequence in enumerate(found):
        folder = top / f"{number:04} {sequence}"
        folder.mkdir(exist_ok=True)
        os.chdir(folder)
        yield sequence
    os.chdir(top)


def prepare(found: Iterable[Sequence]) -> None:
    """Make what each sequence needs."""
    for sequence in _in_folders(found):
        for folder in _FOLDERS:
            Path(folder).mkdir()
        for name in sorted(sequence.given):
            if name == "A/old":
                Path(name).mkdir()
            else:
                content = f"old {name} ".encode() * _OLD_BLOCKS * _BLOCK
                Path(name).write_bytes(content[: _OLD_BLOCKS * _BLOCK])


def run(found: Iterable[Sequence]) -> None:
    """Run each sequence."""
    for sequence in _in_folders(found):
        for call in sequence.calls:
            call.run()
        if os.path.lexists(sequence.name):
            _opened(sequence.name, os.O_RDONLY, getattr(os, sequence.sync))
            if is_guest():
                # Elsewhere, the times of the calls are those of the recording.
                say_kept(fsync=Path(sequence.name).stat().st_ino)


def main() -> None:
    """Run as a program: `prepare LENGTH N`, `run LENGTH N`, or with a sequence for LENGTH."""
    part, what, rounds = sys.argv[1:]
    found = sequences(int(what), PER_ROUND * int(rounds)) if what.isdigit() else [parsed(what)]
    (prepare if part == "prepare" else run)(found)
