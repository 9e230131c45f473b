"""The command line with the fake lab."""

import atexit
import gc
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from fscost.cli import main


@dataclass(frozen=True)
class Ended:
    """Outcome of a call of the program."""

    returncode: int
    stdout: str
    stderr: str


Fscost = Callable[..., Ended]
PROGRAM = (
    sys.executable,
    "-c",
    "import sys; sys.argv[0] = 'fscost'; from fscost.cli import main; main()",
)


@pytest.fixture(autouse=True)
def _in_a_roomy_host(roomy_host: None) -> None:
    pass


@pytest.fixture
def fscost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Fscost:
    """Call the program in a separate folder, without a terminal. It runs in this process, because
    starting Python for each call takes most of the time."""

    def run(*arguments: str, columns: int = 100, check: Sequence[int] = (0,)) -> Ended:
        monkeypatch.setenv("COLUMNS", str(columns))
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(sys, "argv", ["fscost", *arguments])
        capsys.readouterr()
        try:
            with pytest.raises(SystemExit) as ending:
                main()
        finally:
            # A command ends without garbage collection, `explain` runs without; this process goes
            # on.
            gc.enable()
            atexit.unregister(gc.freeze)
        said = capsys.readouterr()
        code = ending.value.code
        assert code in check, f"exit code {code}: {said.err}"
        return Ended(int(code or 0), said.out, said.err)

    return run


@pytest.fixture
def compare(fscost: Fscost) -> Fscost:
    """Run a comparison of a command; `lab` sets the behaviour of the fake lab."""

    def run(
        *arguments: str,
        lab: str = "fake",
        command: Sequence[str] = ("true",),
        columns: int = 100,
        check: Sequence[int] = (0,),
    ) -> Ended:
        return fscost(
            "compare", "--lab", lab, *arguments, "--", *command, columns=columns, check=check
        )

    return run


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., "subprocess.Popen[str]"]]:
    """Start the program in the background; it is ended after the test in any case."""
    started: list[subprocess.Popen[str]] = []

    def run(*arguments: str) -> "subprocess.Popen[str]":
        pipe = subprocess.PIPE
        started.append(
            subprocess.Popen(
                [*PROGRAM, *arguments], cwd=tmp_path, stdout=pipe, stderr=pipe, text=True
            )
        )
        return started[-1]

    yield run
    for process in started:
        process.kill()
        process.wait()
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                stream.close()
