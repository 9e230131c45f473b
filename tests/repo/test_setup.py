"""tools/setup-system installs only what is missing and says which steps need root. The commands it
runs are replaced by stubs that only record their calls."""

import os
import re
import shlex
import shutil
import subprocess
import tomllib
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HARMLESS = (
    "bash",
    "chmod",
    "cut",
    "dirname",
    "env",
    "grep",
    "cat",
    "head",
    "mkdir",
    "mktemp",
    "rm",
    "sed",
    "sha256sum",
    "sort",
    "uname",
    "unshare",
)


AS_ROOT = () if os.geteuid() == 0 else ("unshare", "--user", "--map-root-user")


@dataclass
class Machine:
    """A machine that has only the programs a test installs."""

    programs: Path
    notes: Path

    def has(self, program: str, answer: str = "", status: int = 0) -> None:
        path = self.programs / program
        path.write_text(
            f"#!/bin/bash\necho {program} \"$@\" >> '{self.notes}'\nprintf '%s' '{answer}'\nexit"
            f" {status}\n"
        )
        path.chmod(0o755)

    def setup(
        self, *arguments: str, before: tuple[str, ...] = ()
    ) -> subprocess.CompletedProcess[str]:
        command = [*before, str(ROOT / "tools/setup-system"), *arguments]
        environment = {"PATH": str(self.programs), "HOME": str(self.notes.parent)}
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

    def did(self) -> str:
        return self.notes.read_text() if self.notes.exists() else ""


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in HARMLESS:
        found = shutil.which(name)
        assert found
        (programs / name).symlink_to(os.path.realpath(found))
    machine = Machine(programs, tmp_path / "notes")
    machine.has("dpkg-query", "ii ")
    machine.has("apt-get")
    machine.has("apt-cache", "rustup:\n  Candidate: (none)\n")
    machine.has("curl")
    machine.has("python3")
    machine.has("cargo", "cargo 1.95.0 (f2d3ce0bd 2026-03-21)")
    return machine


def test_nothing_is_done_when_nothing_is_missing(machine: Machine) -> None:
    answer = machine.setup()
    assert (answer.returncode, answer.stdout, answer.stderr) == (0, "", "")
    assert {line.split()[0] for line in machine.did().splitlines()} == {
        "dpkg-query",
        "cargo",
        "python3",
    }


def test_only_missing_packages_are_installed(machine: Machine) -> None:
    (machine.programs / "dpkg-query").write_text(
        '#!/bin/bash\n[[ ${!#} != xfsprogs && ${!#} != fio ]] && printf "ii "\n'
    )
    answer = machine.setup("--dry-run")
    assert answer.returncode == 0
    assert answer.stderr.splitlines()[-1].endswith(
        "apt-get install -q -y --no-install-recommends xfsprogs"
    )
    answer = machine.setup("--dry-run", "--all")
    assert (
        answer.stderr.splitlines()[0]
        == "setup: installing xfsprogs (to make and mount file systems); fio (for built-in"
        " workloads)"
    )
    assert answer.stderr.splitlines()[-1].endswith(
        "apt-get install -q -y --no-install-recommends xfsprogs fio"
    )
    assert "apt-get" not in machine.did(), "a dry run must not install"


def test_installing_takes_one_line(machine: Machine) -> None:
    (machine.programs / "dpkg-query").write_text(
        '#!/bin/bash\n[[ ${!#} != xfsprogs ]] && printf "ii "\n'
    )
    machine.has("apt-get", "Reading package lists...\n")
    answer = machine.setup(before=AS_ROOT)
    assert (answer.returncode, answer.stdout) == (0, "")
    assert answer.stderr == "setup: installing xfsprogs (to make and mount file systems)\n"
    assert "apt-get install -q -y --no-install-recommends xfsprogs" in machine.did()


def test_a_failed_installation_shows_what_apt_printed(machine: Machine) -> None:
    (machine.programs / "dpkg-query").write_text(
        '#!/bin/bash\n[[ ${!#} != xfsprogs ]] && printf "ii "\n'
    )
    machine.has("apt-get", "E: Could not get lock", status=100)
    answer = machine.setup(before=AS_ROOT)
    assert answer.returncode == 100
    assert "E: Could not get lock" in answer.stderr
    assert "setup: failed: apt-get update -q" in answer.stderr


def test_an_unknown_option_is_refused(machine: Machine) -> None:
    answer = machine.setup("--al")
    assert answer.returncode == 2
    assert "unknown option --al; usage: " in answer.stderr


def test_without_root_it_says_what_to_run(machine: Machine) -> None:
    if (
        subprocess.run(["unshare", "--user", "true"], capture_output=True, check=False).returncode
        != 0
    ):
        pytest.skip(
            "no user namespaces here (in a chroot the kernel refuses them), so it cannot stop being"
            " root"
        )
    machine.has("dpkg-query", status=1)
    answer = machine.setup(before=("unshare", "--user"))  # nobody, whoever runs the tests
    assert answer.returncode == 1
    assert "needs root" in answer.stderr
    assert "sudo apt-get install" in answer.stderr
    assert "xfsprogs" in answer.stderr
    assert "apt-get" not in machine.did()


@pytest.mark.parametrize("answer", ["cargo 1.63.0", ""])
def test_old_or_no_rust_without_rustup_brings_rustup(machine: Machine, answer: str) -> None:
    machine.has("cargo", answer)
    said = machine.setup("--dry-run").stderr
    assert "installing Rust 1.95.0: 1.88 or later is needed" in said
    assert "/rustup-init -y --no-modify-path" in said
    assert not re.search(r"^curl", machine.did(), re.MULTILINE), "a dry run must not download"


def test_a_rustup_that_was_tampered_with_is_never_run(machine: Machine) -> None:
    machine.has("cargo", "cargo 1.63.0")
    init = ROOT / "target/rustup-init"
    malicious = f"#!/bin/bash\necho ran >> '{machine.notes}'\n"
    (machine.programs / "curl").write_text(
        f"#!/bin/bash\nprintf '%s' {shlex.quote(malicious)} > '{init}'\n"
    )
    answer = machine.setup()
    assert answer.returncode == 1
    assert "its SHA-256 differs, so it was not run" in answer.stderr
    assert "ran" not in machine.did().split()
    assert not init.exists()


def test_old_rust_of_rustup_is_updated(machine: Machine) -> None:
    machine.has("cargo", "cargo 1.70.0")
    machine.has("rustup")
    answer = machine.setup()
    pinned = tomllib.loads((ROOT / "rust-toolchain.toml").read_text())["toolchain"]["channel"]
    assert f"rustup toolchain install {pinned} " in machine.did()
    assert answer.returncode == 1, (
        "the pretended rustup changes nothing, and that must not pass unseen"
    )
    assert "still 1.70.0" in answer.stderr


def test_without_any_rust_the_distribution_s_rustup_is_taken_where_there_is_one(
    machine: Machine,
) -> None:
    (machine.programs / "cargo").unlink()
    machine.has("apt-cache", "rustup:\n  Candidate: 1.26.0-5build1\n")
    assert (
        "apt-get install -q -y --no-install-recommends rustup" in machine.setup("--dry-run").stderr
    )


def test_on_another_distribution_missing_programs_are_named(machine: Machine) -> None:
    (machine.programs / "dpkg-query").unlink()
    answer = machine.setup()
    assert answer.returncode == 1
    assert "please install:" in answer.stderr


def test_old_python_is_refused(machine: Machine) -> None:
    (machine.programs / "python3").unlink()
    machine.has("python3", status=1)
    answer = machine.setup()
    assert answer.returncode == 1
    assert "Python 3.11 or later" in answer.stderr
