"""The recordings of a run whose states `fscost crash` examines."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fscost.cli import examine
from fscost.crash import explore
from fscost.errors import HostError


def cell(folder: Path, profile: str, repetition: int, *, is_recorded: bool) -> SimpleNamespace:
    """Return a cell of a run in a folder."""
    own = Path("cells", f"{profile}.{repetition}")
    (folder / own).mkdir(parents=True)
    (folder / own / "output.log").write_text(f"said {repetition}")
    recording = own / "recording.fscost"
    if is_recorded:
        (folder / recording).write_bytes(b"")
    return SimpleNamespace(
        profile=profile, output=str(own / "output.log"), recording=str(recording)
    )


def run(folder: Path, *cells: SimpleNamespace) -> Any:
    """Return the results of these cells."""
    profiles = [{"name": name, "type": name} for name in ("ext4", "xfs")]
    return SimpleNamespace(
        folder=folder, manifest=SimpleNamespace(profiles=profiles, done=list(cells))
    )


def test_one_repetition_of_each_profile_is_examined(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`--keep one` keeps the recording of one repetition, `--keep all` those of all."""
    monkeypatch.setattr(explore, "source", lambda path, *others: (path.parent.name, others[-1]))
    results = run(
        tmp_path,
        cell(tmp_path, "ext4", 0, is_recorded=False),
        cell(tmp_path, "xfs", 0, is_recorded=True),
        cell(tmp_path, "ext4", 1, is_recorded=True),
        cell(tmp_path, "ext4", 2, is_recorded=True),
        cell(tmp_path, "xfs", 1, is_recorded=False),
    )
    found = [(about.name, source) for about, source in examine.sources(results, "command")]
    assert found == [("ext4", ("ext4.1", "said 1")), ("xfs", ("xfs.0", "said 0"))]


def test_a_profile_without_a_recording_is_named(tmp_path: Path) -> None:
    results = run(tmp_path, cell(tmp_path, "xfs", 0, is_recorded=False))
    with pytest.raises(HostError, match="xfs has no recording") as error:
        list(examine.sources(results, "command"))
    assert "--keep none" in str(error.value.remedy)
