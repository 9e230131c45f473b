"""The recordings that a command was given: files, or those that a run kept."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fscost.errors import InputError


@dataclass(frozen=True)
class Kept:
    """A recording, and of which cell of a run it is."""

    recording: Path
    profile: str = ""
    repetition: int = 0
    failed: bool = False
    measured: frozenset[str] = frozenset()
    """The phases that the run counts; empty for a recording by itself, whose marks tell."""
    cell: str = ""
    device_models: Mapping[str, Any] = field(default_factory=dict)
    """The models whose time its disks took while it was recorded."""

    @property
    def title(self) -> str:
        """How it is called above its table."""
        if not self.profile:
            return str(self.recording)
        return f"{self.profile} (repetition {self.repetition}{', failed' * self.failed})"

    def json(self) -> dict[str, object]:
        """As it is printed."""
        found: dict[str, object] = {"recording": str(self.recording)}
        return (
            {**found, "profile": self.profile, "repetition": self.repetition}
            if self.profile
            else found
        )


def first_kept(source: Path, profiles: Sequence[str], *, trust: bool) -> list[Kept]:
    """The recording itself, or the first that a run kept of each profile."""
    first: dict[str, Kept] = {}
    for each in every_kept(source, profiles, trust=trust):
        first.setdefault(each.profile, each)
    return list(first.values())


def every_kept(source: Path, profiles: Sequence[str], *, trust: bool) -> list[Kept]:
    """The recording itself, or all that a run kept, profile by profile and in the order of repetitions."""
    if not source.is_dir():
        if profiles:
            raise InputError(
                "--profile goes with a run's folder", f"leave it out: {source} is one recording"
            )
        return [Kept(source)]
    # `fscost explain RECORDING` needs none of the modules that read runs.
    from fscost.results import kept_recording, load

    manifest = load(source, trust=trust).manifest
    measured = _measured(manifest.workload)
    found: dict[str, list[Kept]] = {}
    # A cell that failed stands for its profile only where no other does.
    for cell in sorted(manifest.cells, key=lambda cell: (cell.status == "failed", cell.repetition)):
        path = kept_recording(source, cell)
        if path is not None and (cell.status != "failed" or cell.profile not in found):
            models = cell.facts.get("device_models")
            kept = Kept(
                path,
                cell.profile,
                cell.repetition,
                cell.status == "failed",
                measured,
                cell.cell,
                models if isinstance(models, dict) else {},
            )
            found.setdefault(cell.profile, []).append(kept)
    found = {name: found[name] for name in manifest.profile_names if name in found}
    if not found:
        raise InputError(
            f"{source} has no recordings",
            "`fscost compare --keep one` keeps one of each profile, `--keep all` all of them",
        )
    if unknown := [name for name in profiles if name not in found]:
        without = (
            " without a recording" if unknown[0] in manifest.profile_names else " unknown to it"
        )
        raise InputError(
            f"{source}: profile {unknown[0]!r} is{without}",
            f"those it has recordings of: {', '.join(found)}",
        )
    return [each for name in dict.fromkeys(profiles or found) for each in found[name]]


def _measured(workload: Mapping[str, Any]) -> frozenset[str]:
    """The steps that `fscost compare` counted, by the manifest; one that was changed may say anything."""
    steps = workload.get("steps")
    found = [step for step in steps if isinstance(step, dict)] if isinstance(steps, list) else []
    return frozenset(str(step.get("name")) for step in found if step.get("measured") is True)
