"""`fscost crash RUN`: disks that this machine did not record are for guests, unless the user says
otherwise."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fscost.cli import crashing, examine
from fscost.cli.crash import Asked
from fscost.cli.examiners import Examined
from fscost.cli.output.emit import Outputs
from fscost.crash import journal
from fscost.errors import InputError

ASKED = journal.Asked(
    "files", "reorder-4k", 40, 24, 1, 0, lose_disks=False, lab="native", kernel="6.18"
)


def earlier(*, is_made_here: bool) -> Any:
    """Return a run of an earlier command."""
    profiles = [Examined("ext4", "ext4")]
    return SimpleNamespace(folder=Path("run"), profiles=profiles, is_made_here=is_made_here)


@pytest.mark.parametrize(
    ("asked", "is_made_here", "lab"),
    [
        (Asked(), True, "native"),
        (Asked(), False, "vm"),
        (Asked(trust=True), True, "vm"),
        (Asked(trust=True), False, "vm"),
        (Asked(lab="native"), True, "native"),
        (Asked(lab="native", trust=True), False, "native"),
        (Asked(lab="vm"), True, "vm"),
        (Asked(lab="vm"), False, "vm"),
    ],
)
def test_guests_examine_what_was_not_made_here(
    asked: Asked, is_made_here: bool, lab: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert crashing._lab_of(asked, earlier(is_made_here=is_made_here), []) == lab
    said = capsys.readouterr().err
    # The lab that was not asked for, and the way to the other, in one line.
    is_said = asked == Asked() and not is_made_here
    assert (len(said.splitlines()), "--lab native --trust" in said) == (is_said, is_said)


def test_the_native_lab_alone_is_not_enough() -> None:
    with pytest.raises(InputError, match="run: no note says") as error:
        crashing._lab_of(Asked(lab="native"), earlier(is_made_here=False), [])
    assert "add --trust" in str(error.value.remedy)


def test_an_examination_that_a_stranger_began_is_not_resumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its journal says that this kernel examines its states."""
    kernel = "6.18"
    journal.Journal.begin(tmp_path, ASKED)
    monkeypatch.setattr(crashing.platform, "release", lambda: kernel)
    trusted, examined = [], []

    def made(folder: Path, *, trust: bool) -> Any:
        trusted.append(trust)
        found = earlier(is_made_here=False)
        found.examine = lambda *_: examined.append(folder)
        return found

    monkeypatch.setattr(crashing, "Earlier", made)
    outputs = Outputs(None)
    with pytest.raises(InputError, match="no note says") as error:
        crashing._resume(tmp_path, outputs, trust=False)
    assert "`fscost crash RUN` examines it in guests" in str(error.value.remedy)
    assert not examined
    crashing._resume(tmp_path, outputs, trust=True)
    assert (trusted, len(examined)) == ([False, True], 1)


@pytest.mark.parametrize(
    ("asked", "is_minimised"),
    [
        (Asked(words=["run"]), True),
        (Asked(words=["run"], trust=True), False),
        (Asked(words=["run"], trust=True, minimise=True), True),
        (Asked(words=["run"], minimise=False), False),
        (Asked(), True),
    ],
)
def test_operations_of_a_strangers_run_are_not_run_again(asked: Asked, is_minimised: bool) -> None:
    states = crashing._states(asked, "files", asked.check(), "native", "6.18")
    assert states.minimise == is_minimised


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        (Asked(words=["run"], workload="sqlite"), "RUN and --workload cannot be combined"),
        (Asked(words=["run"], state="1", device="in-order"), "--state and --device cannot be"),
        (Asked(words=["run"], state="1", again=5), "--state and --again cannot be combined"),
        (Asked(words=["run"], state="1", lose_disks=True), "--state and --lose-disks cannot be"),
        (Asked(trust=True), "--trust needs a RUN"),
    ],
)
def test_what_was_decided_earlier_is_refused(asked: Asked, says: str) -> None:
    with pytest.raises(InputError, match=says):
        asked.check()


def test_a_refusal_is_an_option_to_a_resumption() -> None:
    with pytest.raises(InputError, match="--resume and --minimise cannot be combined"):
        Asked(resume=Path("run"), minimise=False).check_resumed()


def test_the_next_command_asks_the_same_kernel() -> None:
    run: Any = SimpleNamespace(folder=Path("run"))
    for kernel, flags in (("6.12", " --lab vm --kernel 6.12"), ("", " --lab vm")):
        assert examine._same_kernel(run, replace(ASKED, lab="vm", kernel=kernel)) == flags
