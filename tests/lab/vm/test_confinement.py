"""The user that QEMU runs as, and the files that this user can read."""

import os
import pwd
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from fscost.lab.cell.binaries import find_binaries
from fscost.lab.vm import confinement

CALLER = 12345
"""Who calls sudo."""


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return a working directory of the user who called sudo, with a private file, beside another
    private file. Only the modes of the files protect them."""
    monkeypatch.setenv("SUDO_UID", str(CALLER))
    monkeypatch.setenv("SUDO_GID", str(CALLER))
    with tempfile.TemporaryDirectory() as top:
        folder = Path(top, "work")
        folder.mkdir()
        for path in (folder / "file", folder.parent / "outside"):
            path.write_text(f"content of {path.name}")
            path.chmod(0o600)
            os.chown(path, CALLER, CALLER)
        folder.parent.chmod(0o755)
        os.chown(folder, CALLER, CALLER)
        monkeypatch.chdir(folder)
        yield folder
        monkeypatch.chdir("/")


@pytest.mark.root
def test_under_sudo_qemu_cannot_read_the_callers_files(folder: Path) -> None:
    """Guests read the host's files as QEMU's user does, and show them to the workload."""
    chosen = confinement.choose(find_binaries().agent, "qemu-system-x86_64")

    def read(path: Path) -> str:
        command = [*chosen.command(Path("/bin/cat")), str(path)]
        ended = subprocess.run(command, capture_output=True, text=True, check=False, cwd="/")
        return ended.stdout or ended.stderr

    assert read(folder.parent / "outside").endswith("Permission denied\n")
    assert chosen.user is not None
    assert chosen.user[0] not in (0, CALLER)
    assert chosen.is_hidden, "guests see all of /home here"
    shared = Path("/run/fscost/root")
    assert read(shared / folder.relative_to("/") / "file") == "content of file"


@pytest.mark.root
def test_the_home_of_who_called_sudo_is_no_working_directory(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert confinement._working_directory() == (folder,)
    entry = pwd.struct_passwd(("caller", "x", CALLER, CALLER, "", str(folder), "/bin/sh"))
    found = pwd.getpwuid
    monkeypatch.setattr(pwd, "getpwuid", lambda uid: entry if uid == CALLER else found(uid))
    assert confinement._working_directory() == ()
