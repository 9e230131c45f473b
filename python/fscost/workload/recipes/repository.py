"""`repo`: a bare git repository from the user's own repository or tarball."""

import lzma
import os
import tarfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from fscost.errors import InputError
from fscost.workload.recipes.git import CONFIG, EXECUTABLE, FILE, SYMLINK, new_repository, run_git
from fscost.workload.recipes.request import Request
from fscost.workload.source import is_repository

_SHOW_EVERY_FILES = 5000


def make(folder: Path, request: Request) -> None:
    """Clone the repository, or commit the tarball's files; a tarball's single top folder is left
    out."""
    source = request.source
    assert source is not None
    if is_repository(source):
        request.on_progress(f"cloning {source}")
        _clone(folder, source)
        return
    try:
        with new_repository(folder) as importer, tarfile.open(source) as tar:
            importer.commit(source.name, _files(tar, source, request))
    except (tarfile.TarError, lzma.LZMAError, zlib.error, EOFError, OSError) as error:
        raise InputError(
            f"--source {source}: cannot be read: {error}", "check that the file is complete"
        ) from error
    _drop_single_top_folder(folder)


def _clone(folder: Path, source: Path) -> None:
    # git refuses repositories of other users (safe.directory). Only the named one is permitted.
    place = source.resolve()
    trusted = "".join(f"\tdirectory = {_config_value(path)}\n" for path in (place, place / ".git"))
    (folder / "gitconfig").write_text(
        f"[safe]\n{trusted}\tdirectory = {_config_value(folder.resolve() / 'repo')}\n"
    )
    # --no-local copies only objects reachable from HEAD's branch, into one pack.
    command = ("clone", "-q", "--bare", "--no-local", "--single-branch", "--no-tags", "--template=")
    run_git(folder, *command, "--", str(source.absolute()), str(folder / "repo"))
    try:
        run_git(folder, "-C", str(folder / "repo"), "rev-parse", "--verify", "HEAD")
    except InputError:
        raise InputError(
            f"--source {source}: the repository has no commit", "commit something in it"
        ) from None
    (folder / "gitconfig").write_text(CONFIG)


def _config_value(path: Path) -> str:
    """Quote a path for git-config(1)."""
    return '"' + str(path).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def _files(
    tar: tarfile.TarFile, source: Path, request: Request
) -> Iterator[tuple[bytes, bytes, bytes]]:
    """Yield the tarball's files in git's form. Nothing is written to the host, so no name or link
    in the tarball can escape."""
    for i, member in enumerate(tar):
        if i % _SHOW_EVERY_FILES == 0 and i:
            request.on_progress(f"reading {source.name}: {i} files")
        if member.isdir():
            continue  # git keeps no empty directories
        path = _safe_path(member, source)
        if member.issym():
            yield SYMLINK, path, os.fsencode(member.linkname)
        elif member.isreg() or member.islnk():
            file = _open(tar, member, source)
            with file:
                yield EXECUTABLE if member.mode & 0o100 else FILE, path, file.read()
        else:
            raise InputError(
                f"--source {source}: '{member.name}' is a device or a pipe",
                "remove it: a source tree has no devices or pipes",
            )
    _read_to_the_end(tar)


def _read_to_the_end(tar: tarfile.TarFile) -> None:
    """Read past the end of the archive: only the end of the compressed data has the checksum of
    everything before."""
    while tar.fileobj is not None and tar.fileobj.read(1 << 20):
        pass


def _open(tar: tarfile.TarFile, member: tarfile.TarInfo, source: Path) -> IO[bytes]:
    try:
        file = tar.extractfile(member)  # a hard link gives its target in the archive
    except KeyError:
        file = None
    if file is None:
        raise InputError(
            f"--source {source}: '{member.name}' is a link to a file that is not in it",
            "check that the file is complete",
        )
    return file


def _safe_path(member: tarfile.TarInfo, source: Path) -> bytes:
    parts = [part for part in member.name.split("/") if part not in ("", ".")]
    if member.name.startswith("/") or ".." in parts or not parts:
        raise InputError(
            f"--source {source}: '{member.name}' would leave the folder it is unpacked into",
            "do not use this file",
        )
    if any(part.lower() == ".git" for part in parts):
        raise InputError(
            f"--source {source}: '{member.name}' is inside a .git folder",
            "give that repository as --source instead",
        )
    return os.fsencode("/".join(parts))


def _drop_single_top_folder(folder: Path) -> None:
    repo = ("-C", str(folder / "repo"))
    entries = [line for line in run_git(folder, *repo, "ls-tree", "-z", "main").split("\0") if line]
    if not entries:
        raise InputError(
            "--source: the tarball has no files in it", "give a tarball that contains files"
        )
    kind, tree = entries[0].split(None, 3)[1:3]
    if len(entries) == 1 and kind == "tree":
        commit = run_git(folder, *repo, "commit-tree", tree, "-m", "source")
        run_git(folder, *repo, "update-ref", "refs/heads/main", commit)
