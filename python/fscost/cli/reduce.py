"""The fewest operations that still break a promise: each trial is a short run on disks of its
own. The run of the fewest stays in the folder of the run that found the fault."""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from fscost import files, run
from fscost.cli.examiners import Examined, Examiners
from fscost.cli.lines import say
from fscost.cli.promising import promising
from fscost.errors import InputError
from fscost.request.model import Place
from fscost.request.prepare import prepared
from fscost.results import MINIMISED, RunResults

if TYPE_CHECKING:
    from fscost.crash.explore import Limits, Outcome, Source
    from fscost.crash.reduce import Fault, Work
    from fscost.crash.states import Reduced

    Sources = Callable[[RunResults, str], Iterator[tuple[Examined, Source]]]

_TRIAL = "trial"


@dataclass
class _Trials:
    """Runs parts of a workload, and keeps the run of the last part that had the fault."""

    profile: Examined
    wanted: "Fault"
    limits: "Limits"
    examiners: Examiners
    sources: "Sources"
    folder: Path
    state: int = 0
    tried: "dict[tuple[str, int], bool]" = field(default_factory=dict)

    def breaks(self, work: "Work") -> bool:
        """Say whether a part has the fault."""
        key = (work.workload, work.rounds)
        if key not in self.tried:
            self.tried[key] = self._is_broken(work)
        return self.tried[key]

    def _is_broken(self, work: "Work") -> bool:
        trial = self.folder.with_name(_TRIAL)
        asked = promising([self.profile.name], work.workload, work.rounds, self.limits.seed)
        found = prepared(asked, Place("native", trial), lambda _: None, [])
        try:
            outcome = run.execute(found.spec, found.executor, run.Listener(), lock=None)
            if outcome.interrupted:
                raise KeyboardInterrupt
            number = self._examined(outcome.results, work.workload)
            if number is None:
                return False
            _remove(self.folder)
            trial.rename(self.folder)
            self.state = number
            return True
        finally:
            _remove(trial)

    def _examined(self, results: RunResults, workload: str) -> int | None:
        """Examine a trial. Return the number of its first state with the fault, if it has one, and
        keep its findings."""
        from fscost.crash import states
        from fscost.crash.explore import explore
        from fscost.crash.journal import answers
        from fscost.crash.reduce import found_in

        for about, source in self.sources(results, workload):
            answered = answers(self.examiners(about), about.name, None)
            explored = explore(source, self.limits, answered)
            number = found_in(explored, self.wanted)
            if number is not None:
                kept = states.findings(workload, self.limits.device, {about.name: explored})
                states.save(results.folder, kept)
                return number
        return None


def _remove(folder: Path) -> None:
    """Remove an earlier run in MINIMISED, but nothing beyond a link: the run that holds it may be
    an unpacked archive."""
    files.remove_folders(folder.parent.parent, MINIMISED, lambda name: name == folder.name)
    if os.path.lexists(folder):
        raise InputError(f"{folder} is no folder that can be removed", "remove it yourself")


def reduced(
    results: RunResults,
    profile: Examined,
    found: "tuple[Source, int, Outcome]",
    limits: "Limits",
    examiners: Examiners,
    sources: "Sources",
) -> "Reduced | None":
    """Reduce the work of a state, given by its recording, its number and its outcome. Return None
    if its operations are unknown."""
    from fscost.crash import reduce
    from fscost.crash.states import Reduced

    source, number, outcome = found
    before = reduce.whole(source, outcome)
    if before is None:
        return None
    say(f"{profile.name}: looking for the fewest operations with the fault of state {number}")
    place = 1 + list(results.manifest.profile_names).index(profile.name)
    folder = results.folder / MINIMISED / str(place)
    for old in (folder, folder.with_name(_TRIAL)):
        _remove(old)
    files.make_folder(folder.parent)
    trials = _Trials(profile, reduce.fault(outcome), limits, examiners, sources, folder)
    less = reduce.reduced(before, outcome, trials.breaks)
    return Reduced(
        number,
        less.workload if less else "",
        tuple(less.operations) if less else (),
        less.rounds if less else 0,
        before.count,
        len(trials.tried),
        f"{MINIMISED}/{place}" if less else "",
        trials.state if less else 0,
    )
