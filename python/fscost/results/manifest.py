"""`manifest.json`: everything about a run except its samples."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from fscost.results.fields import OPTIONAL, PathInside, read, wrong

FORMAT = 1


@dataclass(frozen=True)
class Skipped:
    """A profile that could not run here. Its first cell stands for all its cells."""

    cell: str
    profile: str
    because: str


@dataclass(frozen=True)
class CellRecord:
    """Outcome of one cell. `recording` and `output` are paths inside the run's folder, or empty.

    `samples_sha256` is the digest of the cell's rows (`table.digest`); `files_sha256` holds the
    digests of its files, by their paths inside the run's folder. Runs of older versions have
    neither.
    """

    cell: str
    profile: str
    repetition: int
    seed: int
    order: int
    status: Literal["done", "failed"]
    duration_s: float
    because: str = ""
    kind: str = ""
    recording: PathInside = ""
    output: PathInside = ""
    facts: dict[str, Any] = field(default_factory=dict)
    samples_sha256: str = field(default="", metadata=OPTIONAL)
    files_sha256: dict[PathInside, str] = field(default_factory=dict, metadata=OPTIONAL)


@dataclass
class Manifest:
    """Manifest of a run. `profiles` and `workload` are as requested; the `facts` of the cells
    record what the kernel made of a profile.

    `request` belongs to the caller that requested the run (the command line's options, a study's
    name). It is stored unchanged, and returned on resume.
    """

    name: str
    fscost_version: str
    command_line: list[str]
    started_utc: str
    lab: str
    environment: dict[str, Any]
    profiles: list[dict[str, Any]]
    workload: dict[str, Any]
    options: dict[str, Any]
    stopping: dict[str, Any]
    seed: int
    baseline: str
    request: dict[str, Any] = field(default_factory=dict)
    state: Literal["running", "finished", "interrupted", "stopped"] = "running"
    stopped_because: str = ""
    elapsed_s: float = 0.0
    skipped: list[Skipped] = field(default_factory=list)
    cells: list[CellRecord] = field(default_factory=list)

    @property
    def profile_names(self) -> list[str]:
        """Names of the profiles, in the order requested."""
        return [str(profile["name"]) for profile in self.profiles]

    @property
    def failed(self) -> list[CellRecord]:
        """Cells that failed."""
        return [cell for cell in self.cells if cell.status == "failed"]

    @property
    def done(self) -> list[CellRecord]:
        """Cells that have samples."""
        return [cell for cell in self.cells if cell.status == "done"]

    def to_json(self) -> dict[str, Any]:
        """Convert to the JSON form of the file."""
        return {"format": FORMAT, **asdict(self)}

    @staticmethod
    def from_json(file: Path, value: Any) -> "Manifest":
        """Parse the JSON form field by field; an error names the first invalid field."""
        version = read(_Format, value, file).format
        if version != FORMAT:
            raise wrong(
                file,
                "format",
                f"is {version}; this fscost reads {FORMAT}",
                "use the fscost that wrote it (`fscost_version`)",
            )
        manifest: Manifest = read(Manifest, value, file)
        _check_names(manifest, file)
        return manifest


@dataclass(frozen=True)
class _Format:
    format: int


@dataclass(frozen=True)
class _Named:
    name: str


def _check_names(manifest: Manifest, file: Path) -> None:
    for index, profile in enumerate(manifest.profiles):
        read(_Named, profile, file, f"profiles[{index}]")
    read(_Named, manifest.workload, file, "workload")
    names = set(manifest.profile_names)
    lists: dict[str, Sequence[CellRecord | Skipped]] = {
        "cells": manifest.cells,
        "skipped": manifest.skipped,
    }
    if manifest.baseline not in names:
        raise wrong(file, "baseline", f"is {manifest.baseline!r}, not one of the profiles")
    for list_name, entries in lists.items():
        seen = set()
        for index, entry in enumerate(entries):
            place = f"{list_name}[{index}]"
            if entry.profile not in names:
                raise wrong(
                    file, f"{place}.profile", f"is {entry.profile!r}, not one of the profiles"
                )
            if entry.cell in seen:
                raise wrong(file, f"{place}.cell", f"names {entry.cell!r} a second time")
            seen.add(entry.cell)
