"""Signals that interrupt a run, noted so that none is lost.

A handler that raises is not enough, because C code may drop the exception. For example, pyarrow
imports pandas at its first scalar, and ignores every error of this import (`pandas_runner` in its
src/arrow/python/helpers.cc): a KeyboardInterrupt raised there vanishes.
"""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupts:
    """The exception that the last signal raised, until the run ends for it."""

    def __init__(self) -> None:
        self._pending: BaseException | None = None

    def check(self) -> None:
        """Raise the exception again if it was dropped."""
        pending, self._pending = self._pending, None
        if pending is not None:
            raise pending

    def arrived(self) -> None:
        """Forget the exception, because the run ends for it."""
        self._pending = None

    def noting(self, handler: Callable[[int, FrameType | None], Any]) -> Callable[..., None]:
        """Return a handler that calls `handler` and notes the exception that it raises."""

        def note(number: int, frame: FrameType | None) -> None:
            try:
                handler(number, frame)
            except BaseException as error:
                self._pending = error
                raise

        return note


@contextmanager
def noted() -> Iterator[Interrupts]:
    """Note signals within this block. If the block ends with a dropped exception, raise it.

    What a signal does remains the caller's choice: only its own handlers are wrapped. In other
    threads, nothing is noted, because handlers run in the main thread (docs.python.org, signal).
    """
    interrupts = Interrupts()
    wrapped = []
    if threading.current_thread() is threading.main_thread():
        for number in _SIGNALS:
            handler = signal.getsignal(number)
            if callable(handler):
                noting = interrupts.noting(handler)
                signal.signal(number, noting)
                wrapped.append((number, noting, handler))
    try:
        yield interrupts
    finally:
        for number, noting, handler in wrapped:
            # A handler may have replaced itself, to ignore further signals.
            if signal.getsignal(number) is noting:
                signal.signal(number, handler)
    interrupts.check()


@contextmanager
def held() -> Iterator[Callable[[], None]]:
    """Hold signals back until the block calls the function that it receives, or ends.

    A handler that raises while a child starts would leave a child that nobody knows, and so nobody
    ends. The block starts the child, and calls the function where it can end the child.
    """
    arrived: list[int] = []
    kept: dict[int, Callable[[int, FrameType | None], Any]] = {}
    if threading.current_thread() is threading.main_thread():
        for number in _SIGNALS:
            handler = signal.getsignal(number)
            if callable(handler):
                kept[number] = handler
                signal.signal(number, lambda number, frame: arrived.append(number))

    def release() -> None:
        for number, handler in kept.items():
            signal.signal(number, handler)
        kept.clear()
        while arrived:
            number = arrived.pop(0)
            # A handler may have replaced itself, to ignore further signals.
            current = signal.getsignal(number)
            if callable(current):
                current(number, None)

    try:
        yield release
    finally:
        release()
