"""The run's folder: a new one, or an earlier run's folder to resume in."""

import hashlib
import itertools
import os
import re
import shlex
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from fscost import files, host
from fscost.errors import HostError, InputError
from fscost.lab.base import Site
from fscost.profile import plan_format
from fscost.results import (
    CELLS,
    INPUTS,
    JOURNAL,
    MANIFEST,
    SAMPLES,
    Manifest,
    RunStore,
    Skipped,
    stored,
)
from fscost.run.record import RUN_ENDING_KINDS
from fscost.run.spec import RunSpec, plain

_CELL = re.compile(r"[0-9A-Za-z-]+\.[0-9]+")
"""Names of the form `matrix.Cell.id`: nothing else below `cells` is removed."""
_INPUT = re.compile(r"\.?[0-9A-Za-z_-]+-[0-9a-f]{12}(\.partial)?")
"""Names that `workload.inputs` gives to prepared inputs."""
_RUNS = "fscost-runs"
LATEST = "latest"
_SAME = "resume with the original options, or start a new run"


def default_folder(name: str, now: datetime | None = None) -> Path:
    """`fscost-runs/2026-11-22-1749-NAME` (UTC) in the working directory, with a number appended if
    an earlier run has that name."""
    folder = Path(_RUNS) / f"{now or datetime.now(UTC):%Y-%m-%d-%H%M}-{slug(name)}"
    others = (folder.with_name(f"{folder.name}-{number}") for number in itertools.count(2))
    return next(each for each in itertools.chain([folder], others) if not os.path.lexists(each))


def slug(name: str, longest: int = 40) -> str:
    """Turn `name` into a folder name that needs no shell quoting."""
    return re.sub(r"[^0-9A-Za-z._]+", "-", name)[:longest].strip("-.") or "run"


def folders(names: Collection[str]) -> dict[str, str]:
    """Return a folder name for each run of several, all different. `slug` cuts long names, and
    `n=1` and `n=-1` look the same to it."""
    count = Counter(map(slug, names))

    def own(name: str) -> str:
        short = slug(name)
        digest = hashlib.sha256(name.encode("utf-8", "surrogateescape")).hexdigest()[:8]
        return short if count[short] == 1 else f"{short[:31]}-{digest}"

    return {name: own(name) for name in names}


def point_latest(folder: Path) -> None:
    """Point the link `fscost-runs/latest` at this run, if the name is free or is already a symbolic
    link."""
    link = folder.parent / LATEST
    if folder.parent != Path(_RUNS) or (os.path.lexists(link) and not link.is_symlink()):
        return
    fresh = link.with_name(f".{LATEST}-{os.getpid()}")
    with suppress(OSError):  # only a convenience
        fresh.symlink_to(folder.name)
        fresh.replace(link)


def refuse_used(folder: Path, *, trust: bool = False) -> None:
    """Refuse a folder that is not empty, or that other users control or could exchange."""
    files.refuse_replaceable(folder, trust=trust)
    try:
        with files.own_folder(folder, trust=trust) as opened:
            used = bool(os.listdir(opened))  # noqa: PTH208  # of an open folder
    except (FileNotFoundError, NotADirectoryError):
        if folder.exists():
            raise InputError(f"{folder} is not a folder", "name another with --out") from None
        return
    except OSError as error:
        raise HostError(f"{folder}: {error.strerror}", "name another folder with --out") from error
    if used:
        raise InputError(
            f"{folder} is not empty",
            "name another with --out, or continue the run in it:"
            f" --resume {shlex.quote(str(folder))}",
        )


def create(spec: RunSpec, site: Site, skipped: Sequence[Skipped]) -> RunStore:
    """Create the store of a new run."""
    manifest = Manifest(
        name=spec.name or spec.workload.name,
        fscost_version=host.fscost_version(),
        command_line=list(spec.command_line),
        started_utc=f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
        lab=site.name,
        environment=site.environment(spec.profiles),
        profiles=[plain(profile) for profile in spec.profiles],
        workload=_workload(spec),
        options=spec.options,
        stopping=plain(spec.stopping),
        seed=spec.seed,
        baseline=spec.baseline,
        request=dict(spec.request),
        state="running",
        stopped_because="",
        elapsed_s=0.0,
        skipped=list(skipped),
        cells=[],
    )
    return RunStore.create(spec.folder, manifest)


def reopen(spec: RunSpec, site: Site) -> RunStore:
    """Reopen an earlier run to run its remaining cells. The stopping rule may differ: it decides
    how many cells there are, not what a cell is."""
    files.refuse_replaceable(spec.folder, trust=spec.trust)
    store = RunStore.reopen(spec.folder, trust=spec.trust)
    earlier = store.manifest
    _same(spec.folder, "lab", earlier.lab, site.name)
    _same(spec.folder, "seed", earlier.seed, spec.seed)
    _same(spec.folder, "baseline", earlier.baseline, spec.baseline)
    _same(spec.folder, "profiles", earlier.profiles, [plain(profile) for profile in spec.profiles])
    _same(spec.folder, "workload", earlier.workload, _workload(spec))
    _same(spec.folder, "options", earlier.options, spec.options)
    environment = site.environment(spec.profiles)
    _same_versions(spec, earlier, environment)
    _same_store(spec, earlier, environment)
    full = {kept.cell for kept in earlier.cells if kept.kind in RUN_ENDING_KINDS}
    if full:
        store.drop(full)
    earlier.stopping = plain(spec.stopping)
    earlier.state = "running"
    earlier.stopped_because = ""
    remove_unfinished(store)
    return store


def _same_versions(spec: RunSpec, earlier: Manifest, environment: Mapping[str, Any]) -> None:
    """Compare what the bytes of a cell depend on: guests run the host's programs, but not its
    kernel."""
    _same(spec.folder, "fscost_version", earlier.fscost_version, host.fscost_version())
    _same(spec.folder, "guest", earlier.environment.get("guest"), environment.get("guest"))
    if "guest" not in environment:
        _same(spec.folder, "kernel", earlier.environment.get("kernel"), environment["kernel"])
    needed = set(spec.workload.needs_tools)
    out = {each.profile for each in earlier.skipped}
    for profile in spec.profiles:
        if profile.name in out:
            continue
        planned = plan_format(profile, spec.disk_size_bytes, spec.seed)
        needed |= set(planned.needs_tools)
    before, now = (each.get("tools", {}) for each in (earlier.environment, environment))
    for name in sorted(needed):
        _same(spec.folder, name, before.get(name), now.get(name))


def _same_store(spec: RunSpec, earlier: Manifest, environment: Mapping[str, Any]) -> None:
    """Refuse to fill this machine's disk with recordings whose like went to a store. The user names
    it again, because the manifest may be a stranger's."""
    if spec.store or "machines" not in environment:
        return
    for cell in earlier.cells:
        if (place := stored(cell)) is not None:
            url = shlex.quote(place.url.rpartition("/")[0])
            raise InputError(
                f"the recordings of {spec.folder} are in a store, and none is named now",
                f"add --recordings-to {url}",
            )


def discard(folder: Path, existed: bool) -> None:
    """Remove what a run without finished cells left behind. A folder that existed before stays, as
    does anything that others put into it."""
    files.remove_folders(folder, CELLS, _CELL.fullmatch)
    files.remove_folders(folder, INPUTS, _INPUT.fullmatch)
    for name in (SAMPLES, MANIFEST, JOURNAL):
        (folder / name).unlink(missing_ok=True)
    if not existed:
        with suppress(OSError):
            folder.rmdir()


def remove_inputs(store: RunStore) -> None:
    """Remove the prepared inputs of the workload. They are large, and not part of the results."""
    files.remove_folders(store.folder, INPUTS, _INPUT.fullmatch)


def remove_unfinished(store: RunStore) -> None:
    """Remove the folders of cells that began but did not finish."""
    finished = {record.cell for record in store.manifest.cells}
    files.remove_folders(
        store.folder, CELLS, lambda name: _CELL.fullmatch(name) and name not in finished
    )


def remove_attempt(folder: Path, cell: str) -> None:
    """Remove the folder of a cell that is repeated."""
    files.remove_folders(folder, CELLS, lambda name: name == cell)


def _workload(spec: RunSpec) -> dict[str, Any]:
    """The workload without the path of its prepared input, which may differ when a run is
    resumed."""
    return {name: value for name, value in plain(spec.workload).items() if name != "input"}


def _same(folder: Path, what: str, before: Any, now: Any) -> None:
    if before == now:
        return
    if isinstance(before, dict) and isinstance(now, dict):
        differing = sorted(
            key for key in before.keys() | now.keys() if before.get(key) != now.get(key)
        )
        if differing:
            key = differing[0]
            what, before, now = f"{what}.{key}", before.get(key), now.get(key)
    raise InputError(
        f"{folder} cannot be resumed: its {what} was {_short(before)} and is {_short(now)} now",
        _SAME,
    )


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 300 else f"{text[:300]}…"
