"""The run's folder: a new one, or one that an earlier run left and that this run is really the rest of."""

import shutil
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from fscost.errors import InputError
from fscost.lab.base import Lab
from fscost.results import Manifest, RunStore, Skipped
from fscost.run.spec import RunSpec, plain

CELLS = "cells"
INPUTS = "inputs"
_SAME = "resume with the options of the first part, or start a new run"


def default_folder(name: str, now: datetime | None = None) -> Path:
    """`fscost-runs/<UTC timestamp>-<name>`, in the working directory."""
    slug = "".join(character if character.isalnum() or character in "._" else "-" for character in name)[:60].strip("-.") or "run"
    return Path("fscost-runs") / f"{now or datetime.now(UTC):%Y%m%dT%H%M%SZ}-{slug}"


def refuse_used(folder: Path) -> None:
    """A folder that holds something is not written into."""
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is no folder", "name another with --out")
    if folder.is_dir() and any(folder.iterdir()):
        raise InputError(f"{folder} is not empty", f"name another with --out, or go on with what is in it: --resume {folder}")


def create(spec: RunSpec, lab: Lab, skipped: Sequence[Skipped]) -> RunStore:
    """A new run."""
    manifest = Manifest(
        name=spec.name or spec.workload.name,
        fscost_version=_version(),
        command_line=list(spec.command_line),
        started_utc=f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
        lab=lab.name,
        environment=lab.environment(spec.profiles),
        profiles=[plain(profile) for profile in spec.profiles],
        workload=_workload(spec),
        options=spec.options,
        stopping=plain(spec.stopping),
        seed=spec.seed,
        baseline=spec.baseline,
        request=dict(spec.request),
        skipped=list(skipped),
    )
    return RunStore.create(spec.folder, manifest)


def reopen(spec: RunSpec, lab: Lab) -> RunStore:
    """The rest of an earlier run. The stopping rule may differ: it decides how many cells there are, not what a cell is."""
    store = RunStore.reopen(spec.folder)
    earlier = store.manifest
    _same(spec.folder, "lab", earlier.lab, lab.name)
    _same(spec.folder, "seed", earlier.seed, spec.seed)
    _same(spec.folder, "baseline", earlier.baseline, spec.baseline)
    _same(spec.folder, "profiles", earlier.profiles, [plain(profile) for profile in spec.profiles])
    _same(spec.folder, "workload", earlier.workload, _workload(spec))
    _same(spec.folder, "options", earlier.options, spec.options)
    environment = lab.environment(spec.profiles)
    for what in ("kernel", "guest"):
        _same(spec.folder, what, earlier.environment.get(what), environment.get(what))
    earlier.stopping = plain(spec.stopping)
    earlier.state = "running"
    earlier.stopped_because = ""
    remove_unfinished(store)
    return store


def discard(folder: Path, existed: bool) -> None:
    """A run that finished nothing leaves nothing; a folder that was there before stays, empty."""
    shutil.rmtree(folder, ignore_errors=True)
    if existed:
        folder.mkdir(exist_ok=True)


def remove_inputs(store: RunStore) -> None:
    """What was prepared for the workload: large, and no result."""
    shutil.rmtree(store.folder / INPUTS, ignore_errors=True)


def remove_unfinished(store: RunStore) -> None:
    """Folders of cells that were begun and not ended."""
    finished = {record.cell for record in store.manifest.cells}
    for cell_dir in (store.folder / CELLS).glob("*"):
        if cell_dir.name not in finished:
            shutil.rmtree(cell_dir, ignore_errors=True)


def _workload(spec: RunSpec) -> dict[str, Any]:
    """Without the place of its prepared input, which is the host's business."""
    return {name: value for name, value in plain(spec.workload).items() if name != "input"}


def _same(folder: Path, what: str, before: Any, now: Any) -> None:
    if before == now:
        return
    if isinstance(before, dict) and isinstance(now, dict):
        differing = sorted(key for key in before.keys() | now.keys() if before.get(key) != now.get(key))
        if differing:
            what, before, now = f"{what}.{differing[0]}", before.get(differing[0]), now.get(differing[0])
    raise InputError(f"{folder} cannot be resumed: its {what} was {_short(before)} and is {_short(now)} now", _SAME)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 300 else f"{text[:300]}…"


def _version() -> str:
    try:
        return version("fscost")
    except PackageNotFoundError:
        return "unknown"
