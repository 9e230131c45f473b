"""The errors a person sees. Each names what was wrong, where, and what to do next."""

from collections.abc import Iterable


class FscostError(Exception):
    """A refusal with a remedy; the command line prints it and exits with `exit_code`."""

    exit_code = 2

    def __init__(self, what: str, remedy: str | None = None) -> None:
        super().__init__(what if remedy is None else f"{what}\n  {remedy}")
        self.what = what
        self.remedy = remedy


class InputError(FscostError):
    """A profile, workload, option or file that cannot be used as given."""


class DefectError(FscostError):
    """A failure of fscost's own code, which nobody but its authors can mend."""


class HostError(FscostError):
    """Something the host lacks: privilege, FUSE, loop devices, space, memory."""


class DiskFullError(HostError):
    """A file could not be written because its file system, a quota or a limit has no room for
    it."""


def did_you_mean(word: str, known: Iterable[str]) -> str | None:
    """The remedy for a misspelt name, upper case included; None if no known name is close."""
    import difflib

    by_lower = {name.lower(): name for name in known}
    close = difflib.get_close_matches(word.lower(), by_lower, n=3)
    return f"did you mean {' or '.join(by_lower[name] for name in close)}?" if close else None


class Terminated(KeyboardInterrupt):
    """SIGTERM, which systemd, timeout(1) and CI send: it ends a run in the same order as Ctrl-C
    does."""
