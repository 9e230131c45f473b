"""`manifest.json`: everything about a run except its samples."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from fscost.results.fields import Fields

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
    status: str  # done | failed
    duration_s: float
    because: str = ""
    kind: str = ""
    recording: str = ""
    output: str = ""
    facts: dict[str, Any] = field(default_factory=dict)
    samples_sha256: str = ""
    files_sha256: dict[str, str] = field(default_factory=dict)


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
    state: str = "running"  # running | finished | interrupted | stopped
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
    def from_json(fields: Fields) -> "Manifest":
        """Parse the JSON form field by field; an error names the first invalid field."""
        version = fields.integer("format")
        if version != FORMAT:
            raise fields.wrong(
                "format",
                f"is {version}; this fscost reads {FORMAT}",
                "use the fscost that wrote it (`fscost_version`)",
            )
        manifest = Manifest(
            name=fields.text("name"),
            fscost_version=fields.text("fscost_version"),
            command_line=fields.texts("command_line"),
            started_utc=fields.text("started_utc"),
            lab=fields.text("lab"),
            environment=fields.object("environment"),
            profiles=[profile.plain() for profile in fields.objects("profiles")],
            workload=fields.object("workload"),
            options=fields.object("options"),
            stopping=fields.object("stopping"),
            seed=fields.integer("seed"),
            baseline=fields.text("baseline"),
            request=fields.object("request"),
            state=fields.one_of("state", ("running", "finished", "interrupted", "stopped")),
            stopped_because=fields.text("stopped_because"),
            elapsed_s=fields.number("elapsed_s"),
            skipped=[_skipped(entry) for entry in fields.objects("skipped")],
            cells=[_cell(entry) for entry in fields.objects("cells")],
        )
        _check_names(manifest, fields)
        return manifest


def _skipped(fields: Fields) -> Skipped:
    return Skipped(fields.text("cell"), fields.text("profile"), fields.text("because"))


def _cell(fields: Fields) -> CellRecord:
    return CellRecord(
        cell=fields.text("cell"),
        profile=fields.text("profile"),
        repetition=fields.integer("repetition"),
        seed=fields.integer("seed"),
        order=fields.integer("order"),
        status=fields.one_of("status", ("done", "failed")),
        duration_s=fields.number("duration_s"),
        because=fields.text("because"),
        kind=fields.text("kind"),
        recording=fields.inside("recording"),
        output=fields.inside("output"),
        facts=fields.object("facts"),
        samples_sha256=fields.text("samples_sha256", ""),
        files_sha256=fields.text_by_path("files_sha256"),
    )


def _check_names(manifest: Manifest, fields: Fields) -> None:
    for profile in fields.objects("profiles"):
        profile.text("name")
    Fields(fields.file, manifest.workload, "workload").text("name")
    names = set(manifest.profile_names)
    lists: dict[str, Sequence[CellRecord | Skipped]] = {
        "cells": manifest.cells,
        "skipped": manifest.skipped,
    }
    if manifest.baseline not in names:
        raise fields.wrong("baseline", f"is {manifest.baseline!r}, not one of the profiles")
    for list_name, entries in lists.items():
        seen = set()
        for index, entry in enumerate(entries):
            if entry.profile not in names:
                raise fields.wrong(
                    f"{list_name}[{index}].profile",
                    f"is {entry.profile!r}, not one of the profiles",
                )
            if entry.cell in seen:
                raise fields.wrong(
                    f"{list_name}[{index}].cell", f"names {entry.cell!r} a second time"
                )
            seen.add(entry.cell)
