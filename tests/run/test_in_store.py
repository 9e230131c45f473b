"""Recordings in a store that the machines of a cluster share: who can read them there, and how they
come back."""

import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.machines import Machines

from fscost.cli.recording import fetch
from fscost.errors import FscostError, HostError, InputError
from fscost.files import stores
from fscost.results import kept_recording, load, stored
from fscost.run import RunOutcome, RunSpec, StoppingRule
from fscost.run.executor import ray
from fscost.run.executor.remote import LostError
from fscost.view.kept import kept

Make = Callable[..., RunSpec]
Go = Callable[..., RunOutcome]
Run = Callable[..., RunOutcome]


def test_recordings_go_to_a_store_and_come_back(
    spec: Make, run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shared = f"file://{tmp_path}/shared"
    one = spec(profiles=spec().profiles[:1], keep="all", store=shared)
    outcome = run(one, Machines())
    cells = outcome.results.manifest.cells
    assert [kept_recording(one.folder, cell) for cell in cells] == [None] * 3
    assert {place.name for cell in cells if (place := stored(cell))} == {
        f"{cell.cell}.fscost" for cell in cells
    }
    url = next(place.url for cell in cells if (place := stored(cell)))
    assert url.startswith(f"{shared}/")
    written = [tmp_path / "shared", *(tmp_path / "shared").rglob("*")]
    assert {(path.is_dir(), stat.S_IMODE(path.stat().st_mode)) for path in written} == {
        (True, 0o700),
        (False, 0o600),
    }
    assert kept(outcome.results).missing == {
        "ext4": f"its recording is in a store: `fscost recording fetch RUN --from {url}`"
    }
    fetch(one.folder, url, profile=["ext4"])
    assert capsys.readouterr().out.count(": 4 B\n") == 3
    for cell in load(one.folder).manifest.cells:
        path = kept_recording(one.folder, cell)
        assert path is not None
        assert path.read_bytes() == b"fake"
    fetch(one.folder, url)  # again: nothing to do
    assert capsys.readouterr().out == ""


def test_two_runs_never_share_a_folder_of_a_store(spec: Make, run: Run, tmp_path: Path) -> None:
    """Long names differ at their end, and both runs begin in the same second."""
    urls = set()
    for name in ("first", "second"):
        folder = tmp_path / f"2026-11-29-1120-a-workload-of-a-long-name-{name}"
        once = {"profiles": spec().profiles[:1], "stopping": StoppingRule(1, 1)}
        one = spec(folder=folder, keep="one", store=f"file://{tmp_path}/shared", **once)
        [cell] = run(one, Machines()).results.manifest.cells
        place = stored(cell)
        assert place is not None
        assert place.url.endswith(folder.name)
        urls.add(place.url)
    assert len(urls) == 2


def test_a_run_whose_recordings_are_in_a_store_is_not_resumed_without(
    spec: Make, go: Go, run: Run, tmp_path: Path
) -> None:
    shared = f"file://{tmp_path}/shared"
    assert run(spec(keep="all", store=shared), Machines(interrupts_at=8)).interrupted
    before = (spec().folder / "manifest.json").read_bytes()
    with pytest.raises(InputError, match="are in a store, and none is named now") as caught:
        run(spec(keep="all", resume=True), Machines())
    assert caught.value.remedy == f"add --recordings-to {shared}"
    assert (spec().folder / "manifest.json").read_bytes() == before
    outcome = run(spec(keep="all", resume=True, store=shared), Machines())
    assert all(map(stored, outcome.results.manifest.cells))
    assert len(outcome.results.manifest.cells) == 9


def test_files_of_a_machine_that_was_lost_since_are_lost() -> None:
    with pytest.raises(LostError, match="before its files were read"):
        ray.RayCluster("auto", print).read("one", "ext4.0", "recording.fscost", 0)


def test_a_recording_is_read_on_the_machine_that_made_it(
    spec: Make, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In pieces: a Ray cluster takes the place of this machine's store."""
    one = spec(profiles=spec().profiles[:1], keep="all", store=f"file://{tmp_path}/shared")
    cells = run(one, Machines()).results.manifest.cells
    asked: list[tuple[str, int]] = []

    class Cluster:
        def __init__(self, address: str, _: Any) -> None:
            assert address == "head:6379"

        def read_stored(self, machine: str, url: str, name: str, offset: int) -> bytes:
            asked.append((machine, offset))
            return stores.read(url, name, offset)[:3]

        def close(self) -> None:
            asked.append(("closed", 0))

    monkeypatch.setattr(ray, "RayCluster", Cluster)
    [url] = {place.url for cell in cells if (place := stored(cell))}
    fetch(one.folder, url, "head:6379")
    assert asked == [
        *((cell.machine, offset) for cell in cells for offset in (0, 3, 4)),
        ("closed", 0),
    ]
    for cell in cells:
        path = kept_recording(one.folder, cell)
        assert path is not None
        assert path.read_bytes() == b"fake"


@pytest.mark.parametrize(
    ("harm", "what"),
    [
        (lambda file: file.write_bytes(b"fakes"), "is not the file that the run wrote"),
        (lambda file: file.write_bytes(b"face"), "is not the file that the run wrote"),
        (lambda file: file.unlink(), "FileNotFoundError"),
    ],
)
def test_a_recording_that_changed_in_its_store_is_refused(
    spec: Make, run: Run, tmp_path: Path, harm: Callable[[Path], None], what: str
) -> None:
    once = {"profiles": spec().profiles[:1], "stopping": StoppingRule(1, 1)}
    one = spec(keep="one", store=f"file://{tmp_path}/shared", **once)
    cells = run(one, Machines()).results.manifest.cells
    [place] = [place for cell in cells if (place := stored(cell))]
    harm(Path(place.url.removeprefix("file://")) / place.name)
    with pytest.raises(FscostError, match=what):
        fetch(one.folder, place.url)
    with pytest.raises(InputError, match="leads out of"):
        stores.fetch(place.url, f"../{place.name}", tmp_path / "out", 4, place.sha256)
    assert not (tmp_path / "out").exists()
    assert not (one.folder / cells[0].recording).exists()


@pytest.mark.parametrize(
    ("url", "because"),
    [
        ("/mnt/shared", "is no URL"),
        ("file:///proc/shared", "file:///proc/shared/"),
        ("nonsense://a/b", "nonsense"),
        ("ftp://me:secret@there/a", "holds a password"),
        ("ftp://me:1/secret@there/a", "holds a password"),
        ("simplecache::ftp://me:secret@there/a", "holds a password"),
        ("https://there/a?signature=secret", "or a query"),
    ],
)
def test_a_store_that_takes_nothing_runs_no_cell(
    spec: Make, run: Run, url: str, because: str
) -> None:
    machines = Machines(("one",))
    with pytest.raises(HostError, match="no machine of the cluster"):
        run(spec(keep="one", store=url), machines)
    [line] = machines.said
    assert because in line
    assert "secret" not in line


@pytest.mark.parametrize(
    "url",
    [
        "sftp://me@there/runs",
        "s3://bucket/runs",
        "abfs://container@account.dfs.core.windows.net/runs",
        "simplecache::file:///mnt/runs",
    ],
)
def test_a_name_of_a_user_is_no_secret(url: str) -> None:
    assert not stores._has_secret(url)
