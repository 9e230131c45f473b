"""What `fscost crash` found, as tables."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

from fscost.crash.explore import DEVICES, Control, Exploration, Limits
from fscost.crash.lost import HOWS, Lost
from fscost.crash.promises import DATA_LOST, NAMES_LOST
from fscost.crash.states import Fewest, Reduced
from fscost.crash.verdict import FAULTS, Judged, Verdict, judged
from fscost.results import TOTAL, RunResults
from fscost.view.breakdown import WRITTEN
from fscost.view.crash_state import minimised_values, minimised_words
from fscost.view.grid import NOTHING, Grid, plain
from fscost.view.units import human_bytes

_FLUSHES = "device_flushes"
_UNSYNCED = (
    "data lost, names lost: seconds of work without fsync that a power cut takes, of a file that"
    " grows and of new files: the median of the states, and the most."
)


@dataclass(frozen=True)
class CrashView:
    """`answer`: the profiles of each verdict. `rows`: one for each profile, for `--json`.
    `next_state`: options that show the first state of the worst profile, if any has a fault."""

    answer: str
    grid: Grid
    notes: Sequence[str]
    rows: Sequence[Mapping[str, Any]]
    next_state: str | None


@dataclass(frozen=True)
class LostView:
    """What is left without a disk. `rows`: for `--json`."""

    grids: Sequence[Grid]
    notes: Sequence[str]
    rows: Sequence[Mapping[str, Any]]


def crash_view(
    results: RunResults,
    explored: Mapping[str, Exploration],
    controls: Mapping[str, Control],
    limits: Limits,
    problems: Sequence[str] = (),
    minimised: Mapping[str, Fewest] | None = None,
    reduced: Mapping[str, Reduced] | None = None,
) -> CrashView:
    """Show each profile's verdict beside its cost, in the order in which they were named."""
    costs, minimised, reduced = _costs(results), minimised or {}, reduced or {}
    judgements = {
        profile: judged(explored[profile])
        for profile in results.manifest.profile_names
        if profile in explored
    }
    rows, examples = [], []
    shown_states: list[tuple[Verdict, str]] = []
    for profile, judgement in judgements.items():
        less, fewer = minimised.get(profile), reduced.get(profile)
        cost = {name: costs.get((profile, name), 0.0) for name in (WRITTEN, _FLUSHES)}
        rows.append(_row(profile, explored[profile], judgement, less, fewer) | cost)
        if judgement.unnamed:
            examples.append(_unnamed(profile, judgement.unnamed))
        if judgement.example_number is not None:
            named = f" --profile {shlex.quote(profile)}" if len(explored) > 1 else ""
            option = f"--state {judgement.example_number}{named}"
            shown_states.append((judgement.verdict, option))
            shorter = _less(results.folder, less, fewer)
            examples.append(f"{profile}: {judgement.example}.{shorter}")
    unheard = [
        f"{profile}: the workload called neither fsync nor fdatasync, so that only errors of the"
        " file system are found."
        for profile, found in explored.items()
        if not found.promises and not found.unknown_calls
    ]
    unheard += [
        f"{profile}: {found.unknown_calls:,} of {found.promises + found.unknown_calls:,} calls of"
        " fsync, fdatasync and synchronous writes promised what is not known, and is not checked:"
        " the recording lacks their files or durations."
        for profile, found in explored.items()
        if found.unknown_calls
    ]
    is_unsynced = any(each.lost_s for each in judgements.values())
    told = [*examples, *_repairs(judgements), *unheard, *([_UNSYNCED] if is_unsynced else [])]
    notes = [*told, *_legend(limits), *map(_control, controls.items()), *problems]
    worst = max(shown_states, key=lambda each: list(Verdict).index(each[0]), default=(None, None))
    grid = _grid(rows, is_unsynced=is_unsynced)
    return CrashView(_answer(rows), grid, [plain(line) for line in notes], rows, worst[1])


def _answer(rows: Sequence[Mapping[str, Any]]) -> str:
    """Name the profiles of each verdict, the worst verdict first."""
    by_verdict: dict[Verdict, list[str]] = {verdict: [] for verdict in reversed(Verdict)}
    for row in rows:
        verdict, states = Verdict(row["verdict"]), row["states"]
        word = FAULTS.get(verdict)
        faulty = f"{row[word]:,} of {states:,}" if word else f"{states:,}"
        by_verdict[verdict].append(f"{row['profile']} ({faulty} states)")
    told = [f"{word.value}: {', '.join(names)}." for word, names in by_verdict.items() if names]
    return plain(" ".join(told))


def _row(
    profile: str, found: Exploration, judged: Judged, less: Fewest | None, fewer: Reduced | None
) -> dict[str, Any]:
    return {
        "profile": profile,
        "verdict": judged.verdict.value,
        "states": len(found.outcomes),
        "states_tried": found.tried,
        "cuts": found.cuts,
        "promises": found.promises,
        "unknown_calls": found.unknown_calls,
        **judged.counted,
        **_lost_s(judged),
        "repair_s": judged.repair_s or None,
        "unnamed": judged.unnamed,
        "example": judged.example,
        "minimised": minimised_values(less) if less else None,
        "reduced": asdict(fewer) if fewer else None,
    }


def _grid(rows: Sequence[Mapping[str, Any]], *, is_unsynced: bool) -> Grid:
    """Show counts of states, and seconds if the workload has work that nobody synced."""
    counted = [*FAULTS.values(), "silent", "emptied"]
    kinds = (DATA_LOST, NAMES_LOST) if is_unsynced else ()
    lines = [
        [
            row["profile"],
            row["verdict"],
            f"{row['states']:,}",
            *(f"{row[word]:,}" if row[word] else NOTHING for word in counted),
            *(_span(row[f"{kind}_s_p50"], row[f"{kind}_s_max"]) for kind in kinds),
            human_bytes(row[WRITTEN]),
            f"{row[_FLUSHES]:,.0f}",
        ]
        for row in rows
    ]
    seconds = [kind.replace("_", " ") for kind in kinds]
    header = ["profile", "verdict", "states", *counted, *seconds, "written", "flushes"]
    return Grid("", header, lines, left=(0, 1))


def _repairs(judgements: Mapping[str, Judged]) -> list[str]:
    took = [
        f"{each.repair_s:.2f} s ({profile})"
        for profile, each in judgements.items()
        if each.repair_s
    ]
    return [f"The longest repair of a disk in memory took {', '.join(took)}."] if took else []


def _lost_s(found: Judged) -> dict[str, float | None]:
    """Return the median and the most seconds of unsynced work that the states have lost."""
    told: dict[str, float | None] = {}
    for kind in (DATA_LOST, NAMES_LOST):
        values = found.lost_s.get(kind)
        told[f"{kind}_s_p50"] = median(values) if values else None
        told[f"{kind}_s_max"] = max(values) if values else None
    return told


def _span(half: float | None, most: float | None) -> str:
    if not most:
        return NOTHING
    return f"{most:.3g} s" if half == most else f"{half:.3g}–{most:.3g} s"


def _less(run: Path, less: Fewest | None, fewer: Reduced | None) -> str:
    """Say how much less is enough for a fault: which writes to lose, and which operations."""
    words = [minimised_words(less)] if less else []
    words += [_reduced_words(fewer, run)] if fewer else []
    return "".join(f" {each}" for each in words)


def _reduced_words(fewer: Reduced, run: Path) -> str:
    """Say which operations are enough, and where their own run is."""
    if not fewer.workload:
        return (
            f"None of its {fewer.before:,} operations has this fault on a disk of its own"
            f" ({_trials(fewer)})."
        )
    count = fewer.rounds * len(fewer.operations)
    rounds = f" in each of {fewer.rounds} rounds" if fewer.rounds > 1 else ""
    there = shlex.quote(str(run / fewer.folder))
    return (
        f"It needs {count:,} of {fewer.before:,} operations: {', '.join(fewer.operations)}{rounds}"
        f" ({_trials(fewer)}). That run alone: fscost crash {there} --state {fewer.state}"
    )


def _trials(fewer: Reduced) -> str:
    return f"{fewer.trials} trial{'s' * (fewer.trials != 1)}"


def _unnamed(profile: str, states: int) -> str:
    return (
        f"{profile}: in {states:,} states, a synced file has no name, because its folder was never"
        " synced (POSIX promises no more)."
    )


def lost_view(lost: Mapping[str, Sequence[Lost]]) -> LostView:
    """Show what is left of each profile without one of its disks, and which way leads back."""
    grids, told = [], []
    for profile, found in lost.items():
        for disk in dict.fromkeys(each.disk for each in found):
            here = [each for each in found if each.disk == disk]
            grids.append(_ways(f"{profile} without {disk}", here))
            hows = dict.fromkeys(each.how for each in here)
            told += [_loss(profile, [each for each in here if each.how == how]) for how in hows]
    legend = "; ".join(f"{how}: {words}" for how, words in HOWS.items())
    notes = [
        *told,
        f"{legend}.",
        "kept: states that mount and keep every promise; clean: of these, states without error.",
    ]
    rows = [{"profile": profile, **asdict(each)} for profile in lost for each in lost[profile]]
    return LostView(grids, [plain(note) for note in notes], rows)


def _ways(title: str, found: Sequence[Lost]) -> Grid:
    lines = []
    for each in found:
        clean = NOTHING if each.is_read_only else str(each.clean)
        counts = [str(each.tried), str(each.mounts), str(each.whole), clean]
        lines.append([each.how, each.way, *counts])
    header = ["lost", "way back", "states", "mounts", "kept", "clean"]
    return Grid(title, header, lines, left=(0, 1))


def _loss(profile: str, found: Sequence[Lost]) -> str:
    """Say what a plain mount does after a loss, and which way leads furthest back."""
    first = found[0]
    lost = first.mounts - first.whole
    if not first.mounts:
        does = "does not mount"
    elif lost:
        does = f"mounts in {first.mounts} of {first.tried} states, silently without what was"
        does += f" promised in {lost}"
    else:
        does = f"mounts in {first.mounts} of {first.tried} states, with all that was promised"
    back = max((each for each in found if not each.is_read_only), key=lambda each: each.clean)
    way = f"{back.way} keeps most: {back.clean} of {back.tried}" if back.clean else "no way back"
    if back.clean and back.example:
        way += f" (otherwise, for example, {back.example})"
    return f"{profile}, {first.disk} {first.how}: it {does}; {way}."


def _costs(results: RunResults) -> dict[tuple[str, str], float]:
    return {
        (row["profile"], row["metric"]): row["value"]
        for row in results.samples.to_pylist()
        if row["phase"] == TOTAL and not row["disk"]
    }


def _legend(limits: Limits) -> list[str]:
    model = f"Device {limits.device}: {DEVICES[limits.device]}."
    safe = "SAFE means that no promise was broken in the states examined."
    words = (
        "lost: acknowledged data is gone or old; stale: a file holds bytes of another; corrupt:"
        " errors that no repair corrects; repaired: errors until fsck runs; silent: lost or stale,"
        " and neither the kernel nor fsck reports it; emptied: a file that was replaced without"
        " fsync is neither version (no call promised more)."
    )
    return [f"{model} {safe}", words]


def _control(named: tuple[str, Control]) -> str:
    profile, found = named
    if not found.tried:
        return f"Control: {profile} sent no flush before a promise, so none could be left out."
    return (
        f"Control: leaving out one flush of {profile} broke a promise {found.noticed} of"
        f" {found.tried} times."
    )
