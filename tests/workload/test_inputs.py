"""Inputs: the same request gives the same bytes, complete or absent, and a hostile tarball reaches
nothing outside."""

import errno
import gzip
import hashlib
import io
import os
import subprocess
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from fscost import workload
from fscost.errors import HostError, InputError
from fscost.workload import inputs
from fscost.workload.recipes import RECIPES, repository
from fscost.workload.recipes.request import Request

NAMES = [builtin.name for builtin in workload.catalogue() if builtin.recipe]


def tree_hash(folder: Path) -> str:
    """Return a hash of every name, mode and byte."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        digest.update(f"{path.relative_to(folder)} {path.lstat().st_mode:o}\n".encode())
        if path.is_file():
            digest.update(path.read_bytes())
    return digest.hexdigest()


def prepared(folder: Path, name: str, seed: int = 1, scale: float = 0.02) -> Path:
    result = inputs.prepare(workload.resolve(name, scale=scale, seed=seed), folder)
    assert result is not None
    return result


@pytest.mark.parametrize("name", NAMES)
def test_same_seed_same_bytes(name: str, tmp_path: Path) -> None:
    first = prepared(tmp_path / "a", name)
    assert tree_hash(first) == tree_hash(prepared(tmp_path / "b", name))
    assert first.name == prepared(tmp_path / "b", name).name


@pytest.mark.parametrize(
    "name",
    sorted(set(NAMES) - {"fsync-log", "iozone", "random-read", "random-write", "sync-threads"}),
)
def test_other_seed_other_bytes(name: str, tmp_path: Path) -> None:
    first, second = prepared(tmp_path, name), prepared(tmp_path, name, seed=2)
    assert first != second
    assert tree_hash(first) != tree_hash(second)


def test_made_once(tmp_path: Path) -> None:
    said: list[str] = []
    resolved = workload.resolve("small-files", scale=0.01)
    inputs.prepare(resolved, tmp_path, said.append)
    assert said
    said.clear()
    inputs.prepare(resolved, tmp_path, said.append)
    assert not said


def test_a_command_has_no_input(tmp_path: Path) -> None:
    assert inputs.prepare(workload.command(["ls"]), tmp_path) is None
    assert not list(tmp_path.iterdir())


def test_an_interrupted_input_is_never_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real: Callable[[Path, Request], None] = RECIPES["tree"]

    def half(folder: Path, request: Request) -> None:
        (folder / "tree.tar").write_text("half")
        raise KeyboardInterrupt

    resolved = workload.resolve("small-files", scale=0.01)
    monkeypatch.setattr("fscost.workload.inputs.RECIPES", {**RECIPES, "tree": half})
    with pytest.raises(KeyboardInterrupt):
        inputs.prepare(resolved, tmp_path)
    assert not list(tmp_path.iterdir())
    # SIGKILL leaves a partial input under the temporary name.
    monkeypatch.setattr("fscost.workload.inputs.RECIPES", {**RECIPES, "tree": real})
    done = inputs.prepare(resolved, tmp_path)
    assert done is not None
    done.rename(tmp_path / f".{done.name}.partial")
    (tmp_path / f".{done.name}.partial" / "tree.tar").write_text("half")
    again = inputs.prepare(resolved, tmp_path)
    assert again == done
    assert tarfile.is_tarfile(again / "tree.tar")
    assert [path.name for path in tmp_path.iterdir()] == [done.name]


def test_a_full_host_disk_is_one_clear_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(folder: Path, request: Request) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("fscost.workload.inputs.RECIPES", {**RECIPES, "tree": full})
    with pytest.raises(HostError, match="No space left on device"):
        inputs.prepare(workload.resolve("small-files"), tmp_path)
    assert not list(tmp_path.iterdir())


def git(*arguments: str, cwd: Path) -> str:
    environment = {
        **os.environ,
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_AUTHOR_NAME": "a",
        "GIT_AUTHOR_EMAIL": "a@b",
    }
    environment |= {"GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b"}
    return subprocess.run(
        ["git", *arguments], cwd=cwd, env=environment, check=True, capture_output=True, text=True
    ).stdout


def from_source(source: Path, folder: Path) -> Path:
    result = inputs.prepare(workload.resolve("source-tree", source=source), folder)
    assert result is not None
    return result / "repo"


def test_the_generated_project_has_a_history(tmp_path: Path) -> None:
    repo = prepared(tmp_path, "source-tree", scale=0.1) / "repo"
    assert len(git("log", "--oneline", cwd=repo).splitlines()) == 6
    git("fsck", "--strict", cwd=repo)
    assert len(git("ls-tree", "-r", "--name-only", "HEAD", cwd=repo).splitlines()) == 32


def test_a_git_repository_as_source(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    git("init", "-q", "-b", "odd/name", cwd=work)
    with pytest.raises(InputError, match="no commit"):
        from_source(work, tmp_path / "empty")
    (work / "file").write_text("x")
    git("add", "file", cwd=work)
    git("commit", "-q", "-m", "one", cwd=work)
    repo = from_source(work, tmp_path / "in")
    assert git("rev-parse", "HEAD", cwd=repo) == git("rev-parse", "HEAD", cwd=work)
    assert from_source(repo, tmp_path / "bare").is_dir(), "a bare one too"


def make_tar(path: Path, members: list[tuple[tarfile.TarInfo, bytes]], mode: str = "w") -> Path:
    with tarfile.open(path, mode) as tar:  # type: ignore[call-overload]
        for info, content in members:
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return path


def member(
    name: str, kind: bytes = tarfile.REGTYPE, link: str = "", mode: int = 0o644
) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.mode = kind, link, mode
    return info


@pytest.mark.parametrize(
    ("suffix", "mode"), [("tar", "w"), ("tar.gz", "w:gz"), ("tar.xz", "w:xz"), ("tar.bz2", "w:bz2")]
)
def test_a_tarball_as_source(suffix: str, mode: str, tmp_path: Path) -> None:
    tar = make_tar(
        tmp_path / f"p.{suffix}",
        [
            (member("p-1.0", tarfile.DIRTYPE, mode=0o755), b""),
            (member("p-1.0/Makefile"), b"all:\n"),
            (member("p-1.0/run", mode=0o755), b"#!/bin/sh\n"),
            (member('p-1.0/odd "name"\n\\x'), b"odd"),
            (member("p-1.0/link", tarfile.SYMTYPE, "Makefile"), b""),
            (member("p-1.0/hard", tarfile.LNKTYPE, "p-1.0/Makefile"), b""),
        ],
        mode,
    )
    repo = from_source(tar, tmp_path / "in")
    listed = git("ls-tree", "-r", "-z", "HEAD", cwd=repo).split("\0")[:-1]
    modes = {entry.split("\t")[1]: entry.split()[0] for entry in listed}
    assert modes == {
        "Makefile": "100644",
        "run": "100755",
        'odd "name"\n\\x': "100644",
        "link": "120000",
        "hard": "100644",
    }
    assert git("show", "HEAD:hard", cwd=repo) == "all:\n"


def test_a_tarball_without_a_top_folder_stays_as_it_is(tmp_path: Path) -> None:
    tar = make_tar(tmp_path / "p.tar", [(member("./a/b"), b"1"), (member("c"), b"2")])
    repo = from_source(tar, tmp_path / "in")
    assert git("ls-tree", "-r", "--name-only", "HEAD", cwd=repo).split() == ["a/b", "c"]


@pytest.mark.parametrize(
    ("info", "words"),
    [
        (member("/etc/evil"), "would leave"),
        (member("a/../../evil"), "would leave"),
        (member(".git/hooks/post-checkout", mode=0o755), "inside a .git folder"),
        (member("sub/.GIT/config"), "inside a .git folder"),
        (member("device", tarfile.CHRTYPE), "a device or a pipe"),
        (member("pipe", tarfile.FIFOTYPE), "a device or a pipe"),
        (member("hard", tarfile.LNKTYPE, "/etc/passwd"), "not in it"),
        (member("hard", tarfile.LNKTYPE, "../../etc/passwd"), "not in it"),
    ],
)
def test_hostile_tarballs(info: tarfile.TarInfo, words: str, tmp_path: Path) -> None:
    tar = make_tar(tmp_path / "p.tar", [(member("ok"), b"1"), (info, b"")])
    with pytest.raises(InputError, match=words):
        from_source(tar, tmp_path / "in")
    assert not list((tmp_path / "in").iterdir()), "nothing is left"


def test_a_file_through_a_link_stays_inside(tmp_path: Path) -> None:
    """A link points outside, and a file is written "through" it: in git the later entry replaces
    the link; nothing outside is touched."""
    outside = tmp_path / "outside"
    outside.mkdir()
    tar = make_tar(
        tmp_path / "p.tar",
        [
            (member("d", tarfile.SYMTYPE, str(outside)), b""),
            (member("d/evil"), b"1"),
            (member("e"), b"2"),
        ],
    )
    repo = from_source(tar, tmp_path / "in")
    git("clone", "-q", str(repo), str(tmp_path / "tree"), cwd=tmp_path)
    assert not list(outside.iterdir())
    assert (tmp_path / "tree/d/evil").read_text() == "1"


@pytest.mark.root
def test_a_repository_of_another_user_is_cloned_and_no_other_is_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "source"
    source.mkdir()
    for command in (
        ("init", "-q"),
        ("-c", "user.name=a", "-c", "user.email=a", "commit", "-q", "--allow-empty", "-m", "1"),
    ):
        git(*command, cwd=source)
    for path in (source, *source.rglob("*")):
        os.chown(path, 65534, 65534)
    settings: list[str] = []
    original = repository.run_git
    monkeypatch.setattr(
        repository,
        "run_git",
        lambda folder, *words: (
            settings.append((folder / "gitconfig").read_text()) or original(folder, *words)
        ),
    )
    assert from_source(source, tmp_path / "in").is_dir()
    assert settings
    assert "directory = *" not in settings[0]


@pytest.mark.parametrize("cut", [600, -700, -20])
def test_cut_tarballs(cut: int, tmp_path: Path) -> None:
    whole = make_tar(
        tmp_path / "p.tar.gz", [(member(f"f{i}"), os.urandom(5000)) for i in range(5)], "w:gz"
    )
    part = tmp_path / "cut.tar.gz"
    part.write_bytes(whole.read_bytes()[:cut])
    with pytest.raises(InputError):
        from_source(part, tmp_path / "in")


def test_an_empty_tarball(tmp_path: Path) -> None:
    tar = make_tar(tmp_path / "p.tar", [(member("d", tarfile.DIRTYPE, mode=0o755), b"")])
    with pytest.raises(InputError, match="no files in it"):
        from_source(tar, tmp_path / "in")


def test_a_corrupted_tarball(tmp_path: Path) -> None:
    whole = bytearray(
        make_tar(
            tmp_path / "p.tar.gz", [(member(f"f{i}"), os.urandom(5000)) for i in range(5)], "w:gz"
        ).read_bytes()
    )
    whole[len(whole) // 2] ^= 0xFF
    part = tmp_path / "bad.tar.gz"
    part.write_bytes(whole)
    with pytest.raises((OSError, gzip.zlib.error)):  # type: ignore[attr-defined]
        gzip.decompress(bytes(whole))
    with pytest.raises(InputError):
        from_source(part, tmp_path / "in")


def test_a_tree_has_as_many_directories_as_asked_for(tmp_path: Path) -> None:
    chosen = workload.resolve("big-and-small", options={"files": "100", "directories": "18"})
    made = inputs.prepare(chosen, tmp_path)
    assert made is not None
    with zipfile.ZipFile(made / "tree.zip") as archive:
        members = archive.infolist()
    assert (
        sum(member.is_dir() for member in members),
        sum(not member.is_dir() for member in members),
    ) == (18, 100)
