"""Errors for the user. Each names the problem, its place and the remedy."""

from collections.abc import Iterable
from signal import Signals


class FscostError(Exception):
    """Error with a remedy. The command line prints it and exits with `exit_code`."""

    exit_code = 2

    def __init__(self, what: str, remedy: str | None = None) -> None:
        super().__init__(what if remedy is None else f"{what}\n  {remedy}")
        self.what = what
        self.remedy = remedy


class InputError(FscostError):
    """Error in a profile, workload, option or file that cannot be used as given."""


class DefectError(FscostError):
    """Defect in fscost itself, which only its authors can fix."""


class HostError(FscostError):
    """Error for something the host lacks: privilege, FUSE, loop devices, space, memory."""


class DiskFullError(HostError):
    """Error for a file that cannot be written because its file system, a quota or a limit leaves no
    room for it."""


def did_you_mean(word: str, known: Iterable[str]) -> str | None:
    """Suggest known names for a misspelt name, ignoring case; None if no known name is close."""
    import difflib

    by_lower = {name.lower(): name for name in known}
    close = difflib.get_close_matches(word.lower(), by_lower, n=3)
    return f"did you mean {' or '.join(by_lower[name] for name in close)}?" if close else None


class Terminated(KeyboardInterrupt):
    """SIGTERM, as sent by systemd, timeout(1) and CI, or SIGHUP, as sent when a terminal is closed.
    It ends a run as cleanly as Ctrl-C does."""

    def __init__(self, signal: Signals) -> None:
        super().__init__(signal.name)
        self.signal = signal

    @property
    def exit_code(self) -> int:
        """Exit status that a shell reports for a program that the signal kills."""
        return 128 + self.signal
