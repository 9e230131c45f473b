"""Confinement of QEMU: the user that it runs as, and the host files that it can open
(crates/agent/src/confine.rs)."""

import contextlib
import errno
import os
import pwd
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import fscost
from fscost import files
from fscost.errors import HostError
from fscost.host import install_command, owns_machine, tool

ENVIRONMENT = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C"}
"""Environment of QEMU. The environment of fscost is not passed on: it may hold secrets."""
_NOBODY = (65534, 65534)
_GUEST_FOLDERS = Path("/run/fscost")
_HOMES = Path("/home")
_ROOTS_HOME = Path("/root")
_HIDDEN = (_HOMES, _ROOTS_HOME, Path("/run"))
_PROBE_S = 60
_TRIES = 5
_LIMITS = (errno.EMFILE, errno.ENFILE, errno.EAGAIN, errno.ENOMEM)
"""Errors that mean that this process lacks a resource, such as memory or descriptors, not that the
program is at fault."""


@dataclass(frozen=True)
class Share:
    """A host folder that the guest can read over 9p; `tag` is its name in the guest."""

    tag: str
    folder: Path


@dataclass(frozen=True)
class Confinement:
    """Confinement of QEMU and the disk server.

    `user`: their user and group; None for the caller's. `is_hidden`: QEMU has a private root
    directory, in which /proc, /sys, /dev, /run, /root and /home are empty except for `shown`.
    """

    agent: Path
    user: tuple[int, int] | None = None
    is_hidden: bool = False
    shown: tuple[Path, ...] = ()

    def command(
        self, program: Path, shares: Sequence[Share] = (), device: Path | None = None
    ) -> list[str]:
        """Build the `fscost-agent tied` command up to the program, whose arguments follow."""
        words = [str(self.agent), "tied", str(os.getpid()), *self.as_user]
        if device is not None:
            words += ["--device", str(device)]
        if self.is_hidden:
            words.append("--hide")
            for folder in self.shown:
                words += ["--show", str(folder)]
            for share in shares:
                if share.folder != Path("/"):
                    words += ["--share", f"{share.tag}={share.folder}"]
        return [*words, "--", str(program)]

    @property
    def as_user(self) -> list[str]:
        """Option that makes fscost's own programs give up root."""
        return [] if self.user is None else ["--user", f"{self.user[0]}:{self.user[1]}"]

    def place(self, share: Share) -> Path:
        """Path at which QEMU finds the folder of a share."""
        return _GUEST_FOLDERS / share.tag if self.is_hidden else share.folder


def choose(agent: Path, program: str) -> Confinement:
    """Choose the strictest confinement in which `program` starts here. HostError if root cannot
    give up its privileges."""
    found = tool(program)
    shown = (*_working_directory(), *_package())
    # Not the user who called sudo, whose private files a guest would read.
    unprivileged = _nobody() if os.geteuid() == 0 else None
    users = [unprivileged]
    if unprivileged is not None and not owns_machine():
        users.append(None)
    because = ""
    if found is None:
        raise HostError(f"{program} is missing", f"`{install_command([program])}`")
    for candidate in (
        Confinement(agent, user, is_hidden, shown) for is_hidden in (True, False) for user in users
    ):
        status, _, because = answer([*candidate.command(found), "--version"])
        if status == 0:
            return candidate
    raise HostError(
        f"{program} cannot be started for a guest: {because}",
        "`fscost doctor` checks the requirements of the VM lab",
    )


def answer(command: Sequence[str]) -> tuple[int | None, str, str]:
    """Run a short command and return its status, output and errors. A command that a signal ended
    is tried again."""
    for _ in range(_TRIES):
        try:
            done = subprocess.run(
                command,
                env=ENVIRONMENT,
                cwd="/",
                capture_output=True,
                text=True,
                timeout=_PROBE_S,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            return None, "", str(error)
        except OSError as error:
            if error.errno in _LIMITS:
                raise
            return None, "", os.strerror(error.errno or 0)
        if done.returncode >= 0:
            break
    return done.returncode, done.stdout, done.stderr.strip()[-500:]


def _nobody() -> tuple[int, int]:
    with contextlib.suppress(KeyError):
        nobody = pwd.getpwnam("nobody")
        return nobody.pw_uid, nobody.pw_gid
    return _NOBODY


def _working_directory() -> tuple[Path, ...]:
    """Return the working directory, which guests see as the caller does. Top-level folders and home
    directories are left out, because they hold far more than a workload."""
    try:
        here = Path.cwd()
    except OSError:
        return ()
    is_home = here.parent == _HOMES or str(here) in _homes()
    is_kernels = here.parts[1:2] in (("proc",), ("sys",), ("dev",))
    return () if len(here.parts) < 3 or is_home or is_kernels else (here,)


def _package() -> tuple[Path, ...]:
    """Return the folder of fscost's own code if guests do not see it otherwise: the workloads of
    `fscost crash` are programs of it."""
    package = Path(fscost.__file__).resolve().parent
    is_hidden = any(package.is_relative_to(folder) for folder in _HIDDEN)
    is_shown = any(package.is_relative_to(folder) for folder in _working_directory())
    return (package,) if is_hidden and not is_shown else ()


def seen_python() -> str:
    """Return the Python that guests run: this one if they see it, otherwise the system's."""
    own = Path(sys.executable).resolve()
    is_hidden = any(own.is_relative_to(folder) for folder in _HIDDEN)
    is_shown = any(own.is_relative_to(folder) for folder in _working_directory())
    return "python3" if is_hidden and not is_shown else str(own)


def unseen_directory() -> Path | None:
    """Return the working directory if guests do not see it: a home directory itself."""
    if _working_directory():
        return None
    here = Path.cwd()
    return here if here.is_relative_to(_HOMES) or here.is_relative_to(_ROOTS_HOME) else None


def _homes() -> set[str]:
    found = {os.path.realpath(os.environ.get("HOME") or "/")}
    for uid in files.trusted_owners():
        with contextlib.suppress(KeyError):
            found.add(os.path.realpath(pwd.getpwuid(uid).pw_dir))
    return found
