"""Recordings named on the command line: files, or recordings kept by a run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fscost.errors import InputError


@dataclass(frozen=True)
class Kept:
    """A recording, and the cell of the run that it belongs to."""

    recording: Path
    profile: str = ""
    repetition: int = 0
    failed: bool = False
    measured: frozenset[str] = frozenset()
    """Phases that the run counts. Empty for a standalone recording, whose marks define them."""
    cell: str = ""
    device_models: Mapping[str, Any] = field(default_factory=dict)
    """Device models that set the timing of the disks during the recording."""

    @property
    def title(self) -> str:
        """Title above the recording's table."""
        if not self.profile:
            return str(self.recording)
        return f"{self.profile} (repetition {self.repetition}{', failed' * self.failed})"

    def json(self) -> dict[str, object]:
        """Fields of the recording in JSON output."""
        found: dict[str, object] = {"recording": str(self.recording)}
        if self.profile:
            found |= {"profile": self.profile, "repetition": self.repetition}
        return found


def first_kept(source: Path, profiles: Sequence[str], *, trust: bool) -> list[Kept]:
    """Return the recording itself, or the first one that a run kept for each profile."""
    first: dict[str, Kept] = {}
    for each in every_kept(source, profiles, trust=trust):
        first.setdefault(each.profile, each)
    return list(first.values())


def every_kept(source: Path, profiles: Sequence[str], *, trust: bool) -> list[Kept]:
    """Return the recording itself, or all that a run kept, by profile and repetition."""
    if not source.is_dir():
        if profiles:
            raise InputError(
                "--profile requires a run's folder", f"leave it out: {source} is one recording"
            )
        return [Kept(source)]
    # `fscost explain RECORDING` needs none of the modules that read runs.
    from fscost.results import how_to_fetch, kept_recording, load

    manifest = load(source, trust=trust).manifest
    measured = _measured(manifest.workload)
    found: dict[str, list[Kept]] = {}
    # A failed cell represents its profile only if no other cell of the profile has a recording.
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
            how_to_fetch(manifest.cells)
            or "run `fscost compare` again: --keep one keeps a recording of each profile,"
            " --keep all keeps every recording",
        )
    if unknown := [name for name in profiles if name not in found]:
        without = (
            " without a recording" if unknown[0] in manifest.profile_names else " not in this run"
        )
        raise InputError(
            f"{source}: profile {unknown[0]!r} is{without}",
            f"choose one that has a recording: {', '.join(found)}",
        )
    return [each for name in dict.fromkeys(profiles or found) for each in found[name]]


def _measured(workload: Mapping[str, Any]) -> frozenset[str]:
    """Return the steps that `fscost compare` counted, as listed in the manifest.

    An edited manifest is untrusted and may contain anything.
    """
    steps = workload.get("steps")
    found = [step for step in steps if isinstance(step, dict)] if isinstance(steps, list) else []
    return frozenset(str(step.get("name")) for step in found if step.get("measured") is True)
