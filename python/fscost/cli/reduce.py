"""The fewest operations that still break a promise: each trial is a short run on disks of its
own. The run of the fewest stays in the folder of the run that found the fault."""

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from fscost import run
from fscost.cli.examiners import Examined, Examiners
from fscost.cli.lines import say
from fscost.cli.promising import promising
from fscost.request.model import Place
from fscost.request.prepare import prepared
from fscost.results import RunResults

if TYPE_CHECKING:
    from fscost.crash.explore import Limits, Outcome, Source
    from fscost.crash.reduce import Fault, Work
    from fscost.crash.states import Reduced

    Sources = Callable[[RunResults, str], Iterator[tuple[Examined, Source]]]

FOLDER = "minimised"
"""Holds a run for each profile with faults."""
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
            shutil.rmtree(self.folder, ignore_errors=True)
            trial.rename(self.folder)
            self.state = number
            return True
        finally:
            shutil.rmtree(trial, ignore_errors=True)

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
    folder = results.folder / FOLDER / str(place)
    for old in (folder, folder.with_name(_TRIAL)):
        shutil.rmtree(old, ignore_errors=True)
    folder.parent.mkdir(exist_ok=True)
    trials = _Trials(profile, reduce.fault(outcome), limits, examiners, sources, folder)
    less = reduce.reduced(before, outcome, trials.breaks)
    return Reduced(
        number,
        less.workload if less else "",
        tuple(less.operations) if less else (),
        less.rounds if less else 0,
        before.count,
        len(trials.tried),
        f"{FOLDER}/{place}" if less else "",
        trials.state if less else 0,
    )
