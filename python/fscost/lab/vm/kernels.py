"""Guest kernels: a package of Debian's archive, unpacked without installing it; this host's own
kernel; or an image of the user's.

A fetched kernel is kept below the user's cache, complete or not at all: `vmlinux`, `modules/`,
`VERSION` and `PACKAGE`.
"""

import hashlib
import os
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from fscost.errors import HostError, InputError
from fscost.files import cache
from fscost.lab.vm import debian, vmlinux

DEFAULT = "6.12"
HOST = "host"
"""Name of this host's running kernel."""
BOOT, MODULES = Path("/boot"), Path("/lib/modules")
_OLDEST = (6, 1)
_ANOTHER = f"use another kernel, such as --kernel {DEFAULT}, or --kernel VMLINUZ --modules DIR"


@dataclass(frozen=True)
class GuestKernel:
    """Files of one kernel; `modules` is the folder that holds `modules.builtin`."""

    version: str
    vmlinux: Path
    modules: Path
    package: str | None = None
    """Name and version of its package."""

    @property
    def build(self) -> dict[str, str | None]:
        """Facts that tell this build from others of its series."""
        return {
            "package": self.package,
            "vmlinux_sha256": cache.digests(self.vmlinux.parent).get(self.vmlinux.name),
        }


def names() -> list[str]:
    """List the kernels that `fscost doctor` shows: the maintained series, and every cached one."""
    folder = cache.root() / "kernels"
    found = [path.name for path in folder.iterdir()] if folder.is_dir() else []
    series = {*debian.RELEASES, *filter(_number, found)}
    return sorted(series, key=lambda name: (name != DEFAULT, _number(name)))


def cached(name: str) -> GuestKernel | None:
    """Return the kernel if it is in the cache."""
    folder = cache.root() / "kernels" / name
    try:
        kernel = _opened(folder) if cache.is_complete(folder) else None
    except OSError:
        return None
    return kernel if kernel is not None and _is_series(name, kernel.version) else None


def fetch(name: str = DEFAULT, say: Callable[[str], None] = lambda _: None) -> GuestKernel:
    """Return the kernel: of this host, or of a series, from the cache, from Debian's archive or, if
    apt cannot read that, from the kernels installed here."""
    if name == HOST:
        return _of_host()
    if _number(name) < _OLDEST:
        raise InputError(
            f"unknown guest kernel {name!r}",
            "use the series of a Debian kernel from 6.1 on, such as 6.12; host, for this host's"
            " kernel; or your own kernel: --kernel VMLINUZ --modules DIR",
        )
    folder = cache.root() / "kernels" / name

    def make(made: Path) -> None:
        say(f"fetching Debian's Linux {name} for guests, about 100 MB, once")
        _make(name, made)

    def use(found: Path) -> GuestKernel:
        kernel = _opened(_whole(found))
        if not _is_series(name, kernel.version):
            raise cache.DamagedError(f"it is Linux {kernel.version}")
        return kernel

    def rebuilding(damage: cache.DamagedError) -> None:
        say(f"the kernel in {folder} is damaged ({damage.what}); rebuilding it")

    try:
        return cache.opened(folder, make, use, rebuilding)
    except debian.UnavailableError as error:
        found = _installed(name)
        if found is None:
            raise
        say(f"using Linux {found.version}, which is installed here, because {error.what}")
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

    def make(made: Path) -> None:
        _write_kernel(made, content, str(image))

    folder = cache.root() / "kernels" / digest
    unpacked = cache.opened(folder, make, _whole, lambda _: None) / "vmlinux"
    return GuestKernel(
        vmlinux.version(unpacked.read_bytes()) or folders[0].name, unpacked, folders[0]
    )


def _whole(folder: Path) -> Path:
    cache.check(folder)
    return folder


def _number(name: str) -> tuple[int, ...]:
    """Return the number of a series; the empty tuple, which is less than any, for other names."""
    return tuple(map(int, name.split("."))) if re.fullmatch(r"[0-9]+\.[0-9]+", name) else ()


def _is_series(name: str, version: str) -> bool:
    return re.match(rf"{re.escape(name)}(?![0-9])", version) is not None


def _opened(folder: Path) -> GuestKernel:
    # A kernel that an earlier fscost fetched has no PACKAGE.
    package = folder / "PACKAGE"
    return GuestKernel(
        (folder / "VERSION").read_text().strip(),
        folder / "vmlinux",
        folder / "modules",
        package.read_text().strip() if package.is_file() else None,
    )


def _of_host() -> GuestKernel:
    release = os.uname().release
    images = _images(release)
    if not images:
        raise HostError(f"this host's kernel has no image {BOOT}/vmlinuz-{release}", _ANOTHER)
    if not os.access(images[0], os.R_OK):
        raise HostError(
            f"{images[0]} cannot be read by this user",
            f"`sudo chmod a+r {images[0]}`, or {_ANOTHER}",
        )
    return _of_installed(images[0], MODULES / release)


def _installed(name: str) -> GuestKernel | None:
    """Return the newest kernel of the series that is installed here, and readable."""
    found = [
        (image, folder)
        for folder in MODULES.glob(f"{name}*")
        if _is_series(name, folder.name) and (folder / "modules.builtin").is_file()
        for image in _images(folder.name)[:1]
        if os.access(image, os.R_OK)
    ]
    newest = max(
        found, key=lambda pair: [*map(int, re.findall("[0-9]+", pair[1].name))], default=None
    )
    return newest and _of_installed(*newest)


def _images(release: str) -> list[Path]:
    # Since 6.19, Debian has the image beside the modules, as Fedora has.
    places = (BOOT / f"vmlinuz-{release}", MODULES / release / "vmlinuz")
    return [path for path in places if path.exists()]


def _of_installed(image: Path, modules: Path) -> GuestKernel:
    return replace(of_files(image, modules), package=debian.owner(image))


def _make(name: str, made: Path) -> None:
    work = made.parent
    unpacked = work / "unpacked"
    package = debian.unpack(name, unpacked, work)
    # Newer packages have the modules in /usr (merged /usr), and then the image beside them.
    folders = [*unpacked.glob("lib/modules/*"), *unpacked.glob("usr/lib/modules/*")]
    images = [*unpacked.glob("boot/vmlinuz-*"), *unpacked.glob("usr/lib/modules/*/vmlinuz")]
    if len(images) != 1 or len(folders) != 1:
        raise HostError(
            f"{package} has {len(images)} kernels and {len(folders)} folders of modules, not one"
            " of each"
        )
    _write_kernel(made, images[0].read_bytes(), images[0].name)
    version = vmlinux.version((made / "vmlinux").read_bytes()) or folders[0].name
    if not _is_series(name, version):
        raise HostError(f"{package} is Linux {version}, not {name}", _ANOTHER)
    images[0].unlink()
    shutil.move(folders[0], made / "modules")
    (made / "VERSION").write_text(version + "\n")
    (made / "PACKAGE").write_text(package + "\n")


def _write_kernel(folder: Path, image: bytes, name: str) -> None:
    (folder / "vmlinux").write_bytes(vmlinux.unpack(image, name))
    (folder / "vmlinux").chmod(0o644)  # QEMU may be another user
