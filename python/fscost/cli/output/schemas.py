"""JSON Schemas of what fscost reads and prints, generated from the models below.

The files in `report/schemas` are what `fscost schema` prints; `python -m
fscost.cli.output.schemas` writes them again. A change that older readers cannot follow raises the
version in `fscost.report.document.VERSIONS`.
"""

import json
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, Field

from fscost.cli.output.schema_base import Document, Object, Pairs
from fscost.cli.output.schema_crash import Crash, CrashControls, CrashState
from fscost.cli.output.schema_explain import Explain, ExplainAt, ExplainDiff, ExplainTrace
from fscost.cli.output.schema_lists import Devices, Doctor, Profiles, Runs, Studies, Workloads
from fscost.cli.suite import Suite
from fscost.report.document import SUITE, VERSIONS, folder, name
from fscost.results.manifest import Skipped
from fscost.stats import Row
from fscost.view.sweep import EffectRow

DRAFT = "https://json-schema.org/draft/2020-12/schema"


class RunFacts(Object):
    """Facts about how the run was made."""

    folder: str
    format: int
    """Version of the run's own files."""
    name: str
    fscost_version: str
    command_line: list[str]
    started_utc: str
    lab: str
    environment: Pairs
    profiles: list[Pairs]
    workload: Pairs
    options: Pairs
    stopping: Pairs
    seed: int
    baseline: str
    request: Pairs
    state: Literal["running", "finished", "interrupted", "stopped"]
    stopped_because: str
    elapsed_s: float
    order: list[str]
    """Cells in the order in which they ran."""


class Failed(Object):
    """A cell that failed."""

    cell: str
    profile: str
    repetition: int
    seed: int
    order: int
    status: Literal["failed"]
    duration_s: float
    because: str
    kind: str
    recording: str
    output: str
    machine: str
    """Machine of a cluster that ran the cell; empty for the machine of the results."""


class NotExplained(Object):
    """A profile whose bytes have no explanation."""

    profile: str
    because: str


class Run(Document):
    """`fscost compare --json` and `fscost show --json`: one run."""

    run: RunFacts
    rows: list[Row]
    power_cut: dict[str, str] = Field(default_factory=dict)
    """Verdict on each profile after power cuts (`--crash`)."""
    headline: str
    why: list[str]
    cautions: list[str]
    findings: list[str]
    skipped: list[Skipped]
    failed: list[Failed]
    not_explained: list[NotExplained]
    effects: list[EffectRow] = Field(default=[])
    pareto: list[str] = Field(default=[])


class RelationRow(Object):
    """A profile in a run; the first run has no ratio."""

    profile: str
    run: str
    n: int
    median: float
    low: float | None
    high: float | None
    ratio: float | None = None
    ratio_low: float | None = None
    ratio_high: float | None = None
    verdict: str | None = None


class Diff(Document):
    """`fscost diff --json`, and the `--json` output of a command that makes several runs."""

    metric: str
    rows: list[RelationRow]
    notes: list[str]
    modelled: dict[str, list[RelationRow]] = Field(default_factory=dict)
    """The same for NAND bytes and life of the device of `--ssd`, by metric."""


class Device(Object):
    """The device whose wear is estimated."""

    name: str
    summary: str
    values: Pairs
    sources: Pairs


class Wear(Document):
    """`fscost wear --json`."""

    source: str
    device: Device
    by: str | None
    entries: list[Pairs]
    """An entry for each disk of each recording; bytes and counts are of one run of the workload."""
    arrays: list[Pairs] = Field(default_factory=list)
    now: Pairs | None = None
    """Counters of the user's own device (`--now`)."""


class Replay(Document):
    """`fscost replay --json`."""

    source: str
    entries: list[Pairs]


class StudyRun(Object):
    """The run that was judged."""

    folder: str
    state: str
    seed: int
    request: Pairs
    kernel: Any


class Claim(Object):
    """A claim of the source, with the criteria that decided."""

    kernel: str
    claim: str
    verdict: str
    rule: str
    criteria: list[Pairs]
    among_measured: Pairs | None = None


class FailedOfStudy(Object):
    """A cell that failed."""

    cell: str
    profile: str
    because: str


class Study(Document):
    """`fscost study run --json` and `fscost study show --json`."""

    study: str
    source: str
    url: str
    run: StudyRun
    comparisons: list[Pairs]
    tables: list[Pairs]
    claims: list[Claim]
    skipped: list[Skipped]
    failed: list[FailedOfStudy]
    disks: list[Pairs] = Field(default_factory=list)


class Info(Document):
    """`fscost recording info --json`."""

    version: int
    stripped: str
    begin_unix_ns: int
    file_bytes: int
    frames: int
    events: int
    content_bytes: int
    content_stored_bytes: int
    last_ns: int
    end: str
    disks: list[Pairs]
    intervals: list[Pairs]


class Verify(Document):
    """`fscost recording verify --json`."""

    whole: bool
    end: str
    damaged: list[str]
    events: int
    content_bytes: int
    content_stored_bytes: int
    disks: dict[str, Pairs]


MODELS: dict[str, type[BaseModel]] = {
    SUITE: Suite,
    "run": Run,
    "diff": Diff,
    "crash": Crash,
    "crash-controls": CrashControls,
    "crash-state": CrashState,
    "explain": Explain,
    "explain-diff": ExplainDiff,
    "explain-at": ExplainAt,
    "explain-trace": ExplainTrace,
    "wear": Wear,
    "replay": Replay,
    "study": Study,
    "recording-info": Info,
    "recording-verify": Verify,
    "runs": Runs,
    "profiles": Profiles,
    "workloads": Workloads,
    "devices": Devices,
    "doctor": Doctor,
    "studies": Studies,
}


def generated(kind: str) -> dict[str, Any]:
    """Return the schema of a kind of document, with the contents of its file."""
    found = _strict(MODELS[kind].model_json_schema(by_alias=True))
    if kind == SUITE:
        _drop_null(found)
    else:
        _fix_name(found, name(kind))
    return {"$schema": DRAFT, "$id": f"urn:fscost:{kind}:{VERSIONS[kind]}", **found}


def _strict(node: Any) -> Any:
    """Remove the titles and defaults that pydantic generates, and forbid additional fields."""
    if isinstance(node, list):
        return [_strict(each) for each in node]
    if not isinstance(node, dict):
        return node
    found = {
        key: {field: _strict(each) for field, each in value.items()}
        if key in ("properties", "$defs")
        else _strict(value)
        for key, value in node.items()
        if not (key == "title" and isinstance(value, str)) and key != "default"
    }
    if "properties" in found and "additionalProperties" not in found:
        found = {"additionalProperties": False, **found}
    return found


def _drop_null(node: Any) -> None:
    """Remove null types. TOML has no null; an optional field is left out."""
    for value in node.values() if isinstance(node, dict) else node:
        if isinstance(value, (dict, list)):
            _drop_null(value)
    if isinstance(node, dict) and {"type": "null"} in node.get("anyOf", ()):
        [only] = [each for each in node.pop("anyOf") if each != {"type": "null"}]
        node.update(only)


def _fix_name(node: Any, schema: str) -> None:
    """Fix the field `schema` of each document to the name of this schema."""
    if not isinstance(node, dict):
        return
    if "schema" in node.get("properties", {}):
        node["properties"]["schema"]["const"] = schema
    for value in (node, *node.get("$defs", {}).values()):
        if value is not node:
            _fix_name(value, schema)


def text(kind: str) -> str:
    """Return the schema as its file holds it."""
    return json.dumps(generated(kind), indent=1, ensure_ascii=False) + "\n"


def write(target: Path) -> None:
    """Write the files of all schemas."""
    for kind in MODELS:
        (target / f"{name(kind)}.json").write_text(text(kind), encoding="utf-8")


if __name__ == "__main__":
    write(Path(str(folder())))
