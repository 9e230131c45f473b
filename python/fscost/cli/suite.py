"""Suite files: profiles, workloads and stop rules of several runs, in TOML."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from fscost import devices, files, typed
from fscost.cli.variants import combined
from fscost.errors import InputError, did_you_mean
from fscost.request.model import Request
from fscost.request.request import with_range
from fscost.run import slug
from fscost.view.changes import Condition

LONGEST_BYTES = 1 << 20
MOST_WORKLOADS = 256
SEPARATOR = ", "
"""Between the name of a workload and the values of its lists, in the name of a run."""
_RENAMED = {"profiles": "on", "builtin": "workload", "steps": "step"}
_ONE_OF = ("command", "steps", "builtin")
_BOUNDS = ("min_repetitions", "max_repetitions")
_HERE = ("command", "step", "prepare", "setup", "conclude", "cleanup", "env")
"""Fields in which {here} is the folder of the suite file."""


class _Table(BaseModel):
    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, use_attribute_docstrings=True
    )


class Stop(_Table):
    """Rule that ends the repetitions."""

    repetitions: int | None = Field(None, ge=1)
    """Exact number of repetitions, in place of both bounds."""
    min_repetitions: int | None = Field(None, ge=1)
    """Minimum repetitions (3)."""
    max_repetitions: int | None = Field(None, ge=1)
    """Maximum repetitions (10)."""
    max_minutes: float | None = Field(None, gt=0)
    """Time limit of a run; the first repetition is always completed (15)."""
    metric: str | None = None
    """Metric whose interval decides (device_write_bytes)."""
    precision: float | None = Field(None, gt=0, lt=1)
    """Half-width of the interval that ends a run, relative to the median: 0.02 is ± 2 %."""

    @model_validator(mode="after")
    def _exact_or_bounds(self) -> Self:
        bounds = (self.min_repetitions, self.max_repetitions)
        if self.repetitions is not None and bounds != (None, None):
            raise ValueError("repetitions sets both min_repetitions and max_repetitions")
        return self

    def rules(self) -> dict[str, Any]:
        """Return the rules that are set, an exact number as both bounds."""
        found = self.model_dump(exclude_none=True)
        exact = found.pop("repetitions", None)
        return found if exact is None else found | dict.fromkeys(_BOUNDS, exact)


class _Options(_Table):
    """Options of `fscost compare`, under the same names."""

    profiles: list[str] | None = Field(None, min_length=1)
    """Profiles as mkfs and mount spell them, as after --on; braces expand to several."""
    design: Literal["full", "screening"] | None = None
    """Combinations of the choices in braces: all, or few that show each choice's own effect."""
    baseline: str | None = None
    """Profile that ratios are computed against; the first by default."""
    stop: Stop | None = None
    """Rule that ends the repetitions."""
    seed: int | None = None
    """Seed for all random choices."""
    size: str | None = None
    """Size of the disk, for example 4G."""
    fill: str | None = None
    """Share of the disk to fill before the workload, for example 90%."""
    age: int | None = None
    """Rounds of creating and deleting files before the workload."""
    aged: float | None = None
    """Days by which the times of prepared files are set back."""
    settle: Literal["sync", "remount", "none"] | None = None
    """End of each phase: sync, remount or none."""
    drop_caches: bool | None = None
    """Empty the page cache before each phase."""
    probe: int | None = None
    """Interval of the pause probe in milliseconds."""
    keep: Literal["all", "one", "none"] | None = None
    """Recordings kept: all, one of each profile, none."""
    timeout: str | None = None
    """Time limit for each cell, for example 90s."""
    max_recording: str | None = None
    """Largest recording of a cell, for example 20G."""
    writable: list[str] | None = None
    """Folders of this machine that the command may write to; native lab."""
    network: bool | None = None
    """Give the command this machine's network; native lab."""
    fail_if: list[str] | None = None
    """Conditions of `fscost diff --fail-if`: with --against, exit 1 if one is true of the run."""
    ssd: str | None = None
    """Device whose NAND bytes and life are computed."""
    kernel: list[str] | None = None
    """Kernels of guests: versions, or paths of images."""
    modules: list[str] | None = None
    """Folder of modules of each kernel that is an image."""
    disk: list[str] | None = None
    """NAME=MODEL[,size=SIZE]: give a disk the timing of a device."""
    logical_block_size: Literal[512, 1024, 2048, 4096] | None = None
    """Logical sector size in bytes (512)."""
    physical_block_size: Literal[512, 1024, 2048, 4096] | None = None
    """Physical sector size in bytes (4096)."""


class WorkloadEntry(_Options):
    """A workload: a command, or a built-in one. Any option of the suite may be set for it alone."""

    command: str | None = None
    """Command for the shell, run on the file system; {here} is the folder of the suite file."""
    steps: dict[str, str] | None = Field(None, min_length=1)
    """Commands that are measured one after another, by the names of their phases."""
    builtin: str | None = None
    """A built-in workload, as after --workload."""
    scale: float | None = None
    """Size factor of a built-in workload; 1 is its default size."""
    source: str | None = None
    """Repository or tarball that a built-in workload uses."""
    set: dict[str, str | int] | None = None
    """Options of a built-in workload."""
    setup: list[str] | None = None
    """Commands on this machine, once before the run."""
    prepare: list[str] | None = None
    """Commands before the measured one in each cell, not measured."""
    conclude: list[str] | None = None
    """Commands after the measured one in each cell, not measured."""
    cleanup: list[str] | None = None
    """Commands on this machine, once after the run."""
    env: dict[str, str] | None = None
    """Environment variables of the command."""
    ignore_failure: bool | None = None
    """Measure the command even if it exits with an error."""
    warmup: int | None = Field(None, ge=0)
    """Runs of the command before the measured one in each cell, not measured (0)."""
    per: str | None = None
    """Number and name of the command's operations: 500:tx."""
    lists: dict[str, Annotated[list[str | int], Field(min_length=1)]] | None = None
    """Values of {NAME} in the other fields, as after -L: one run for each combination."""


class Suite(_Options):
    """A suite of runs for `fscost run`: one run for each workload."""

    version: Literal[1]
    """Version of this format."""
    name: str | None = None
    """Prefix of each run's name."""
    lab: Literal["native", "vm"] | None = None
    """Lab: this kernel as root, or guests."""
    workloads: dict[str, WorkloadEntry] = Field(min_length=1, max_length=MOST_WORKLOADS)
    """Workloads by name."""


def load(path: Path) -> Suite:
    """Load a suite file. InputError names the file, the field and the remedy."""
    try:
        with files.open_regular(path) as file:
            content = files.content(file, LONGEST_BYTES)
    except OSError as error:
        raise InputError(
            f"{path}: {error.strerror}", "name a suite file (docs/suites.md)"
        ) from None
    if content is None:
        raise InputError(f"{path} is larger than {LONGEST_BYTES >> 20} MiB", "name a suite file")
    try:
        table = typed.toml(content.decode())
    except ValueError as error:
        raise InputError(f"{path}: {error}", "write it as docs/suites.md says") from None
    try:
        return typed.read(Suite, table)
    except typed.InvalidError as error:
        raise _told(path, error) from None


def _told(path: Path, error: typed.InvalidError) -> InputError:
    if error.known:
        word = error.place.rpartition(".")[2]
        close = _elsewhere(word, error.known) or did_you_mean(word, error.known)
        remedy = close or f"fields: {', '.join(error.known)}"
        return InputError(f"{path}: {error.place}: {error.what}", remedy)
    remedy = "`fscost schema suite` has every field"
    if error.what == "is missing":
        remedy = f"add {error.place}"
    if error.place == "version":
        remedy = "write version = 1"
    return InputError(f"{path}: {error}", remedy)


def _elsewhere(option: str, fields: Sequence[str]) -> str | None:
    """Return what an option of `fscost compare` is called in a suite, if these fields have it under
    another name or in a table."""
    for field, renamed in _RENAMED.items():
        if option == renamed and field in fields:
            return f"write {field} in place of {option}"
    if option in Stop.model_fields and "stop" in fields:
        return f"write it in the table stop: stop = {{ {option} = … }}"
    return None


def requests(suite: Suite, path: Path) -> dict[str, Request]:
    """Return the request of each run, by name: a workload, or a workload with values of its lists.
    Relative paths are relative to the folder of the suite's file, `path`."""
    for name, entry in suite.workloads.items():
        given = [key for key in _ONE_OF if getattr(entry, key) is not None]
        if len(given) != 1:
            there = f"sets {' and '.join(given)}" if given else "sets no command"
            raise InputError(
                f"{path}: workloads.{name} {there}", f"give one of {', '.join(_ONE_OF)}"
            )
    folder = path.absolute().parent
    found: dict[str, Request] = {}
    for name, entry in suite.workloads.items():
        request = _request(suite, name, entry)
        lists = [
            [(key, str(value)) for value in values] for key, values in (entry.lists or {}).items()
        ]
        try:
            several = combined({"": request}, lists)
        except InputError as error:
            raise InputError(f"{path}: workloads.{name}: {error.what}", error.remedy) from None
        found |= {
            f"{name}{SEPARATOR}{each}" if each else name: _placed(own, folder)
            for each, own in several.items()
        }
    by_folder: dict[str, str] = {}
    for name in found:
        other = by_folder.setdefault(slug(name), name)
        if other != name:
            raise InputError(
                f"{path}: workloads {other!r} and {name!r} would share the folder {slug(name)}",
                "rename one of them",
            )
    return found


def conditions(suite: Suite, run: str) -> list[Condition]:
    """Return the conditions of a run: its workload's own, or those of the suite."""
    [entry] = [entry for name, entry in suite.workloads.items() if is_of(run, name)]
    texts = suite.fail_if if entry.fail_if is None else entry.fail_if
    return [Condition.parse(text) for text in texts or []]


def is_of(run: str, workload: str) -> bool:
    """Return whether a run is one of a workload; a workload with lists has several."""
    return run == workload or run.startswith(workload + SEPARATOR)


def _request(suite: Suite, name: str, entry: WorkloadEntry) -> Request:
    of_the_suite = {"version", "name", "lab", "workloads", "stop", "fail_if"}
    common = suite.model_dump(exclude_none=True, exclude=of_the_suite)
    own = entry.model_dump(exclude_none=True, exclude={"stop", "lists", "fail_if"})
    stop: dict[str, Any] = {}
    for options in (suite, entry):
        stop |= {} if options.stop is None else options.stop.rules()
    found: dict[str, Any] = {}
    for key, value in {**common, **own, **stop}.items():
        found[_RENAMED.get(key, key)] = _value(key, value)
    found["name"] = f"{suite.name}: {name}" if suite.name else name
    return with_range(Request(**found), list(found))


def _value(key: str, value: Any) -> Any:
    if key in ("env", "set", "steps"):
        value = [f"{name}={each}" for name, each in value.items()]
    elif key == "command":
        value = [value]
    return tuple(value) if isinstance(value, list) else value


def _placed(request: Request, folder: Path) -> Request:
    """Let all paths start from the suite's folder, those in values of lists, too."""
    found: dict[str, Any] = {
        key: tuple(each.replace("{here}", str(folder)) for each in getattr(request, key))
        for key in _HERE
    }
    for key in ("modules", "writable"):
        found[key] = tuple(str(folder / each) for each in getattr(request, key))
    found["kernel"] = tuple(str(folder / each) if "/" in each else each for each in request.kernel)
    found["disk"] = tuple(_model(each, folder) for each in request.disk)
    if request.source is not None:
        found["source"] = str(folder / request.source)
    if request.ssd is not None and devices.is_file_name(request.ssd):
        found["ssd"] = str(folder / request.ssd)
    return replace(request, **found)


def _model(text: str, folder: Path) -> str:
    disk, equals, rest = text.partition("=")
    model, comma, size = rest.partition(",")
    return f"{disk}{equals}{folder / model}{comma}{size}" if devices.is_file_name(model) else text
