"""Checks of `--source`, a git repository or a tarball."""

import tarfile
from pathlib import Path

from fscost.errors import InputError

REMEDY = "give the folder of a git repository, or a .tar, .tar.gz, .tar.bz2 or .tar.xz file"


def is_repository(source: Path) -> bool:
    """True for a work tree with its .git (a file, in a linked work tree), or a bare repository."""
    return (source / ".git").exists() or (
        (source / "HEAD").is_file() and (source / "objects").is_dir()
    )


def check_source(source: Path) -> None:
    """Raise InputError unless `source` is a git repository or a tarball."""
    try:
        if not source.exists():
            raise InputError(f"--source {source}: there is no such file or folder", REMEDY)
        if source.is_dir():
            if not is_repository(source):
                raise InputError(f"--source {source}: a folder, but not a git repository", REMEDY)
        elif not (source.is_file() and tarfile.is_tarfile(source)):
            raise InputError(f"--source {source}: neither a git repository nor a tarball", REMEDY)
    except OSError as error:
        raise InputError(f"--source {source}: {error.strerror}", REMEDY) from None


def source_bytes(source: Path) -> int:
    """Upper estimate of the size of a built work tree of `source`, in bytes; it only sizes sparse
    disks."""
    if source.is_file():
        return source.stat().st_size * (1 if source.suffix == ".tar" else 12) * 2
    objects = next(
        folder
        for folder in (source / ".git/objects", source / "objects", source)
        if folder.is_dir()
    )
    packed = sum(file.lstat().st_size for file in objects.rglob("*") if file.is_file())
    return packed * 12
