"""Results from the recordings that a run kept: findings, files, and maps over time and place."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from fscost import analyze
from fscost.analyze.explain import incomplete
from fscost.errors import FscostError
from fscost.results import CellRecord, RunResults, how_to_fetch, kept_recording
from fscost.view.grid import plain
from fscost.view.units import slug

LARGEST = 25
"""Maximum number of files, and of directories, listed."""
_LISTED = pa.schema({"path": pa.string(), "kind": pa.string(), "write_bytes": pa.int64()})


@dataclass(frozen=True)
class Explained:
    """One explained recording. `anchor` identifies it in a page. `files` and `directories`: path,
    kind (data, metadata or journal) and write_bytes of the `LARGEST`. `tree`: as from
    `analyze.tree`, with printable names."""

    profile: str
    anchor: str
    cell: str
    repetition: int
    write_bytes: int
    findings: Sequence[str]
    maps: analyze.Maps | None
    files: pa.Table
    directories: pa.Table
    tree: pa.Table


@dataclass(frozen=True)
class Kept:
    """Explained recordings, and by profile the reasons why others are missing."""

    explained: Sequence[Explained]
    missing: Mapping[str, str]


def kept(results: RunResults) -> Kept:
    """Explain the recording of each profile's first finished repetition that has one."""
    found: list[Explained] = []
    missing: dict[str, str] = {}
    for profile in results.manifest.profile_names:
        recorded = first_recorded(results, profile)
        if recorded is None:
            missing[plain(profile)] = _missing_reason(results, profile)
            continue
        try:
            found.append(_explained(*recorded, len(found)))
        except FscostError as error:
            missing[plain(profile)] = plain(error.what)
    return Kept(found, missing)


def first_recorded(results: RunResults, profile: str) -> tuple[CellRecord, Path] | None:
    """Return the first finished repetition of a profile that has a recording, and the recording."""
    for cell in results.manifest.done:
        if cell.profile == profile and (path := kept_recording(results.folder, cell)):
            return cell, path
    return None


def _missing_reason(results: RunResults, profile: str) -> str:
    cells = [cell for cell in results.manifest.done if cell.profile == profile]
    if not cells:
        return "none of its cells has finished"
    if command := how_to_fetch(cells):
        return f"its recording is in a store: {command}"
    if any(cell.recording for cell in cells):
        return "its recording is no longer there"
    return "its recording was not kept (`fscost compare --keep one` keeps one of each profile)"


def _explained(cell: CellRecord, recording: Path, number: int) -> Explained:
    whole = analyze.explain(recording)
    report = analyze.report(whole, whole.measured, analyze.By.FILE, LARGEST)
    return Explained(
        plain(cell.profile),
        # Profiles that differ only in case or punctuation must not share an anchor.
        f"{slug(cell.profile)}-{number}",
        plain(cell.cell),
        cell.repetition,
        report.write_bytes,
        [plain(line) for line in (incomplete(whole.end), *report.findings) if line],
        analyze.maps(whole, whole.measured),
        listed(report.groups),
        listed(analyze.largest(report.explanation, analyze.By.DIRECTORY, LARGEST)[0]),
        _plain(analyze.tree(report.explanation), ("directory", "name")),
    )


def _plain(table: pa.Table, columns: Sequence[str]) -> pa.Table:
    for name in columns:
        texts = pa.array([plain(text) for text in table[name].to_pylist()], pa.string())
        table = table.set_column(table.column_names.index(name), name, texts)
    return table


def listed(groups: Sequence[analyze.Group]) -> pa.Table:
    """List groups by name and kind, with their bytes."""
    rows = [
        {"path": plain(group.name), "kind": kind, "write_bytes": count}
        for group in groups
        for kind, count in group.parts.items()
    ]
    return pa.Table.from_pylist(rows, _LISTED)
