"""Hostile and mistaken inputs: each ends as expected, names a cause and a remedy, and leaves
nothing behind."""

import itertools
import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet
from tests.bad_inputs import plain_log
from tests.bad_inputs.cases import HERE, TRIAL, Case, left_out, load
from tests.variants import some

SHARE = 6
AT_ONCE = 3
"""Number of cases that run at once. It exceeds the processors, because some cases wait for
processes that were left running."""
PROGRAM = Path(sys.executable).with_name("fscost")
CASES = load()
ENDING_S = 60
"""Seconds that a process gets to end after the kernel killed it with its parent; a busy host takes
some seconds."""

_CRASH = re.compile(
    r"Traceback \(most recent call last\)|panicked at|^\S*Error: |Exception"
    r" ignored|RuntimeWarning|UserWarning",
    re.MULTILINE,
)
_PYTHON = re.compile(r"\(os\.|PosixPath|<class|NoneType|\('\w+',\)|Value error|Input should be")
_MESSAGE = re.compile(r"^fscost: (?P<cause>.+)\n  (?P<remedy>\S.*)$", re.MULTILINE)
_OWN_RUN = 'mount -t tmpfs tmpfs /run && mkdir /run/lock && exec "$@"'
"""Wrapper that gives a command a separate /run. The lock of runs is there, so this run does not
collide with others on the machine."""
_LONGEST = 20_000
"""Maximum length in characters of the answer to a bad input."""


@dataclass(frozen=True)
class Ended:
    """Outcome of a case. `code` is None if the case did not end."""

    code: int | None
    stdout: str
    stderr: str
    left: list[str]
    """Processes and files left behind, and the failure of `after`, if it failed."""


class Runner:
    """Runner of cases in separate folders, several at once."""

    def __init__(self, folder: Path, base: Path) -> None:
        self._folder = folder
        self._base = base
        self._servers = threading.local()
        self._started: list[subprocess.Popen[str]] = []

    def run(self, case: Case) -> Ended:
        place = self._folder / case.name
        for name in ("w", "tmp"):
            (place / name).mkdir(parents=True)
        recording = self._base / "run/cells/ext4.0/recording.fscost"
        env = {
            "F": str(PROGRAM),
            "B": str(self._base),
            "R": str(recording),
            "W": str(place / "w"),
            "TMPDIR": str(place / "tmp"),
            "COLUMNS": "120",
        }
        env["XDG_CACHE_HOME"] = str(self._folder / "cache")
        if case.prepare:
            subprocess.run(
                ["bash", "-ec", case.prepare],
                cwd=place / "w",
                env=os.environ | env,
                check=True,
                stdin=subprocess.DEVNULL,
            )
        code, left = self._ended(case, place, env)
        stdout, stderr = (
            (place / name).read_bytes().decode("utf-8", "replace") for name in ("stdout", "stderr")
        )
        left += [f"file {each.name}" for each in (place / "tmp").iterdir()]
        left += [f"file {each.name}" for each in place.rglob("PWNED")]
        if (
            case.after
            and subprocess.run(
                ["bash", "-c", case.after], cwd=place / "w", env=os.environ | env, check=False
            ).returncode
            != 0
        ):
            left.append(f"what `{case.after}` refuses")
        subprocess.run(["chattr", "-R", "-i", str(place)], stderr=subprocess.DEVNULL, check=False)
        shutil.rmtree(place, ignore_errors=True)
        return Ended(code, stdout, stderr, left)

    def close(self) -> None:
        for server in self._started:
            server.communicate(timeout=60)

    def _ended(self, case: Case, place: Path, env: dict[str, str]) -> tuple[int | None, list[str]]:
        """Return the exit status, and the processes left in the case's network namespace."""
        server = self._server()
        assert server.stdin is not None
        assert server.stdout is not None
        request = {
            "arguments": [_expanded(each, env) for each in case.arguments],
            "shell": case.shell,
            "cwd": str(place / "w"),
            "within": case.cwd or ".",
            "inside": case.inside,
            "env": env | {name: _expanded(value, env) for name, value in case.env.items()},
            "limit_s": case.limit_s,
            **{name: str(place / name) for name in ("stdout", "stderr")},
        }
        server.stdin.write(json.dumps(request) + "\n")
        server.stdin.flush()
        answer = json.loads(server.stdout.readline())
        end = time.monotonic() + ENDING_S
        while left := [
            each for each in _processes_in(answer["namespace"]) if each.name != str(server.pid)
        ]:
            if time.monotonic() > end:
                break
            time.sleep(0.05)
        return answer["status"], [_shown(each) for each in left]

    def _server(self) -> "subprocess.Popen[str]":
        """Return the thread's server. Each thread needs one, since a server has one child at a
        time."""
        if not hasattr(self._servers, "process"):
            self._servers.process = subprocess.Popen(
                [sys.executable, str(HERE / "server.py")],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                stderr=sys.__stderr__,
            )
            self._started.append(self._servers.process)
        process: subprocess.Popen[str] = self._servers.process
        return process


def _processes_in(namespace: str) -> list[Path]:
    found = []
    for each in Path("/proc").glob("[0-9]*"):
        try:
            if str((each / "ns/net").readlink()) == namespace and not _is_zombie(each):
                found.append(each)
        except OSError:
            continue
    return found


def _shown(process: Path) -> str:
    try:
        return f"process {(process / 'cmdline').read_bytes()[:80]!r}"
    except OSError:
        return f"process {process.name}, which ended too late"


def _is_zombie(process: Path) -> bool:
    return (process / "stat").read_text().rpartition(")")[2].split()[0] == "Z"


def _expanded(text: str, env: dict[str, str]) -> str:
    return re.sub(r"\$([BRW])\b", lambda found: env[found[1]], text)


@pytest.fixture(scope="session")
def finished_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a finished run `run` of two profiles, another, `other`, and
    `plain.fscost`, a recording with the same bytes everywhere."""
    folder = tmp_path_factory.mktemp("base", numbered=True)
    once = ["--max-repetitions", "1", "--size", "16M"]
    profiles = ["--on", "ext4", "--on", "ext4 -O ^has_journal"]
    script = "for i in $(seq 50); do head -c 9000 /dev/urandom > f$i; sync f$i; done; rm f1"
    for name, command in (("run", ["sh", "-c", script]), ("other", ["true"])):
        subprocess.run(
            [
                "unshare",
                "-n",
                "-m",
                "bash",
                "-c",
                _OWN_RUN,
                "bash",
                str(PROGRAM),
                "compare",
                *once,
                *profiles,
                "--out",
                str(folder / name),
                "--",
                *command,
            ],
            check=True,
            capture_output=True,
        )
    plain_log.write(folder / "log")
    importing = [PROGRAM, "recording", "import", folder / "log", folder / "plain.fscost"]
    subprocess.run(importing, check=True, capture_output=True)
    return folder


@pytest.fixture(scope="session")
def ends(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, finished_run: Path
) -> Iterator[dict[str, "Future[Ended]"]]:
    """Start all chosen cases, and return their pending results."""
    folder = tmp_path_factory.mktemp("cases")
    chosen = [
        item.callspec.params["case"]
        for item in request.session.items
        if getattr(item, "originalname", "") == test_bad_input.__name__
        and item.get_closest_marker("skip") is None
    ]  # type: ignore[attr-defined]
    runner = Runner(folder, finished_run)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        yield {case.name: pool.submit(runner.run, case) for case in chosen}
    runner.close()


def drawn() -> list[ParameterSet]:
    """Return the cases of a test run: one in `SHARE` of each file."""
    files = itertools.groupby(CASES, lambda case: case.file)
    return [
        each
        for file, found in files
        for cases in [list(found)]
        for each in some(cases, -(-len(cases) // SHARE), key=file)
    ]


@pytest.mark.root
@pytest.mark.parametrize("case", drawn(), ids=lambda case: case.name)
def test_bad_input(case: Case, ends: "dict[str, Future[Ended]]") -> None:
    ended = ends[case.name].result()
    both = ended.stdout + ended.stderr
    told = f"\n{case.arguments or case.shell}\nexit {ended.code}\n{both[-3000:]}"
    assert ended.code is not None, f"it hangs{told}"
    assert ended.code in case.exit, told
    assert not _CRASH.search(both), told
    assert not _PYTHON.search(ended.stderr), told
    assert not ended.left, f"{ended.left} left behind{told}"
    assert len(both) < _LONGEST, f"{len(both)} characters{told[:2000]}"
    if case.says:
        assert re.search(case.says, both), f"it does not say {case.says!r}{told}"
    if ended.code == 2 and case.remedy:
        assert _MESSAGE.search(ended.stderr), f"no cause with a remedy{told}"


def test_each_case_of_the_trial_is_run_or_left_out_for_a_reason() -> None:
    numbers = [case.trial for case in CASES if case.trial is not None]
    assert sorted([*numbers, *left_out()]) == list(range(TRIAL))
    assert all(left_out().values())


def test_names_are_unique() -> None:
    names = [case.name for case in CASES]
    assert sorted(set(names)) == sorted(names)
