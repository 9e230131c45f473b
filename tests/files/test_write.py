"""Files created and replaced: the effect on each kind of file under the name, and attacks by
another user."""

import errno
import os
import resource
import socket
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import pytest

from fscost.errors import FscostError, HostError, InputError
from fscost.files import check_output, creating, growing, replacing

SOMEBODY = 65534


def replace(path: Path, content: bytes = b"new") -> None:
    check_output(path)
    with replacing(path) as file:
        file.write(content)


@contextmanager
def full_after(size_bytes: int) -> Iterator[None]:
    """Limit the size of this process's files (EFBIG), which is handled like a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_regular_file_keeps_mode_and_owner(tmp_path: Path) -> None:
    target = tmp_path / "file"
    target.write_bytes(b"old")
    target.chmod(0o640)
    if os.geteuid() == 0:
        os.chown(target, SOMEBODY, SOMEBODY)
    before = target.stat()
    replace(target)
    after = target.stat()
    assert target.read_bytes() == b"new"
    assert (after.st_mode, after.st_uid, after.st_gid) == (
        before.st_mode,
        before.st_uid,
        before.st_gid,
    )
    assert after.st_ino != before.st_ino
    assert names(tmp_path) == ["file"]


def test_a_new_file_has_the_callers_umask_and_a_created_one_is_private(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        replace(tmp_path / "result")
        with creating(tmp_path / "recording") as file:
            file.write(b"x")
        growing(tmp_path / "log").close()
    finally:
        os.umask(before)
    assert {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()} == {
        "result": 0o640,
        "recording": 0o600,
        "log": 0o600,
    }


def test_what_was_whole_stays_whole_when_the_disk_is_full(tmp_path: Path) -> None:
    target = tmp_path / "file"
    target.write_bytes(b"old")
    with full_after(4096), pytest.raises(HostError, match=r"cannot be written: File too large"):
        replace(target, b"x" * 100_000)
    with (
        full_after(4096),
        pytest.raises(HostError, match="free some space"),
        creating(tmp_path / "other") as file,
    ):
        file.write(b"x" * 100_000)
    assert target.read_bytes() == b"old"
    assert names(tmp_path) == ["file"]


@pytest.mark.parametrize("write", [replacing, creating])
def test_content_is_durable_before_its_name_and_its_name_before_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write: Any
) -> None:
    """A power failure would lose either on a file system that guarantees no order."""
    path, synced, fsync = tmp_path / "file", list[tuple[str, bool]](), os.fsync

    def remembered(descriptor: int) -> None:
        mode = os.fstat(descriptor).st_mode
        synced.append(("folder" if stat.S_ISDIR(mode) else "file", path.exists()))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", remembered)
    with write(path) as file:
        file.write(b"new")
    assert synced == [("file", False), ("folder", True)]


def test_nothing_is_left_of_what_fails(tmp_path: Path) -> None:
    def half(file: IO[bytes]) -> None:
        file.write(b"half")
        raise RuntimeError

    for maker in (replacing, creating):
        with pytest.raises(RuntimeError), maker(tmp_path / "file") as file:
            half(file)
    assert names(tmp_path) == []


def test_links_are_followed_and_stay_links(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    target = tmp_path / "deep" / "file"
    for content in (b"made where the link points", b"again"):
        (tmp_path / "link").unlink(missing_ok=True)
        (tmp_path / "link").symlink_to("hop")
        (tmp_path / "hop").unlink(missing_ok=True)
        (tmp_path / "hop").symlink_to(tmp_path / "deep" / ".." / "deep" / "file")
        replace(tmp_path / "link", content)
        assert target.read_bytes() == content
        assert (tmp_path / "link").is_symlink()
    assert names(tmp_path / "deep") == ["file"]


def test_links_in_a_circle_end(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(InputError, match="too many symbolic links"):
        replace(tmp_path / "a")


def test_other_names_of_a_file_keep_the_old_content(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"old")
    (tmp_path / "other").hardlink_to(tmp_path / "file")
    replace(tmp_path / "file")
    assert ((tmp_path / "file").read_bytes(), (tmp_path / "other").read_bytes()) == (b"new", b"old")


def test_a_write_protected_file_is_refused_also_to_root(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"old")
    (tmp_path / "file").chmod(0o444)
    with pytest.raises(InputError, match=r"write-protected \(mode 0444\)"):
        replace(tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == b"old"


def test_a_folder_and_a_socket_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is a folder"):
        replace(tmp_path)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "socket"))
        with pytest.raises(InputError, match="is a socket"):
            replace(tmp_path / "socket")


def test_a_missing_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"there is no folder .*missing"):
        replace(tmp_path / "missing" / "file")


def test_a_fifo_is_written_to_its_reader_and_without_one_refused(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    with pytest.raises(HostError, match="No such device or address"):
        replace(fifo)
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    replace(fifo, b"through")
    assert os.read(reader, 100) == b"through"
    os.close(reader)
    assert stat.S_ISFIFO(fifo.lstat().st_mode)


def test_more_than_a_fifo_holds_waits_for_its_reader(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    read = os.open(tmp_path / "fifo", os.O_RDONLY | os.O_NONBLOCK)
    found = bytearray()

    def drain() -> None:
        os.set_blocking(read, True)
        while part := os.read(read, 65536):
            found.extend(part)

    with replacing(tmp_path / "fifo") as file:
        reader = threading.Thread(target=drain)
        reader.start()
        file.write(b"x" * 1_000_000)
    reader.join()
    os.close(read)
    assert len(found) == 1_000_000


def test_an_open_descriptor_is_written_where_it_stands(tmp_path: Path) -> None:
    with (tmp_path / "output").open("w+b", buffering=0) as file:
        file.write(b"before ")
        replace(Path(f"/dev/fd/{file.fileno()}"), b"now ")
        replace(Path(f"/proc/self/fd/{file.fileno()}"), b"and again")
    assert (tmp_path / "output").read_bytes() == b"before now and again"


@pytest.fixture
def device(tmp_path: Path) -> Callable[[int], Path]:
    """Return a function that makes a node by minor number of the memory devices. These nodes are
    the test's own: a test that fails as root would otherwise destroy this machine's /dev/null."""

    def make(minor: int) -> Path:
        os.mknod(tmp_path / f"device{minor}", stat.S_IFCHR | 0o666, os.makedev(1, minor))
        return tmp_path / f"device{minor}"

    return make


@pytest.mark.root
def test_device_nodes_are_written_and_stay(device: Callable[[int], Path]) -> None:
    null, full = device(3), device(7)
    replace(null)
    with pytest.raises(HostError, match=rf"device7 cannot be written: {os.strerror(errno.ENOSPC)}"):
        replace(full)
    assert stat.S_ISCHR(null.lstat().st_mode)
    assert stat.S_ISCHR(full.lstat().st_mode)


@pytest.mark.root
def test_a_block_device_is_refused(tmp_path: Path) -> None:
    # Major 240 is for local use (Documentation/admin-guide/devices.txt): no driver answers.
    os.mknod(tmp_path / "disk", stat.S_IFBLK | 0o600, os.makedev(240, 0))
    with pytest.raises(InputError, match="is a block device"):
        replace(tmp_path / "disk")


@pytest.mark.parametrize("kind", ["regular", "dangling", "symlink", "fifo", "folder"])
def test_nothing_that_exists_is_created(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "out"
    match kind:
        case "regular":
            path.write_bytes(b"old")
        case "dangling":
            path.symlink_to("nowhere")
        case "symlink":
            (tmp_path / "target").write_bytes(b"old")
            path.symlink_to("target")
        case "fifo":
            os.mkfifo(path)
        case "folder":
            path.mkdir()
    before = names(tmp_path)
    with (
        pytest.raises(InputError, match=r"out exists\n  name a file that does not"),
        creating(path) as file,
    ):
        file.write(b"new")
    with pytest.raises(InputError, match="exists"):
        growing(path)
    assert names(tmp_path) == before


@pytest.mark.parametrize("kind", ["link", "dangling link", "fifo", "descriptor"])
def test_a_name_that_fscost_chose_is_no_link_and_no_stream(tmp_path: Path, kind: str) -> None:
    """The folder may be an unpacked archive, all of whose links belong to the caller."""
    (tmp_path / "target").write_bytes(b"old")
    path = tmp_path / "out"
    match kind:
        case "link":
            path.symlink_to("target")
        case "dangling link":
            path.symlink_to("nowhere")
        case "fifo":
            os.mkfifo(path)
        case "descriptor":
            path = Path("/dev/stdout")
    before = names(tmp_path)
    with pytest.raises(InputError, match=r"is a (symbolic link|FIFO); fscost replaces only"):
        check_output(path, follow=False)
    with pytest.raises(InputError, match="is a "), replacing(path, follow=False) as file:
        file.write(b"new")
    with pytest.raises(InputError, match="is a "):
        growing(path, again=True)
    assert names(tmp_path) == before
    assert (tmp_path / "target").read_bytes() == b"old"


def test_a_folder_on_the_way_may_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("folder")
    with replacing(tmp_path / "link" / "out", follow=False) as file:
        file.write(b"new")
    assert (tmp_path / "folder" / "out").read_bytes() == b"new"


def test_a_name_that_was_taken_meanwhile_is_not_taken_back(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="exists"), creating(tmp_path / "out"):
        (tmp_path / "out").write_bytes(b"somebody else's")
    assert (tmp_path / "out").read_bytes() == b"somebody else's"
    assert names(tmp_path) == ["out"]


@pytest.mark.parametrize("unnamed", [True, False])
def test_without_unnamed_files_or_hard_links_it_is_the_same(
    tmp_path: Path, unnamed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The result is the same on a file system that has neither, such as vfat."""
    open_, link = os.open, os.link

    def no_unnamed(path: object, flags: int, *more: object, **other: object) -> int:
        if flags & os.O_TMPFILE == os.O_TMPFILE:
            raise OSError(errno.EOPNOTSUPP, "Operation not supported")
        return open_(path, flags, *more, **other)  # type: ignore[arg-type]

    def no_link(*arguments: object, **other: object) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    if not unnamed:
        monkeypatch.setattr(os, "open", no_unnamed)
        monkeypatch.setattr(os, "link", no_link)
    replace(tmp_path / "file", b"first")
    replace(tmp_path / "file", b"second")
    with creating(tmp_path / "new") as file:
        file.write(b"x")
    with pytest.raises(InputError, match="exists"), creating(tmp_path / "new") as file:
        file.write(b"y")
    with full_after(4096), pytest.raises(FscostError), replacing(tmp_path / "file") as file:
        file.write(b"x" * 100_000)
    assert link is not None
    assert (tmp_path / "file").read_bytes() == b"second"
    assert names(tmp_path) == ["file", "new"]


@pytest.mark.root
@pytest.mark.parametrize(
    "where", ["the file", "a folder on the way", "a second name of root's link"]
)
def test_nobody_elses_link_is_followed(tmp_path: Path, where: str) -> None:
    """The review's H3: in another user's folder, a link decides what root writes to."""
    victim, theirs = tmp_path / "victim", tmp_path / "theirs"
    victim.mkdir()
    theirs.mkdir()
    (victim / "x.csv").write_bytes(b"root's")
    if where == "the file":
        (theirs / "x.csv").symlink_to(victim / "x.csv")
        asked = link = theirs / "x.csv"
    elif where == "a folder on the way":
        link = theirs / "sub"
        link.symlink_to(victim)
        asked = link / "x.csv"
    else:
        (victim / "link").symlink_to(victim / "x.csv")
        os.link(victim / "link", theirs / "x.csv", follow_symlinks=False)
        asked = link = theirs / "x.csv"
    if where != "a second name of root's link":
        os.chown(link, SOMEBODY, SOMEBODY, follow_symlinks=False)
    os.chown(theirs, SOMEBODY, SOMEBODY)
    for attempt in (check_output, replace):
        with pytest.raises(
            InputError,
            match=rf"symbolic link of user .*name the file itself: {victim}/x.csv".replace(
                ".*", "(.|\n)*"
            ),
        ):
            attempt(asked)
    assert (victim / "x.csv").read_bytes() == b"root's"


@pytest.mark.root
def test_a_link_that_is_exchanged_after_its_check_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """N2: of 61,957 writes beside an endless exchange of two links, 36 reached the victim."""
    (tmp_path / "victim").write_bytes(b"root's")
    (tmp_path / "ours").write_bytes(b"")
    link, theirs = tmp_path / "x.csv", tmp_path / "y.csv"
    link.symlink_to("ours")
    theirs.symlink_to("victim")
    os.chown(theirs, SOMEBODY, SOMEBODY, follow_symlinks=False)
    read = os.readlink

    def exchanged(path: str, *, dir_fd: int) -> str:
        theirs.replace(link)
        return read(path, dir_fd=dir_fd)

    with monkeypatch.context() as patched:
        patched.setattr(os, "readlink", exchanged)
        with replacing(link) as file:
            file.write(b"new")
    assert not theirs.is_symlink(), "nothing was exchanged"
    assert (tmp_path / "victim").read_bytes() == b"root's"


@pytest.mark.root
def test_the_user_who_called_sudo_is_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "link").symlink_to("file")
    os.chown(tmp_path / "link", SOMEBODY, SOMEBODY, follow_symlinks=False)
    monkeypatch.setenv("SUDO_UID", str(SOMEBODY))
    replace(tmp_path / "link")
    assert (tmp_path / "file").read_bytes() == b"new"
    monkeypatch.setenv("SUDO_UID", "0")
    with pytest.raises(InputError, match="symbolic link"):
        replace(tmp_path / "link")
