"""The errors a person sees. Each names what was wrong, where, and what to do next."""


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
