"""Runs on a real Ray cluster: its machines are network namespaces of this one."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any

import pytest

from fscost.results import load, stored

from .ray_nodes import PORT, Machine, machines

pytest.importorskip("ray", reason="Ray is missing: `pip install -r requirements-ray.lock`")
pytestmark = [pytest.mark.root, pytest.mark.slow, pytest.mark.long]

FSCOST = [sys.executable, "-c", "from fscost.cli import main; main()"]
FAKE = ("--lab", "fake:delay_s=0.05,lock=ray", "--on", "ext4 -b {1024,2048,4096}", "--on", "xfs")
GUESTS = ("--lab", "vm", "--on", "ext2", "--on", "ext4 -O {,^}has_journal", "--size", "512M")
SWEEP = "ext4 -b {1024,4096} -I {128,256} -O {,^}has_journal -o {relatime,noatime}"
WORK = ("--", "head -c 300000 /dev/zero > file; sync file; mv file other")


@pytest.fixture
def cluster() -> Iterator[list[Machine]]:
    with machines(3, cpus=2) as found:
        yield found


def compare(*options: str | Path, on: Sequence[Machine] = ()) -> list[str | Path]:
    words = [*FSCOST, "compare", "--brief", "--max-minutes", "60", *options[:]]
    if not on:
        return words
    at = words.index("--") if "--" in words else len(words)
    words[at:at] = ["--on-cluster", f"{on[0].ip}:{PORT}"]
    return on[0].command(*words)


def begun(command: Sequence[str | Path]) -> "subprocess.Popen[str]":
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def until(words: str, lines: IO[str] | None) -> str:
    """Read lines until one contains the words."""
    assert lines is not None
    read = []
    for line in lines:
        read.append(line)
        if words in line:
            return line
    raise AssertionError("".join(read))


def without_a_machine(cluster: Sequence[Machine], command: Sequence[str | Path], when: str) -> str:
    """Run a command whose run loses the last machine when its progress says `when`. Return what it
    said."""
    said = []
    with subprocess.Popen(command, stdout=-1, stderr=-2, text=True) as run:
        assert run.stdout is not None
        for line in run.stdout:
            said.append(line)
            if when in line:
                cluster[-1].kill()
    assert run.returncode == 0, "".join(said)
    return "".join(said)


def written(folder: Path) -> list[tuple[Any, ...]]:
    """Everything but times, by cell."""
    return sorted(
        (row["cell"], row["phase"], row["disk"], row["metric"], row["value"])
        for row in load(folder).samples.to_pylist()
        if row["metric"].startswith("device_write") or row["metric"].startswith("program_")
    )


@pytest.mark.guest
def test_guests_write_the_same_bytes_on_a_cluster_that_loses_a_machine(
    cluster: list[Machine], tmp_path: Path
) -> None:
    few = ("-r", "4", "--keep", "all", "--out")
    subprocess.run(compare(*GUESTS, *few, tmp_path / "local", *WORK), check=True)
    run = begun(compare(*GUESTS, *few, tmp_path / "run", *WORK, on=cluster))
    until("[3 of 12]", run.stderr)
    cluster[2].kill()
    until(f"machine {cluster[2].name} is out of the run", run.stderr)
    run.communicate()
    assert run.returncode == 0
    assert written(tmp_path / "run") == written(tmp_path / "local")
    manifest = load(tmp_path / "run").manifest
    assert len(manifest.done) == 12
    assert {cell.machine for cell in manifest.cells} >= {each.name for each in cluster[:2]}
    second = [cell.facts["second_run"] for cell in manifest.cells if "second_run" in cell.facts]
    assert [fact["differ"] for fact in second] == [[], [], []]
    assert manifest.environment["machines"].keys() == {each.name for each in cluster}
    recordings = sorted((tmp_path / "run").rglob("*.fscost"))
    assert len(recordings) == 12
    for each in recordings[::5]:
        verify = [*FSCOST, "recording", "verify", each]
        subprocess.run(verify, check=True, stdout=subprocess.DEVNULL)


@pytest.mark.guest
@pytest.mark.timeout(3600)
def test_a_sweep_of_64_guests_is_the_local_one_without_one_of_three_machines(
    cluster: list[Machine], tmp_path: Path
) -> None:
    sweep = ("--lab", "vm", "--on", SWEEP, "--size", "512M", "-r", "4", "--out")
    subprocess.run(compare(*sweep, tmp_path / "local", *WORK), check=True)
    command = compare(*sweep, tmp_path / "run", *WORK, on=cluster)
    said = without_a_machine(cluster, command, "[24 of 64]")
    assert f"machine {cluster[2].name} is out of the run" in said
    assert written(tmp_path / "run") == written(tmp_path / "local")
    done = load(tmp_path / "run").manifest.done
    assert len(done) == 64
    assert len({cell.profile for cell in done}) == 16
    assert {cell.machine for cell in done} == {each.name for each in cluster}
    second = [cell.facts["second_run"] for cell in done if "second_run" in cell.facts]
    assert [fact["differ"] for fact in second] == [[], [], []]


def test_a_run_is_interrupted_and_resumed_and_leaves_nothing(
    cluster: list[Machine], tmp_path: Path
) -> None:
    few = (*FAKE, "-r", "8", "--out", tmp_path / "run")
    run = begun(compare(*few, on=cluster))
    until("[9 of 32]", run.stderr)
    os.kill(run.pid, signal.SIGINT)
    _, said = run.communicate(timeout=60)
    assert run.returncode == 130, said
    assert "resume with: fscost compare --resume" in said
    assert not list(Path("/tmp").glob("fscost-worker-*"))
    finished = {cell.cell for cell in load(tmp_path / "run").manifest.done}
    assert 9 <= len(finished) < 32
    again = compare("--resume", tmp_path / "run", on=cluster)
    ended = subprocess.run(again, check=True, capture_output=True, text=True)
    assert f"{len(finished)} are finished already" in ended.stderr
    subprocess.run(compare(*FAKE, "-r", "8", "--out", tmp_path / "local"), check=True)
    assert written(tmp_path / "run") == written(tmp_path / "local")
    assert not list(Path("/tmp").glob("fscost-worker-*"))


def test_native_cells_of_a_repetition_run_on_one_machine(
    cluster: list[Machine], tmp_path: Path
) -> None:
    few = ("--lab", "native", "--on", "ext4", "--on", "ext2", "-r", "3", "--out", tmp_path / "run")
    subprocess.run(compare(*few, *WORK, on=cluster), check=True)
    cells = load(tmp_path / "run").manifest.done
    machine_of = {(cell.repetition, cell.machine) for cell in cells}
    assert len(cells) == 6
    assert sorted(number for number, _ in machine_of) == [0, 1, 2]
    assert len({machine for _, machine in machine_of}) > 1
    doctor = [*FSCOST, "doctor", "--json", "--on-cluster", f"{cluster[0].ip}:{PORT}"]
    answer = subprocess.run(cluster[0].command(*doctor), check=True, capture_output=True)
    labs = json.loads(answer.stdout)["labs"]
    assert [(lab["machine"], lab["lab"]) for lab in labs] == [
        (machine.name, lab) for machine in cluster for lab in ("native", "vm")
    ]
    assert all(lab["can_run"] for lab in labs if lab["lab"] == "native")


def test_recordings_stay_on_their_machine_until_they_are_fetched(
    cluster: list[Machine], tmp_path: Path
) -> None:
    """Each machine has a /run of its own, and so a store of its own."""
    store = ("--keep", "all", "--recordings-to", "file:///run/recordings")
    few = (*FAKE, "-r", "2", *store, "--out", tmp_path / "run")
    subprocess.run(compare(*few, on=cluster), check=True)
    cells = load(tmp_path / "run").manifest.done
    assert len({cell.machine for cell in cells}) > 1
    assert not list((tmp_path / "run").rglob("*.fscost"))
    [url] = {place.url for cell in cells if (place := stored(cell))}
    fetch = [*FSCOST, "recording", "fetch", tmp_path / "run", "--from", url]
    refused = subprocess.run(cluster[0].command(*fetch), capture_output=True, text=True)
    assert refused.returncode == 2
    assert "or let the cluster's read it: --on-cluster" in refused.stderr
    fetch += ["--on-cluster", f"{cluster[0].ip}:{PORT}"]
    subprocess.run(cluster[0].command(*fetch), check=True, stdout=subprocess.DEVNULL)
    for cell in cells:
        assert (tmp_path / "run" / cell.recording).read_bytes() == b"fake"
    lost = next(cell for cell in cells if cell.machine != cluster[0].name)
    (tmp_path / "run" / lost.recording).unlink()
    next(each for each in cluster if each.name == lost.machine).kill()
    ended = subprocess.run(cluster[0].command(*fetch), capture_output=True, text=True)
    assert ended.returncode == 2, ended.stderr
    assert f"machine {lost.machine}" in ended.stderr.replace("'", "")
    assert "Traceback" not in ended.stderr
    assert not (tmp_path / "run" / lost.recording).exists()


def test_a_cluster_that_cannot_be_used_is_one_error(cluster: list[Machine], tmp_path: Path) -> None:
    """A closed port, another server at the port, and a machine without a part of Ray."""
    nowhere = [
        *FSCOST,
        "compare",
        *FAKE,
        "--out",
        tmp_path / "run",
        "--on-cluster",
        f"127.0.0.1:{PORT}",
    ]
    refused = subprocess.run(nowhere, capture_output=True, text=True)
    assert refused.returncode == 2
    assert "Connection refused" in refused.stderr
    listens = [sys.executable, "-m", "http.server", "--bind", "127.0.0.1", str(PORT)]
    with subprocess.Popen(listens, stdout=-3, stderr=-3, cwd=tmp_path) as other:
        try:
            answered = subprocess.run(nowhere, capture_output=True, text=True, timeout=90)
        finally:
            other.kill()
    assert answered.returncode == 2
    assert "no Ray cluster answered within" in answered.stderr
    assert not (tmp_path / "run").exists()
