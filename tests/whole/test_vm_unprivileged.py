"""A whole comparison as an unprivileged user: no root, no capability, only QEMU and files that
anybody may read."""

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from fscost.files import cache
from fscost.lab.vm import kernels

from .residue import family

pytestmark = [pytest.mark.guest, pytest.mark.slow]

NOBODY = 65534


@dataclass(frozen=True)
class Somebody:
    """An unprivileged user with a home that holds all of the user's files."""

    home: Path
    uid: int

    def command(self, *words: str) -> list[str]:
        if os.geteuid() != 0:
            return list(words)
        ids = (
            f"--reuid={self.uid}",
            f"--regid={self.uid}",
            "--clear-groups",
            "--no-new-privs",
            "--inh-caps=-all",
            "--bounding-set=-all",
        )
        return ["setpriv", *ids, *words]

    @property
    def environment(self) -> dict[str, str]:
        cache_home = str(self.home / "cache")
        programs = Path(sys.executable).parent
        return {
            "HOME": str(self.home),
            "XDG_CACHE_HOME": cache_home,
            "TMPDIR": str(self.home),
            "PATH": f"/usr/bin:/bin:{programs}",
            "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
            "COLUMNS": "200",
        }

    def python(self) -> list[str]:
        """Return a Python that this user may run, with the packages installed for ours: root's own
        Python may lie in root's home."""
        for python in (sys.executable, "/usr/bin/python3"):
            probe = self.command(
                python, "-c", "import fscost._native, sys; print(sys.version_info[:2])"
            )
            answer = subprocess.run(
                probe, env=self.environment, cwd="/", capture_output=True, text=True, check=False
            )
            if answer.stdout.strip() == str(sys.version_info[:2]):
                return [python]
        pytest.skip(
            f"user {self.uid} may not enter this checkout, or has no Python {sys.version_info[:2]}:"
            f" {answer.stderr.strip()[-200:]}"
        )


@pytest.fixture
def somebody() -> Iterator[Somebody]:
    """An unprivileged user with the kernel already fetched, so that it is not downloaded again."""
    kernels.fetch()
    uid = NOBODY if os.geteuid() == 0 else os.geteuid()
    # tmp_path is not used, because it lies in a folder that only its owner may enter.
    home = Path(tempfile.mkdtemp(prefix="somebody-"))
    try:
        home.chmod(0o755)
        target = home / "cache" / "fscost" / "kernels" / kernels.DEFAULT
        shutil.copytree(cache.root() / "kernels" / kernels.DEFAULT, target)
        if os.geteuid() == 0:
            subprocess.run(["chown", "-R", f"{uid}:{uid}", home], check=True)
        yield Somebody(home, uid)
    finally:
        shutil.rmtree(home)


def privileges(root: int) -> dict[str, set[tuple[str, str]]]:
    """Return user and effective capabilities of each descendant of `root`, by program."""
    found: dict[str, set[tuple[str, str]]] = {}
    for process in family(root):
        folder = Path("/proc", str(process.pid))
        with contextlib.suppress(OSError):
            status = dict(
                line.split(":", 1) for line in (folder / "status").read_text().splitlines()
            )
            # Read the program's name before and after: a process that executes another program
            # meanwhile is not charged with the former program's capabilities.
            words = (
                (folder / "cmdline")
                .read_bytes()
                .replace(b"\0", b" ")
                .decode(errors="replace")
                .strip()
            )
            if words and words == process.command:
                held = (status["Uid"].split()[1], status["CapEff"].strip())
                found.setdefault(Path(words.split()[0]).name, set()).add(held)
    return found


def test_a_comparison_by_an_ordinary_user(somebody: Somebody) -> None:
    out = somebody.home / "run"
    words = [
        *somebody.python(),
        "-c",
        "from fscost.cli.app import main; main()",
        "compare",
        "--on",
        "ext4",
        "--on",
        "f2fs",
        "--min-repetitions",
        "1",
        "--max-repetitions",
        "1",
    ]
    words += [
        "--out",
        str(out),
        "--",
        "sh",
        "-c",
        "id -u > who; head -c 3000000 /dev/urandom > file",
    ]
    seen: dict[str, set[tuple[str, str]]] = {}
    with (somebody.home / "said").open("w+") as said:
        process = subprocess.Popen(
            somebody.command(*words), env=somebody.environment, cwd="/", stdout=said, stderr=said
        )
        while process.poll() is None:
            for program, held in privileges(process.pid).items():
                seen.setdefault(program, set()).update(held)
            time.sleep(0.2)
        said.seek(0)
        text = said.read()
    assert process.returncode == 0, text
    # No lab was requested, so the comparison chose the usable one and said why.
    assert "lab vm, because the native lab cannot run here: " in text, text
    # The agent confines QEMU from its own user namespace, where it has capabilities until QEMU
    # begins.
    confining = seen.pop("fscost-agent", set())
    assert {uid for uid, _ in confining} <= {str(somebody.uid)}, seen
    assert {"qemu-system-x86_64", "fscost-disk"} <= set(seen), seen
    assert {held for program in seen.values() for held in program} == {
        (str(somebody.uid), f"{0:016x}")
    }, seen
    manifest = json.loads((out / "manifest.json").read_text())
    assert [cell["status"] for cell in manifest["cells"]] == ["done"] * 2
    assert manifest["environment"]["guest"]["accelerator"] in ("tcg", "kvm")
    assert all(path.stat().st_uid == somebody.uid for path in out.rglob("*"))


def test_a_kernel_is_fetched_by_an_ordinary_user(somebody: Somebody) -> None:
    """apt-get downloads for any user, with package lists of the user's own."""
    own = somebody.home / "cache" / "fscost" / "kernels" / kernels.DEFAULT
    shutil.rmtree(own)
    words = [
        *somebody.python(),
        "-c",
        "from fscost.cli.app import main; main()",
        "doctor",
        "--fetch",
        kernels.DEFAULT,
    ]
    ended = subprocess.run(
        somebody.command(*words), env=somebody.environment, cwd="/", capture_output=True, text=True
    )
    if ended.returncode != 0:
        assert "check the network" in ended.stderr, ended.stderr
        assert [path.name for path in own.parent.iterdir()] == [".lock"]
        pytest.skip(f"nothing to fetch from: {ended.stderr.strip()[-300:]}")
    assert sorted(path.name for path in own.iterdir()) == [
        cache.COMPLETE,
        "PACKAGE",
        "VERSION",
        "modules",
        "vmlinux",
    ]
    assert {path.stat().st_uid for path in own.rglob("*")} == {somebody.uid}
    assert sorted(path.name for path in own.parent.iterdir()) == [".lock", kernels.DEFAULT]
    [line] = [
        line for line in ended.stdout.splitlines() if f"guest kernel {kernels.DEFAULT}" in line
    ]
    assert line.split()[0] == "ok", ended.stdout
