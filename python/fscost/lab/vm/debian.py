"""Kernel packages from Debian's archive, whatever distribution this host has, without root.

apt itself reads the archive and checks its signatures, but with a configuration, lists and trusted
keys of its own, so that the host's lists, pins and keys have no influence. Of the host's
configuration, only the rest is used, such as its proxy.
"""

import functools
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from fscost.errors import HostError, InputError

ARCHIVE = "http://deb.debian.org/debian"
"""Archive if the host's apt names none. Its security updates are in the folder beside it."""
KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
RELEASES = {"6.1": "bookworm", "6.12": "trixie"}
"""Release of Debian that maintains a series."""
_NEWER = ("trixie-backports", "sid")
"""Suites that have the other series. They keep a series only for a few months."""
_OWN = "use your own kernel: --kernel VMLINUZ --modules DIR"


class UnavailableError(HostError):
    """Error for an archive that apt cannot read."""


@dataclass(frozen=True)
class _Package:
    name: str
    version: str
    depends: str

    @property
    def parts(self) -> list[str]:
        """This package and those that hold its files: since 6.19, the image and the modules are in
        packages of their own."""
        kernel = re.escape(self.name.removeprefix("linux-image-"))
        parts = re.findall(rf"linux-(?:base|binary|modules)-{kernel}(?= \(=)", self.depends)
        return [f"{name}={self.version}" for name in (self.name, *parts)]


def unpack(series: str, into: Path, work: Path) -> str:
    """Unpack the newest kernel of the series, without installing it. `work` is a private folder.
    Return the name and the version of the package."""
    apt = _readable_archive(series, work)
    found = _newest(series, apt)
    parts = found.parts
    apt("apt-get", "download", *parts)
    archives = list(work.glob("*.deb"))
    if len(archives) != len(parts):
        raise HostError(f"apt downloaded {len(archives)} files for {' '.join(parts)}")
    for archive in archives:
        _run(["dpkg-deb", "--extract", str(archive), str(into)], work)
    return f"{found.name} {found.version}"


def owner(path: Path) -> str | None:
    """Return the name and the version of the installed package that has this file."""

    def query(*words: str) -> str:
        command = ["dpkg-query", *words]
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout

    if shutil.which("dpkg-query") is None:
        return None
    name = query("--search", str(path)).partition(": ")[0]
    return (name and query("--show", "--showformat=${Package} ${Version}", name)) or None


_Apt = Callable[..., str]


def _readable_archive(series: str, work: Path) -> _Apt:
    """Return apt's commands for the first archive whose lists apt can fetch."""
    *others, last = _archives()
    if not KEYRING.is_file():
        raise UnavailableError(
            f"the keys of Debian's archive are missing ({KEYRING})",
            f"`sudo apt install debian-archive-keyring`, or {_OWN}",
        )
    for archive in others:
        try:
            return _private(archive, series, work)
        except UnavailableError:
            continue  # a mirror need not have every release
    return _private(last, series, work)


def _archives() -> list[tuple[str, str]]:
    """List archives with their security updates: the mirrors of this host, then Debian's own."""
    form = "$(ORIGIN) $(LABEL) $(REPO_URI)"
    told = _run(["apt-get", "indextargets", "--format", form, "Created-By: Packages"], Path("/"))
    mirrors: dict[str, str] = {}
    for line in told.splitlines():
        match line.split(" "):
            case ["Debian", label, uri] if not uri.startswith("cdrom:"):
                mirrors.setdefault(label, uri.rstrip("/"))
    updates = f"{ARCHIVE}-security"
    own = (mirrors.get("Debian", ARCHIVE), mirrors.get("Debian-Security", updates))
    return list(dict.fromkeys((own, (ARCHIVE, updates))))


def _private(archive: tuple[str, str], series: str, work: Path) -> _Apt:
    """Fetch the lists of the suites that have the series."""
    for folder in ("etc/preferences.d", "state", "cache"):
        (work / folder).mkdir(parents=True, exist_ok=True)
    configuration = work / "apt.conf"
    # Only the configuration named last may clear the host's hooks (apt.conf(5)). apt would drop to
    # a user that cannot enter this folder, and cannot in a user namespace. Some failures are
    # warnings by default.
    configuration.write_text(
        "#clear APT::Update;\n"
        'APT::Update::Error-Mode "any";\n'
        'APT::Sandbox::User "root";\n'
        f'Dir::Etc "{work}/etc";\n'
        f'Dir::State "{work}/state";\n'
        'Dir::State::status "/dev/null";\n'
        f'Dir::Cache "{work}/cache";\n'
        'Acquire::GzipIndexes "true";\n'
    )
    (work / "etc" / "sources.list").write_text("".join(_sources(archive, series)))

    def apt(program: str, *words: str) -> str:
        return _run([program, "-c", str(configuration), *words], work)

    apt("apt-get", "update")
    return apt


def _sources(archive: tuple[str, str], series: str) -> Iterator[str]:
    main, security = archive
    release = RELEASES.get(series)
    suites = [(main, suite) for suite in ((release,) if release else _NEWER)]
    if release:
        suites.append((security, f"{release}-security"))
    for uri, suite in suites:
        yield f"deb [arch=amd64 target=Packages signed-by={KEYRING}] {uri} {suite} main\n"


def _newest(series: str, apt: _Apt) -> _Package:
    names = _images(rf"{re.escape(series)}\.", apt)
    if not names:
        every = {
            found[1] for name in _images("", apt) if (found := re.search(r"-(\d+\.\d+)", name))
        }
        known = sorted(every | set(RELEASES), key=lambda text: [*map(int, text.split("."))])
        raise InputError(
            f"unknown guest kernel {series!r}: Debian's archive has no such series",
            f"use one of {', '.join(known)}, or {_OWN}",
        )
    shown = apt("apt-cache", "show", *names)
    packages = [_package(text) for text in shown.strip().split("\n\n")]
    return max(packages, key=functools.cmp_to_key(_older))


def _images(begin: str, apt: _Apt) -> list[str]:
    """List the packages of images; variants such as `-rt-amd64` and `-amd64-dbg` do not match."""
    pattern = rf"^linux-image-{begin}[0-9][^-]*(-[0-9]+)?-amd64$"
    found = apt("apt-cache", "search", "--names-only", pattern)
    return [line.split(" ")[0] for line in found.splitlines()]


def _package(stanza: str) -> _Package:
    fields = dict(re.findall(r"^(\S+): (.*)$", stanza, re.MULTILINE))
    try:
        return _Package(fields["Package"], fields["Version"], fields.get("Depends", ""))
    except KeyError as missing:
        raise HostError(f"apt-cache describes a package without {missing}") from None


def _older(one: _Package, other: _Package) -> int:
    """Compare versions by Debian's rules."""
    command = ["dpkg", "--compare-versions", one.version, "lt", other.version]
    return -1 if subprocess.run(command, check=False).returncode == 0 else 1


def _reason(text: str) -> str:
    """Return the line of apt's errors that names the cause: the first failed download, or the last
    error. Other lines are warnings, or repeat it."""
    lines = text.strip().splitlines() or ["no message"]
    failed = next((line for line in lines if line.startswith("E: Failed to fetch")), None)
    return (failed or _last_error(lines))[-300:]


def _last_error(lines: Sequence[str]) -> str:
    return next((line for line in reversed(lines) if line.startswith("E:")), lines[-1])


def _run(command: Sequence[str], folder: Path) -> str:
    shown = (
        f"{command[0]} {next((each for each in command[1:] if each[0] not in '-/'), '')}".strip()
    )
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env=os.environ | {"LC_ALL": "C"},
            capture_output=True,
            text=True,
            timeout=900,
            check=False,
        )
    except OSError as error:
        raise UnavailableError(
            f"{command[0]}: {error.strerror}",
            f"install apt and dpkg: guest kernels are Debian packages; or {_OWN}",
        ) from None
    except subprocess.TimeoutExpired as error:
        raise UnavailableError(
            f"`{shown}` timed out after {error.timeout:g} s", f"check the network, or {_OWN}"
        ) from None
    if done.returncode != 0:
        raise UnavailableError(
            f"`{shown}` failed: {_reason(done.stderr)}", f"check the network, or {_OWN}"
        )
    return done.stdout
