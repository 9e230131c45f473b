"""`manifest.json`: everything about a run except its samples."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Strict

from fscost import typed
from fscost.errors import InputError

FORMAT = 1
REMEDY = (
    "the file was changed or damaged: run the comparison again, or restore the file from a copy"
)


def _inside(path: str) -> str:
    # Not with pathlib, which takes most of the time of a run with many cells.
    if path.startswith("/") or ".." in path.split("/") or "\0" in path:
        raise ValueError(f"is {path!r}, which leads out of the run's folder")
    return path


PathInside = Annotated[str, AfterValidator(_inside)]
"""Path that stays inside the run's folder; it may be empty."""


@dataclass(frozen=True)
class Skipped(typed.Table):
    """A profile that could not run here. Its first cell stands for all its cells."""

    cell: str
    profile: str
    because: str


@dataclass(frozen=True)
class CellRecord(typed.Table):
    """Outcome of one cell. `recording` and `output` are paths inside the run's folder, or empty.

    `samples_sha256` is the digest of the cell's rows (`table.digest`); `files_sha256` holds the
    digests of its files, by their paths inside the run's folder. Runs of older versions have
    neither. `machine` names the machine of a cluster that ran the cell; it is empty if the machine
    that holds the results did.
    """

    cell: str
    profile: str
    repetition: typed.Int64
    seed: typed.Int64
    order: typed.Int64
    status: Literal["done", "failed"]
    duration_s: float
    because: str
    kind: str
    recording: PathInside
    output: PathInside
    facts: dict[str, Any]
    samples_sha256: str = ""
    files_sha256: Annotated[dict[PathInside, str], typed.FAIL_FAST] = field(default_factory=dict)
    machine: str = ""


@dataclass
class Manifest(typed.Table):
    """Manifest of a run. `profiles` and `workload` are as requested; the `facts` of the cells
    record what the kernel made of a profile.

    `samples_sha256` is the digest of the samples' file, unless an older version wrote the run. A
    file that was written after the manifest has another one; the cells' own digests decide then.

    `request` belongs to the caller that requested the run (the command line's options, a study's
    name). It is stored unchanged, and returned on resume.
    """

    name: str
    fscost_version: str
    command_line: typed.List[str]
    started_utc: str
    lab: str
    environment: dict[str, Any]
    profiles: typed.List[dict[str, Any]]
    workload: dict[str, Any]
    options: dict[str, Any]
    stopping: dict[str, Any]
    seed: typed.Int64
    baseline: str
    request: dict[str, Any]
    state: Literal["running", "finished", "interrupted", "stopped"]
    stopped_because: str
    elapsed_s: float
    skipped: typed.List[Skipped]
    cells: typed.List[CellRecord]
    samples_sha256: str = field(default="", compare=False)

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
        try:
            version = typed.read(_Format, value).format
            if version != FORMAT:
                raise InputError(
                    f"{file}: format is {version}; this fscost reads {FORMAT}",
                    "use the fscost that wrote it (`fscost_version`)",
                )
            manifest = typed.read(Manifest, value)
            _check_shapes(manifest)
            _check_names(manifest)
        except typed.InvalidError as error:
            raise InputError(f"{file}: {error}", REMEDY) from None
        return manifest


def with_cells(
    file: Path, manifest: Manifest, cells: Sequence[CellRecord], elapsed_s: float
) -> Manifest:
    """Return the manifest with cells of `file`, which finished after it was written."""
    found = replace(manifest, cells=[*manifest.cells, *cells], elapsed_s=elapsed_s)
    try:
        _check_names(found)
    except typed.InvalidError as error:
        raise InputError(f"{file}: {error}", REMEDY) from None
    return found


@dataclass(frozen=True)
class _Format(typed.Table):
    format: typed.Int64


@dataclass(frozen=True)
class _Disk(typed.Table):
    name: str
    model: str = ""


@dataclass(frozen=True)
class _Profile(typed.Table):
    name: str
    disks: typed.List[_Disk] = field(default_factory=list)


_Option = Annotated[tuple[str, str | float], Strict(strict=False)]


@dataclass(frozen=True)
class _Workload(typed.Table):
    name: str
    options: typed.List[_Option] = field(default_factory=list)


def _check_shapes(manifest: Manifest) -> None:
    """Check what readers take for granted. `request` may hold anything: it is the caller's."""
    for index, profile in enumerate(manifest.profiles):
        typed.read(_Profile, profile, f"profiles[{index}]")
    typed.read(_Workload, manifest.workload, "workload")


def _check_names(manifest: Manifest) -> None:
    names = set(manifest.profile_names)
    lists: dict[str, Sequence[CellRecord | Skipped]] = {
        "cells": manifest.cells,
        "skipped": manifest.skipped,
    }
    if manifest.baseline not in names:
        raise typed.InvalidError("baseline", f"is {manifest.baseline!r}, not one of the profiles")
    for list_name, entries in lists.items():
        seen = set()
        for index, entry in enumerate(entries):
            place = f"{list_name}[{index}]"
            if entry.profile not in names:
                raise typed.InvalidError(
                    f"{place}.profile", f"is {entry.profile!r}, not one of the profiles"
                )
            if entry.cell in seen:
                raise typed.InvalidError(f"{place}.cell", f"names {entry.cell!r} a second time")
            seen.add(entry.cell)
