"""The runs with the fewest operations are made and removed in the folder of the run, and nowhere
else."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fscost.cli import reduce
from fscost.cli.examiners import Examined
from fscost.crash import reduce as crash_reduce
from fscost.crash.reduce import Work
from fscost.errors import InputError


def reduced(run: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Reduce the work of a state of the run, without any trial."""
    work = Work("files", ("append",))
    monkeypatch.setattr(crash_reduce, "whole", lambda *_: work)
    monkeypatch.setattr(crash_reduce, "fault", lambda _: None)
    monkeypatch.setattr(crash_reduce, "reduced", lambda *_: None)
    results: Any = SimpleNamespace(
        folder=run, manifest=SimpleNamespace(profile_names=["btrfs", "ext4"])
    )
    nothing: Any = None
    found: Any = (nothing, 12, nothing)
    return reduce.reduced(results, Examined("ext4", "ext4"), found, nothing, nothing, nothing)


def test_earlier_runs_of_the_profile_and_of_a_trial_are_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "minimised"
    for name in ("1", "2", "trial", "mine"):
        (folder / name / "cells").mkdir(parents=True)
    reduced(tmp_path, monkeypatch)
    assert sorted(path.name for path in folder.iterdir()) == ["1", "mine"]


@pytest.mark.parametrize("link", ["minimised", "minimised/2", "minimised/trial"])
def test_nothing_is_removed_through_a_link(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, link: str
) -> None:
    precious = tmp_path / "precious"
    for name in ("2", "trial", "cells"):
        (precious / name).mkdir(parents=True)
    run = tmp_path / "run"
    (run / link).parent.mkdir(parents=True)
    (run / link).symlink_to(precious)
    with pytest.raises(InputError, match=r"run/minimised/(2|trial) is no folder"):
        reduced(run, monkeypatch)
    assert sorted(path.name for path in precious.iterdir()) == ["2", "cells", "trial"]
