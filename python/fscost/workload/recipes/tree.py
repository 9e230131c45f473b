"""`tree.tar`: many small text files in nested directories."""

import io
import tarfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from fscost.workload.recipes.request import Request
from fscost.workload.recipes.text import text

# Default, for workloads that do not set the number of directories. It is close to the
# published 126,229 files in 22,683 directories of the study nine-filesystems.
FILES_PER_DIRECTORY = 6
_NAMES = tuple(f"d{number}" for number in range(8))
_MTIME_S = 1_230_768_000  # 2009-01-01: any time in the past, so that a fresh atime is newer


def make(folder: Path, request: Request) -> None:
    """Make `files` files of `file_bytes` bytes on average (half to one and a half times that), in
    `directories` directories if that option is given."""
    with tarfile.open(folder / "tree.tar", "w", format=tarfile.USTAR_FORMAT) as tar:
        for name, content in entries(request):
            if content is None:
                tar.addfile(_entry(name, tarfile.DIRTYPE, 0o755))
                continue
            entry = _entry(name, tarfile.REGTYPE, 0o644)
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))


def entries(request: Request) -> Iterator[tuple[str, bytes | None]]:
    """Yield directories, which have no content, before their files."""
    rng = request.rng("tree")
    mean, files = request.number("file_bytes"), request.number("files")
    directories = None
    if "directories" in request.values:
        directories = min(request.number("directories"), files)
    made: set[str] = set()
    for i in range(files):
        directory = _directory(
            i // FILES_PER_DIRECTORY if directories is None else i * directories // files
        )
        for depth in range(1, directory.count("/") + 2):
            parent = "/".join(directory.split("/")[:depth])
            if parent not in made:
                made.add(parent)
                yield parent, None
        yield f"{directory}/file-{i:06d}.txt", text(rng, rng.randint(mean // 2, mean + mean // 2))


def _directory(index: int) -> str:
    """Path of the index-th directory, breadth first: tree, tree/d0 … tree/d7, tree/d0/d0 …"""
    return "/".join(("tree", *branches(index, _NAMES)))


def branches(index: int, names: Sequence[str]) -> list[str]:
    """Names on the way to the index-th directory, breadth first, if each has one subdirectory for
    each of `names`."""
    parts: list[str] = []
    while index > 0:
        index, place = divmod(index - 1, len(names))
        parts.append(names[place])
    return parts[::-1]


def _entry(name: str, kind: bytes, mode: int) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.type, entry.mode, entry.mtime = kind, mode, _MTIME_S
    return entry
