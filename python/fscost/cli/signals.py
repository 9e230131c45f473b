"""SIGTERM and SIGHUP: either ends a run as cleanly as Ctrl-C does."""

import os
import select
import signal

from fscost.errors import Terminated

_SIGNALS = (signal.SIGTERM, signal.SIGHUP)
_GONE = select.POLLHUP | select.POLLERR


def raise_terminated() -> None:
    """Make either signal raise Terminated, except one that is ignored: nohup(1) ignores SIGHUP."""
    for number in _SIGNALS:
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, _terminate)


def _terminate(number: int, frame: object) -> None:
    # Further signals must not interrupt an orderly shutdown. They are not set to SIG_IGN, because
    # the commands of --cleanup would inherit it (execve(2)).
    for each in _SIGNALS:
        if signal.getsignal(each) is _terminate:
            signal.signal(each, _do_nothing)
    _leave_closed_terminal()
    raise Terminated(signal.Signals(number))


def _do_nothing(number: int, frame: object) -> None:
    pass


def _leave_closed_terminal() -> None:
    """Replace output streams that nobody can read any more.

    Writing to a terminal after its hangup fails (EIO), and the failure would take the place of the
    orderly end.
    """
    streams = select.poll()
    for number in (1, 2):
        streams.register(number, 0)
    gone = [number for number, events in streams.poll(0) if events & _GONE]
    for number in gone:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, number)
        os.close(null)
