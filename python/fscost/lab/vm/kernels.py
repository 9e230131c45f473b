"""Guest kernels: a package of the distribution, fetched by the distribution's own client and
unpacked without installing it. No root is needed.

A kernel is kept below the user's cache, complete or not at all: `vmlinux`, `modules/`, `VERSION`.
"""

import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from fscost.errors import HostError, InputError
from fscost.lab.vm import cache, vmlinux

PACKAGES = {"6.12": "linux-image-6.12-amd64", "6.1": "linux-image-amd64"}
"""Package names in Debian 12. Each depends on the package of the newest build, whose name includes
its version."""
DEFAULT = "6.12"


@dataclass(frozen=True)
class GuestKernel:
    """Files of one kernel; `modules` is the folder that holds `modules.builtin`."""

    version: str
    vmlinux: Path
    modules: Path


def cached(name: str) -> GuestKernel | None:
    """Return the kernel if it is in the cache."""
    folder = cache.root() / "kernels" / name
    try:
        if not cache.is_complete(folder):
            return None
        version = (folder / "VERSION").read_text().strip()
    except OSError:
        return None
    return GuestKernel(version, folder / "vmlinux", folder / "modules")


def fetch(name: str = DEFAULT, say: Callable[[str], None] = lambda _: None) -> GuestKernel:
    """Return the kernel, from the cache or from the distribution."""
    if name not in PACKAGES:
        raise InputError(
            f"unknown guest kernel {name!r}",
            f"use one of {', '.join(PACKAGES)}, or your own kernel: --kernel VMLINUZ --modules DIR",
        )
    folder = cache.root() / "kernels" / name

    def make(made: Path) -> None:
        say(f"fetching {PACKAGES[name]} for guests, about 100 MB, once")
        _make(PACKAGES[name], made)

    _checked(folder, make, say)
    found = cached(name)
    if found is None:
        raise HostError(
            f"{cache.root() / 'kernels' / name} is not complete", "remove it, and try again"
        )
    return found


def of_files(image: Path, modules: Path) -> GuestKernel:
    """Return a kernel named by the user. `modules` is its `/lib/modules/VERSION`, or a folder that
    holds only that folder below `lib/modules`."""
    try:
        content = image.read_bytes()
    except OSError as error:
        raise InputError(
            f"{image}: {error.strerror}", "name a kernel's image: --kernel VMLINUZ --modules DIR"
        ) from None
    is_itself = (modules / "modules.builtin").is_file()
    folders = [modules] if is_itself else sorted(modules.glob("lib/modules/*"))
    if len(folders) != 1 or not (folders[0] / "modules.builtin").is_file():
        raise InputError(
            f"{modules} is not a kernel's module folder: it has no modules.builtin",
            "name that kernel's /lib/modules/VERSION",
        )
    digest = hashlib.sha256(content).hexdigest()[:16]

    def make(folder: Path) -> None:
        _write_kernel(folder, content, str(image))

    unpacked = _checked(cache.root() / "kernels" / digest, make, lambda _: None) / "vmlinux"
    return GuestKernel(
        vmlinux.version(unpacked.read_bytes()) or folders[0].name, unpacked, folders[0]
    )


def _checked(folder: Path, make: Callable[[Path], None], say: Callable[[str], None]) -> Path:
    """Return the cache entry, made again if it is damaged."""

    def checked(found: Path) -> Path:
        cache.check(found)
        return found

    return cache.opened(
        folder,
        make,
        checked,
        lambda damage: say(f"the kernel in {folder} is damaged ({damage.what}); rebuilding it"),
    )


def _make(package: str, made: Path) -> None:
    versioned = _versioned(package)
    work = made.parent
    _run(["apt-get", "download", versioned], work)
    archives = list(work.glob("*.deb"))
    if len(archives) != 1:
        raise HostError(f"apt-get download {versioned} downloaded {len(archives)} files, not one")
    unpacked = work / "unpacked"
    _run(["dpkg-deb", "--extract", str(archives[0]), str(unpacked)], work)
    images = sorted((unpacked / "boot").glob("vmlinuz-*"))
    # Newer packages have the modules in /usr (merged /usr).
    folders = sorted(
        path
        for base in ("lib/modules", "usr/lib/modules")
        for path in (unpacked / base).glob("*")
        if path.is_dir()
    )
    if len(images) != 1 or len(folders) != 1:
        raise HostError(
            f"{versioned} has {len(images)} kernels and {len(folders)} folders of modules, not one"
            " of each"
        )
    _write_kernel(made, images[0].read_bytes(), images[0].name)
    shutil.move(folders[0], made / "modules")
    (made / "VERSION").write_text(folders[0].name + "\n")


def _write_kernel(folder: Path, image: bytes, name: str) -> None:
    (folder / "vmlinux").write_bytes(vmlinux.unpack(image, name))
    (folder / "vmlinux").chmod(0o644)  # QEMU may be another user


def _versioned(package: str) -> str:
    text = _run(["apt-cache", "depends", package], Path("/"))
    found = re.search(r"^\s*Depends: (linux-image-\S+)$", text, re.MULTILINE)
    if found is None:
        raise HostError(
            f"apt has no package {package}",
            "run `sudo apt-get update`, or use your own kernel: --kernel VMLINUZ --modules DIR",
        )
    return found[1]


def _last_line(text: str) -> str:
    """Return the last line of apt's output, which gives the reason. The lines before it are
    warnings, or repeat it."""
    return (text.strip().splitlines() or ["no message"])[-1][-300:]


def _run(command: list[str], folder: Path) -> str:
    environment = os.environ | {"LC_ALL": "C"}
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=900,
            check=False,
        )
    except OSError as error:
        raise HostError(
            f"{command[0]}: {error}",
            "install it: guest kernels are Debian packages; or use your own kernel:"
            " --kernel VMLINUZ --modules DIR",
        ) from None
    except subprocess.TimeoutExpired as error:
        raise HostError(
            f"`{' '.join(command)}` timed out after {error.timeout:g} s",
            "check the network, or use your own kernel: --kernel VMLINUZ --modules DIR",
        ) from None
    if done.returncode != 0:
        remedy = "check the network; `sudo apt-get update` may help"
        if "setgroups" in done.stderr:
            remedy = (
                "apt-get cannot change its user in a user namespace: run `fscost doctor --fetch`"
                " outside of it first"
            )
        raise HostError(f"`{' '.join(command)}` failed: {_last_line(done.stderr)}", remedy)
    return done.stdout
