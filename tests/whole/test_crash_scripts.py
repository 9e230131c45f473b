"""A found state leaves as a script that needs no fscost, and as a test for xfstests."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.whole.test_crash import PROGRAM, left_behind

pytestmark = [pytest.mark.root, pytest.mark.slow]

FUNCTIONS = Path(__file__).parents[1] / "crash" / "xfstests_functions.txt"
STALE = "ext4 -o data=writeback,nodelalloc"


def crash(folder: Path, *words: str) -> str:
    few = ("--rounds", "2", "--cuts", "6", "--states", "8", "--wait")
    command = [*PROGRAM, "crash", *few, *words]
    return subprocess.run(
        command, cwd=folder, check=True, capture_output=True, text=True, timeout=600
    ).stdout


def check_syntax(script: Path, shell: str) -> None:
    subprocess.run([shell, "-n", script], check=True)
    if shutil.which("shellcheck"):
        subprocess.run(["shellcheck", "-s", shell, "-S", "error", script], check=True)


@pytest.mark.parametrize(
    ("profile", "workload", "words"),
    [
        ("ext4 -o nobarrier", "files", "is not what was promised|is missing"),
        (STALE, "files", "holds bytes of another file"),
        ("ext2", "files", "errors after recovery|is not what was promised|is missing"),
        ("ext4 -o nobarrier", "sequences", "is not what was promised|is missing"),
        ("btrfs -o nobarrier", "files", "does not mount|errors after recovery"),
    ],
)
def test_a_script_shows_the_fault_and_passes_without_it(
    tmp_path: Path, profile: str, workload: str, words: str
) -> None:
    out = crash(tmp_path, "--on", profile, "--workload", workload, "-o", "run")
    number = out.rpartition("--state ")[2].split()[0]
    show = ("run", "--state", number, "--minimise")
    test = () if profile.startswith("btrfs") else ("--xfstests", "999")
    shown = crash(tmp_path, *show, "--script", "case.sh", *test)
    check_syntax(tmp_path / "case.sh", "sh")
    run = ["env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "sh", "case.sh"]
    broken = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert broken.returncode == 1, broken.stdout + broken.stderr
    assert re.search(rf"^BROKEN: .*({words})", broken.stdout, re.MULTILINE), broken.stdout
    control = subprocess.run(
        [*run, "--control"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    # Without a journal, and with stale bytes, even a state that lost nothing may be at fault.
    is_unsafe_anyway = "It is broken even if no pending block is lost" in shown
    assert is_unsafe_anyway == (profile == STALE) or profile == "ext2"
    assert control.returncode == int(is_unsafe_anyway), control.stdout + control.stderr
    assert ("No write is lost" in (tmp_path / "case.sh").read_text()) == is_unsafe_anyway
    assert left_behind(tmp_path) == []
    if workload == "sequences":
        check_kept(tmp_path, show)
    if test:
        check_test(tmp_path / "999", profile)


def check_kept(folder: Path, show: tuple[str, ...]) -> None:
    """Check that scripts replace no file, and are not written through a link."""
    (folder / "link").symlink_to("target")
    old = (folder / "case.sh").read_text()
    for option, out in (("--script", "case.sh"), ("--script", "link"), ("--xfstests", "case.sh")):
        refused = subprocess.run(
            [*PROGRAM, "crash", *show, "--wait", option, out],
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
        )
        assert refused.returncode == 2, refused.stdout + refused.stderr
        assert out in refused.stderr
    assert (folder / "case.sh").read_text() == old
    assert not (folder / "target").exists()


def check_test(test: Path, profile: str) -> None:
    """Check a test for xfstests, without xfstests: its syntax, and the functions that it calls."""
    check_syntax(test, "bash")
    known = FUNCTIONS.read_text().split("\n")
    text = "\n".join(line.partition("#")[0] for line in test.read_text().splitlines())
    called = set(re.findall(r"(?<![\w$/{.-])_[a-z][a-z_]+\b", text)) - {"_cleanup"}
    assert {"_scratch_mkfs", "_log_writes_replay_log", "_check_scratch_fs"} <= called
    assert called <= set(known), called - set(known)
    assert test.read_text().startswith("#! /bin/bash\n# SPDX-License-Identifier: GPL-2.0\n")
    if " -o " in profile:
        assert profile.partition(" -o ")[2] in test.read_text()
    assert test.with_name("999.out").read_text() == "QA output created by 999\nSilence is golden\n"
