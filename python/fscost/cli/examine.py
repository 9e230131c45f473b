"""Examination of the states of a run of `fscost crash`, and of one state."""

import os
import re
import shlex
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fscost import files
from fscost.cli.examiners import Examined, Examiners, examiners_of
from fscost.cli.lines import say
from fscost.cli.output.emit import Outputs
from fscost.cli.promising import BESIDE
from fscost.cli.reduce import reduced
from fscost.errors import HostError, InputError
from fscost.lab.base import Site
from fscost.results import RunResults
from fscost.run import made_here

if TYPE_CHECKING:
    from fscost.crash.again import Again
    from fscost.crash.explore import Control, Exploration, Limits, Outcome, Source, State
    from fscost.crash.journal import Asked as AskedStates
    from fscost.crash.journal import Journal
    from fscost.crash.lost import Lost
    from fscost.crash.programs import Answered
    from fscost.crash.states import Fewest, Reduced
    from fscost.results import CellRecord
    from fscost.view.grid import Grid


@dataclass
class _Found:
    """What was found, by profile. `seconds` and `seconds_control`: after second cuts."""

    explored: "dict[str, Exploration]" = field(default_factory=dict)
    controls: "dict[str, Control]" = field(default_factory=dict)
    seconds: "dict[str, Again]" = field(default_factory=dict)
    seconds_controls: "dict[str, Again]" = field(default_factory=dict)
    minimised: "dict[str, Fewest]" = field(default_factory=dict)
    reduced: "dict[str, Reduced]" = field(default_factory=dict)


@dataclass(frozen=True)
class _Shown:
    """A state that was just examined. `source`: its recording; `words`: the state in words."""

    profile: str
    number: "Number"
    words: str
    source: "Source"
    outcome: "Outcome"
    is_minimised: bool = False


_NUMBER = re.compile(r"([1-9]\d{0,8})(?:\.([1-9]\d{0,8}))?")
_SAY_EVERY_S = 5
_LARGEST_OUTPUT_BYTES = 32 << 20


@dataclass(frozen=True)
class Files:
    """New files about a state: its disk, a shell script, and a test for xfstests."""

    image: Path | None = None
    script: Path | None = None
    xfstests: Path | None = None


@dataclass(frozen=True)
class Number:
    """Number of a state, or of a second state after it."""

    first: int
    second: int | None = None

    @classmethod
    def parse(cls, text: str) -> "Number":
        """Read `12` or `12.3`."""
        found = _NUMBER.fullmatch(text)
        if found is None:
            raise InputError(f"--state {text!r} is no number of a state", "such as 12, or 12.3")
        return cls(int(found[1]), int(found[2]) if found[2] else None)

    def __str__(self) -> str:
        return str(self.first) if self.second is None else f"{self.first}.{self.second}"


class Earlier:
    """A run that was made earlier, by any command. Its folder must be the user's own: its states
    are mounted."""

    def __init__(self, folder: Path, *, trust: bool) -> None:
        from fscost.crash import states
        from fscost.results import load

        self._results = load(folder, trust=trust)
        is_examined = os.path.lexists(folder / states.FILE)
        self._findings = states.load(folder) if is_examined else states.unexamined()

    @property
    def profiles(self) -> list[Examined]:
        """The profiles whose states can be examined."""
        return [_examined(about) for about in self._results.manifest.profiles]

    @property
    def folder(self) -> Path:
        """The run's folder."""
        return self._results.folder

    @property
    def is_made_here(self) -> bool:
        """True if the native lab of this machine made all recordings that are examined."""
        return _is_made_here(self._results)

    @property
    def workload(self) -> str:
        """What made its promises."""
        return self._findings.workload

    def examine(self, journal: "Journal", examiners: Examiners, outputs: Outputs) -> None:
        """Examine its states again, or the rest of them."""
        examine(self._results, journal, examiners, outputs)

    def show(
        self,
        number: Number,
        profile: str | None,
        out: "Files",
        examiners: Examiners,
        *,
        is_minimised: bool,
        is_json: bool,
    ) -> None:
        """Examine one state again, show its blocks, and write its disks and scripts to new files.
        `is_minimised`: then of one that loses as few blocks as break the same promise."""
        from fscost.crash import states
        from fscost.crash.again import rebuilt
        from fscost.crash.explore import examined
        from fscost.crash.journal import answers
        from fscost.crash.minimise import minimised, writes
        from fscost.crash.states import chosen, chosen_again
        from fscost.crash.verdict import named

        found = sources(self._results, self._findings.workload)
        known = {each.name: (each, source) for each, source in found}
        name = profile or (next(iter(known)) if len(known) == 1 else None)
        if name not in known:
            wrong = f"profile {name!r} is not in this run" if name else "several profiles"
            raise InputError(wrong, f"name one with --profile: {', '.join(known)}")
        (about, source), device = known[name], self._findings.device
        answered = answers(examiners(about), name, None)
        if number.second is None:
            state = chosen(self._findings, name, number.first).state
            outcome = examined(source, device, state, answered)
            less = self._findings.minimised.get(name)
            less = less if less and less.number == number.first else None
            if is_minimised:
                found_less = minimised(source, device, outcome, answered)
                outcome = found_less.outcome
                less = states.fewest(number.first, found_less, writes(source, device, found_less))
            shown = _Shown(name, number, named(outcome.state), source, outcome, is_minimised)
            self._write(shown, out, answered)
            self._print(shown, out.image, less, is_json=is_json)
            return
        again = chosen_again(self._findings, name, number.first, number.second).numbers
        with tempfile.TemporaryDirectory(prefix="fscost-") as folder:
            recording = Path(folder) / "recovery"
            outcome = rebuilt(source, device, again, answered, recording)
            source = replace(source, recording=recording)
            shown = _Shown(name, number, again.words, source, outcome)
            self._print(shown, out.image, None, is_json=is_json)

    def _write(self, shown: "_Shown", out: "Files", answered: "Answered") -> None:
        """Write the scripts that show the fault."""
        from fscost.crash import script, xfstest
        from fscost.crash.case import case

        wanted = [(out.script, script.text), (out.xfstests, xfstest.text)]
        if not any(path for path, _ in wanted):
            return
        device = self._findings.device
        found = case(shown.source, shown.profile, device, shown.outcome, answered)
        for path, text in wanted:
            if path is not None:
                with files.creating(path) as file:
                    file.write(text(found).encode())
        if out.xfstests is not None:
            with files.creating(out.xfstests.with_name(f"{out.xfstests.name}.out")) as file:
                file.write(xfstest.output(out.xfstests.name).encode())

    def _print(
        self, shown: "_Shown", image: Path | None, less: "Fewest | None", *, is_json: bool
    ) -> None:
        """Show a state of the source's recording that was just examined."""
        from fscost.crash.pieces import pieces
        from fscost.report import document
        from fscost.report.terminal import print_parts
        from fscost.view.crash_state import minimised_values, state_view

        device, outcome, number = self._findings.device, shown.outcome, shown.number
        state, profile = outcome.state, shown.profile
        if image is not None:
            _export(shown.source, device, state, image)
        blocks = pieces(shown.source.recording, device, state)
        title = f"{profile}, state {number}: {shown.words}"
        view = state_view(title, outcome, blocks, less, is_minimised=shown.is_minimised)
        if is_json:
            value = {
                "run": str(self._results.folder),
                "profile": profile,
                "state": number.first,
                "second": number.second,
                "device": device,
                "at_ns": state.at_ns,
                "how": state.how,
                "faults": list(view.faults),
                "words": list(outcome.words),
                "rows": list(view.rows),
                "minimised": minimised_values(less) if less else None,
            }
            sys.stdout.write(document.text("crash-state", value))
            return
        print_parts(view.title, [*view.faults, view.grid, *view.notes], sys.stdout)


def explored(results: RunResults, site: Site) -> None:
    """Examine the states of a run that was made beside another one."""
    from fscost.crash.explore import Limits

    limits = Limits(cuts=16, states_per_cut=12)
    _explored(results, BESIDE, limits, examiners_of(site, results.folder))


def _explored(
    results: RunResults,
    workload: str,
    limits: "Limits",
    examiners: Examiners,
    journal: "Journal | None" = None,
    *,
    is_minimised: bool = False,
) -> _Found:
    """Examine the states of all profiles, and keep those with faults. `is_minimised`: minimise one
    state of each profile with faults."""
    from fscost.crash import again, states
    from fscost.crash.explore import control, explore
    from fscost.crash.journal import answers
    from fscost.crash.verdict import judged
    from fscost.crash.workloads import UNSYNCED

    found = _Found()
    for about, source in sources(results, workload):
        profile = about.name
        answered = answers(examiners(about), profile, journal)
        explored = explore(source, limits, answered, progress(profile))
        found.explored[profile] = explored
        if is_minimised and (number := judged(explored).example_number):
            _minimise(found, results, (about, source, number), limits, examiners, answered)
        if workload != UNSYNCED and not any(each.tried for each in found.controls.values()):
            found.controls = {profile: control(source, limits, answered)}
        if limits.again:
            outcomes, say_done = explored.outcomes, progress(f"{profile}, cut again")
            seconds = again.again(source, limits, outcomes, answered, say_done)
            found.seconds[profile] = seconds
            if not any(each.broken for each in found.seconds_controls.values()):
                controlled = again.control(source, limits, outcomes, answered)
                found.seconds_controls = {profile: controlled}
    kept = states.findings(
        workload, limits.device, found.explored, found.seconds, found.minimised, found.reduced
    )
    states.save(results.folder, kept)
    return found


def _minimise(
    found: _Found,
    results: RunResults,
    example: "tuple[Examined, Source, int]",
    limits: "Limits",
    examiners: Examiners,
    answered: "Answered",
) -> None:
    """Find the fewest lost blocks, and the fewest operations, that have the fault of a state."""
    from fscost.crash import minimise, states

    about, source, number = example
    outcome = found.explored[about.name].outcomes[number - 1]
    less = minimise.minimised(source, limits.device, outcome, answered)
    writes = minimise.writes(source, limits.device, less)
    found.minimised[about.name] = states.fewest(number, less, writes)
    fewer = reduced(results, about, (source, number, outcome), limits, examiners, sources)
    if fewer:
        found.reduced[about.name] = fewer


def examine(
    results: RunResults, journal: "Journal", examiners: Examiners, outputs: Outputs
) -> None:
    """Examine the states of all profiles, print the verdicts, and keep the states with faults. The
    journal says which, and keeps the answers until all are there."""
    asked = journal.asked
    try:
        is_less = asked.minimise and asked.lab == "native"
        found = _explored(
            results, asked.workload, asked.limits, examiners, journal, is_minimised=is_less
        )
        lost = _lost(results, journal, examiners) if asked.lose_disks else {}
    except KeyboardInterrupt:
        again = f"fscost crash --resume {shlex.quote(str(results.folder))}"
        say(f"interrupted; resume with: {again}{_trusted(results, asked, ' --trust')}")
        raise
    journal.end()
    _print(results, asked, found, lost, outputs)


def _print(
    results: RunResults,
    asked: "AskedStates",
    found: _Found,
    without: "Mapping[str, Sequence[Lost]]",
    outputs: Outputs,
) -> None:
    from fscost.report import document
    from fscost.report.terminal import print_parts
    from fscost.view.crash import crash_view, lost_view
    from fscost.view.crash_again import again_view
    from fscost.view.run import problems

    limits, controls = asked.limits, found.controls
    shown = crash_view(
        results, found.explored, controls, limits, problems(results), found.minimised, found.reduced
    )
    lost = lost_view(without)
    names = [name for name in results.manifest.profile_names if name in found.seconds]
    again = again_view({name: found.seconds[name] for name in names}, found.seconds_controls)
    if outputs.is_brief:
        print_parts(shown.answer, [], sys.stdout)
        return
    if outputs.json:
        controlled = [
            {
                "profile": profile,
                "flushes": each.tried,
                "noticed": each.noticed,
                "states": each.states,
            }
            for profile, each in controls.items()
        ]
        value = {
            "run": str(results.folder),
            "workload": asked.workload,
            "device": limits.device,
            "seed": limits.seed,
            "answer": shown.answer,
            "rows": list(shown.rows),
            "controls": controlled,
            "lost": list(lost.rows),
            "again": list(again.rows),
            "again_controls": list(again.controls),
            "notes": list(shown.notes),
        }
        sys.stdout.write(document.text("crash", value))
        return
    lines: list[Grid | str] = [shown.grid, *shown.notes]
    if again.rows:
        lines += [again.grid, *again.notes]
    if lost.rows:
        lines += [*lost.grids, *lost.notes]
    print_parts(shown.answer, lines, sys.stdout)
    print(f"Recordings: {results.folder}")
    flags = _same_kernel(results, asked)
    crash = f"fscost crash {shlex.quote(str(results.folder))}{flags}"
    if shown.next_state is not None:
        print(f"What that state lost: {crash} {shown.next_state}")
    if again.next_state is not None:
        print(f"What the second cut lost: {crash} {again.next_state}")


def _same_kernel(results: RunResults, asked: "AskedStates") -> str:
    """Return the flags with which the kernel that gave these answers gives them again."""
    if asked.lab == "vm":
        return f" --lab vm --kernel {shlex.quote(asked.kernel)}" if asked.kernel else " --lab vm"
    return _trusted(results, asked, " --lab native --trust")


def _trusted(results: RunResults, asked: "AskedStates", flags: str) -> str:
    """Return the flags without which this kernel would not mount these disks again."""
    return flags if asked.lab == "native" and not _is_made_here(results) else ""


def _lost(
    results: RunResults, journal: "Journal", examiners: Examiners
) -> "dict[str, Sequence[Lost]]":
    """Lose each disk of the profiles that have several."""
    from fscost.crash.journal import answers
    from fscost.crash.losses import lost

    found: dict[str, Sequence[Lost]] = {}
    for about, source in sources(results, journal.asked.workload):
        if len(source.disks) > 1:
            answered = answers(examiners(about), about.name, journal)
            say_done = progress(f"{about.name}, lost disks")
            found[about.name] = lost(source, journal.asked.limits, answered, say_done)
    return found


def _export(source: "Source", device: str, state: "State", image: Path) -> None:
    from fscost import capture

    crash = capture.crash(source.recording)
    for number, disk in enumerate(source.disks):
        path = image if number == 0 else image.with_name(f"{image.name}.{disk.name}")
        with files.creating(path) as out:
            crash.export(state.at_ns, device, state.kept, number, out.fileno(), path)


def progress(profile: str) -> Callable[[int, int], None]:
    said_s = time.monotonic()

    def told(done: int, of: int) -> None:
        nonlocal said_s
        if done == of or time.monotonic() - said_s > _SAY_EVERY_S:
            said_s = time.monotonic()
            say(f"{profile}: {done:,} of {of:,} states")

    return told


def _examined(about: Mapping[str, object]) -> Examined:
    """Return a profile of a manifest, which is untrusted."""
    name, type_, kernel = (str(about.get(key) or "") for key in ("name", "type", "kernel"))
    return Examined(name, type_, kernel, about.get("array") is not None)


def sources(results: RunResults, workload: str) -> "Iterator[tuple[Examined, Source]]":
    """Yield the profiles of a run, with the recording of the first repetition that has one. The
    manifest is untrusted."""
    from fscost.crash.explore import Mounted, source
    from fscost.crash.options import without_devices

    for cell, path, about in _recorded(results):
        flags, array = about.get("mkfs_flags"), about.get("array")
        members = array.get("members") if isinstance(array, dict) else 0
        how = Mounted(
            str(about.get("type", "")),
            [str(flag) for flag in flags] if isinstance(flags, list) else [],
            without_devices(str(about.get("mount_options", ""))),
            members if isinstance(members, int) else -1,
        )
        yield _examined(about), source(path, workload, how, _output(results, cell))


def _is_made_here(results: RunResults) -> bool:
    return all(made_here.is_noted(about, path) for _, path, about in _recorded(results))


def _recorded(results: RunResults) -> "Iterator[tuple[CellRecord, Path, Mapping[str, Any]]]":
    """Yield the cell of each profile that has its recording, the recording, and the manifest's
    entry about the profile."""
    from fscost.view.kept import first_recorded

    profiles = {str(profile["name"]): profile for profile in results.manifest.profiles}
    for name in dict.fromkeys(cell.profile for cell in results.manifest.done):
        if (recorded := first_recorded(results, name)) is None:
            raise HostError(
                f"{name} has no recording",
                "measure it again, with enough free space and without --keep none",
            )
        yield *recorded, profiles.get(name, {})


def _output(results: RunResults, cell: "CellRecord") -> str:
    """Return what a cell's commands printed. The manifest is untrusted."""
    folder, path = results.folder.resolve(), (results.folder / cell.output).resolve()
    if not path.is_relative_to(folder) or not path.is_file():
        raise InputError(f"{results.folder}: {cell.profile} has no output", "measure it again")
    with files.open_regular(path) as file:
        content = files.content(file, _LARGEST_OUTPUT_BYTES)
    if content is None:
        raise InputError(
            f"{path} is larger than {_LARGEST_OUTPUT_BYTES >> 20} MiB", "measure again"
        )
    return content.decode(errors="replace")
