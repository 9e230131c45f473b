"""Files in a store that many machines reach: a shared folder or an object store, by a URL that
fsspec understands (https://filesystem-spec.readthedocs.io)."""

import hashlib
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any

from fscost.errors import FscostError, HostError, InputError
from fscost.files.write import creating

_PIECE_BYTES = 8 << 20
_AS = "name a folder that all machines share as file:///mnt/runs, or a store as s3://bucket/runs"
_WHERE = "name the store as this machine reaches it, or let the cluster's read it: --on-cluster"
Read = Callable[[str, str, int], bytes]
"""Reader of a piece of a file: the URL of its store, its name there, and a byte offset."""


def check(url: str) -> None:
    """Check a URL, and that this machine has what its kind of store needs. Nothing is written."""
    with _errors(url):
        _opened(url)


def put(path: Path, url: str, name: str) -> None:
    """Copy a file to this name below the URL. HostError if it is incomplete there."""
    with _errors(url):
        store, root = _opened(url)
        place = f"{root.rstrip('/')}/{name}"
        if type(store).__name__ == "LocalFileSystem":
            _put_privately(path, Path(place))
        else:
            store.makedirs(str(PurePosixPath(place).parent), exist_ok=True)
            store.put_file(str(path), place)
        if store.size(place) != path.stat().st_size:
            raise HostError(f"{url}: {name} is incomplete there", "free some space in the store")


def _put_privately(path: Path, place: Path) -> None:
    """Copy a file into a folder that only its owner enters: recordings hold the content of
    files."""
    for folder in (*reversed(place.parent.parents), place.parent):
        if not folder.is_dir():
            folder.mkdir(mode=0o700, exist_ok=True)
    place.unlink(missing_ok=True)
    try:
        with path.open("rb") as source, creating(place) as copy:
            shutil.copyfileobj(source, copy, _PIECE_BYTES)
    except InputError as error:  # of this machine's folder, not of the user's words
        raise HostError(error.what, error.remedy) from error


def read(url: str, name: str, offset: int) -> bytes:
    """Read a piece of the file of this name below the URL, from a byte offset on; empty at its
    end."""
    with _errors(url, _WHERE):
        store, root = _opened(url)
        with store.open(f"{root.rstrip('/')}/{name}", "rb") as file:
            file.seek(offset)
            piece: bytes = file.read(_PIECE_BYTES)
            return piece


def fetch(url: str, name: str, path: Path, size_bytes: int, sha256: str, read: Read = read) -> None:
    """Copy the file of this name below the URL to a new file, if it has this size and digest.
    `read` reads one piece of it, here or on another machine."""
    if PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts:
        raise InputError(f"{name!r} leads out of {url}", "do not use this run: it was edited")
    digest, done = hashlib.sha256(), 0
    with creating(path) as out:
        while done <= size_bytes and (piece := read(url, name, done)):
            done += len(piece)
            digest.update(piece)
            out.write(piece)
        if done != size_bytes or digest.hexdigest() != sha256:
            raise InputError(f"{url}: {name} is not the file that the run wrote", "run it again")


def _opened(url: str) -> tuple[Any, str]:
    """Return the store of a URL, and the place there."""
    if "://" not in url:
        raise InputError(f"{url} is no URL", _AS)
    if _has_secret(url):
        raise InputError(
            "the URL of a store holds a password or a query, which results would keep",
            "give it by the store's environment variables or configuration file; a path with : and"
            " @ looks the same, so name another",
        )
    try:
        import fsspec
    except ImportError:
        raise HostError("fsspec is missing", "`pip install 'fscost[ray]'`") from None
    store, place = fsspec.core.url_to_fs(url)
    return store, place


def _has_secret(url: str) -> bool:
    """True if any URL of a chain (`simplecache::s3://…`) has a password before its host, which may
    hold any character, or a query, which may be a signature."""
    for each in url.split("::"):
        before, at, _ = each.partition("://")[2].rpartition("@")
        if "?" in each or (at and ":" in before):
            return True
    return False


@contextmanager
def _errors(url: str, remedy: str = _AS) -> Iterator[None]:
    try:
        yield
    except FscostError:
        raise
    except Exception as error:  # Each kind of store raises errors of its own.
        what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        raise HostError(f"{url}: {what}", remedy) from error
