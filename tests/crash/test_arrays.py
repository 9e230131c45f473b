"""An array is assembled as at boot, then by force, and never outlives its state."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from fscost.crash import arrays

MEMBERS = (Path("/dev/fscost/m0"), Path("/dev/fscost/m1"))


@dataclass
class Kernel:
    """A kernel that starts an array with some flags only."""

    state: Path
    starts: Sequence[str]
    stops: bool = True
    calls: list[Sequence[str]] = field(default_factory=list)

    def run(self, words: Sequence[str]) -> int:
        self.calls.append(words)
        if "--stop" in words:
            self.state.write_text("clear\n" if self.stops else "inactive\n")
            return 0
        # A refused array stays there, without running.
        self.state.write_text("inactive\n")
        return 0 if set(self.starts) <= set(words) else 1

    def place(self) -> int:
        with arrays.assembled(MEMBERS, (arrays.PLAIN, arrays.FORCED), self.run) as place:
            return place


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "array_state"
    monkeypatch.setattr(arrays, "_STATE", path)
    return path


@pytest.mark.parametrize(
    ("starts", "place"), [(["--run"], 0), (["--run", "--force"], 1), (["--other"], -1)]
)
def test_flags_are_tried_in_turn(state: Path, starts: Sequence[str], place: int) -> None:
    kernel = Kernel(state, starts)
    assert kernel.place() == place
    tried = [words for words in kernel.calls if "--assemble" in words]
    assert len(tried) == (place + 1 or 2)
    assert all(words[-3:] == ["/dev/md0", *map(str, MEMBERS)] for words in tried)
    # Between two attempts, and at the end.
    assert state.read_text() == "clear\n"


def test_an_array_that_does_not_stop_is_an_error(state: Path) -> None:
    with pytest.raises(OSError, match="/dev/md0 does not stop"):
        Kernel(state, ["--run"], stops=False).place()
