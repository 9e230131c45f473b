"""Completion as bash requests it, and scripts that the shells can parse."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

BIN = Path(sys.executable).parent
BASH = """
eval "$(fscost completion bash)"
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
_fscost_completion fscost
printf '%s\\n' "${COMPREPLY[@]}"
"""


def asked(*words: str) -> list[str]:
    environment = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", "-c", BASH, "bash", *words], env=environment, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.split()


@pytest.mark.skipif(
    not (BIN / "fscost").exists(), reason="no program fscost is installed beside this Python"
)
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("fscost", "comp"), ["compare", "completion"]),
        (("fscost", "compare", "--wid"), ["--wide"]),
        (("fscost", "compare", "--workload", "sql"), ["sqlite"]),
        (("fscost", "compare", "--metric", "device_fl"), ["device_flushes"]),
        (("fscost", "compare", "--on", "nilfs2-cleaner-"), ["nilfs2-cleaner-always"]),
    ],
)
def test_bash_completes(words: tuple[str, ...], expected: list[str]) -> None:
    assert asked(*words) == expected


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_has_a_script(shell: str) -> None:
    program = "import sys; from fscost.cli import main; sys.argv[0] = 'fscost'; main()"
    text = subprocess.run(
        [sys.executable, "-c", program, "completion", shell],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    assert f"_FSCOST_COMPLETE=complete_{shell}" in text
    if shutil.which(shell):
        subprocess.run([shell, "-n"], input=text, text=True, check=True)
