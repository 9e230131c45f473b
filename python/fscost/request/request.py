"""Request of `fscost compare`: resumed from its stored form, or resolved to a specification."""

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

from fscost import devices, profile, wear, workload
from fscost.errors import InputError
from fscost.profile.model import Profile
from fscost.quantity import parse_duration_s, parse_size_bytes
from fscost.request.model import DEFAULT_PROFILES, DEFAULT_WORKLOAD, Request
from fscost.run import RunSpec, StoppingRule, device_models
from fscost.view.per import parse_per
from fscost.workload.model import Workload

_LONGEST_NAME = 80
_INTERPRETERS = ("bash", "node", "perl", "python", "python3", "ruby", "sh")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


_MOST_PROBE_MS = 3_600_000
STOPPING = ("min_repetitions", "max_repetitions", "max_minutes", "metric", "precision")
"""Options that may change on resume: they determine the number of cells, not their content."""


LIMITS = ("timeout", "max_recording")
"""Options that may also change on resume: they limit a cell, but do not determine its content."""


def resumed(
    stored: Mapping[str, Any], asked: Request, given: Sequence[str], folder: Path
) -> Request:
    """Return the stored request, with those stopping and limit options of `asked` that are in
    `given`. Any other given option must match the stored request, otherwise InputError."""
    known = get_type_hints(Request)
    if set(stored) != set(known):
        raise InputError(
            f"{folder} was not made by this version of `fscost compare`",
            "resume it with the command and version that made it",
        )
    values: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in stored.items()
    }
    for name, value in values.items():
        if not _fits(value, known[name]):
            raise InputError(
                f"{folder}: its manifest's request.{name} is damaged: {value!r}", "start a new run"
            )
    before = Request(**values)
    for name in given:
        if name in STOPPING + LIMITS:
            before = replace(before, **{name: getattr(asked, name)})
        elif name in known and getattr(before, name) != getattr(asked, name):
            what = (
                "this command"
                if name == "command"
                else f"--{name.replace('_', '-')} {_spelled(getattr(asked, name))}"
            )
            raise InputError(
                f"{what} differs from the original options of {folder}:"
                f" {_spelled(getattr(before, name)) or 'nothing'}",
                "leave it out, or start a new run",
            )
    return with_range(before, given)


def with_range(request: Request, given: Sequence[str]) -> Request:
    """Move the bound of repetitions that was not given, if it contradicts the other."""
    least, most = request.min_repetitions, request.max_repetitions
    if "min_repetitions" not in given and 1 <= most < least:
        return replace(request, min_repetitions=most)
    if "max_repetitions" not in given and least > most:
        return replace(request, max_repetitions=least)
    return request


def _spelled(value: object) -> str:
    """Spell a value as on a command line."""
    if isinstance(value, tuple):
        return shlex.join(value)
    return "" if value is None else str(value)


def _fits(value: Any, kind: Any) -> bool:
    if get_origin(kind) is tuple:
        return isinstance(value, tuple) and all(isinstance(entry, str) for entry in value)
    allowed = get_args(kind) or (kind,)
    return type(value) in allowed or (type(value) is int and float in allowed)


def to_spec(
    request: Request,
    folder: Path,
    *,
    resume: bool,
    command_line: Sequence[str],
    device_bytes: int | None = None,
    trust: bool = False,
) -> RunSpec:
    """Resolve the request to a run specification. InputError if a part of it cannot be resolved."""
    if not -(1 << 63) <= request.seed < 1 << 63:
        raise InputError(f"--seed {request.seed} does not fit 64 bits", "give a smaller number")
    if request.probe is not None and request.probe > _MOST_PROBE_MS:
        raise InputError(f"--probe {request.probe} is too long", f"give at most {_MOST_PROBE_MS:,}")
    chosen = _workload(request)
    if request.aged is not None:
        chosen = workload.aged(chosen, request.aged)
    if request.age is not None:
        chosen = workload.churned(chosen, request.age)
    if request.fill is not None:
        chosen = workload.filled(chosen, request.fill)
    if request.per is not None:
        parse_per(request.per)
    profiles = _profiles(request)
    return RunSpec(
        profiles=profiles,
        workload=chosen,
        folder=folder,
        seed=request.seed,
        baseline=(
            ""
            if request.baseline is None
            else profile.on_kernels(_baseline(request.baseline, profiles), request.kernel)[0].name
        ),
        stopping=StoppingRule(**{name: getattr(request, name) for name in STOPPING}),
        disk_size_bytes=device_bytes or _size_bytes(request),
        settle=request.settle,
        drop_caches=request.drop_caches,
        probe_interval_ms=request.probe,
        keep=request.keep,
        device=None if request.device is None else Path(request.device).resolve(),
        timeout_s=None if request.timeout is None else parse_duration_s(request.timeout),
        max_recording_bytes=(
            None if request.max_recording is None else parse_size_bytes(request.max_recording)
        ),
        writable=tuple(Path(each) for each in request.writable),
        network=request.network,
        wear_device=_ssd(request),
        device_models=device_models(profiles),
        resume=resume,
        trust=trust,
        name=_name(request),
        command_line=tuple(command_line),
        request=request.to_json(),
    )


def most_cells(request: Request) -> int:
    """Return the number of cells of a run that takes all its repetitions."""
    expanded = profile.expand_all(request.on or DEFAULT_PROFILES, request.design)
    return len(expanded) * max(1, len(request.kernel)) * request.max_repetitions


def _profiles(request: Request) -> tuple[Profile, ...]:
    found = [
        replace(
            _sectors(profile.resolve(each.spelling), request), sweep=each.sweep, levels=each.levels
        )
        for each in profile.expand_all(request.on or DEFAULT_PROFILES, request.design)
    ]
    found = list(profile.with_run_disks(found, [profile.parse_disk(each) for each in request.disk]))
    return tuple(each for one in found for each in profile.on_kernels(one, request.kernel))


def _baseline(text: str, profiles: Sequence[Profile]) -> Profile:
    """Return the profile with this spelling, or with this name before its spelling."""
    named = (each for each in profiles if each.name == text and not each.kernel)
    return next(named, None) or profile.resolve(text)


def _ssd(request: Request) -> wear.Device | None:
    if request.ssd is None:
        return None
    if request.device is not None:
        raise InputError(
            "--ssd and --device cannot be combined",
            "drop --ssd: a real device is not recorded, so nothing can be replayed",
        )
    return wear.find(request.ssd)


def _size_bytes(request: Request) -> int:
    """Parse --size. Without it, return 0: the disk is as large as the workload needs."""
    if request.size is None:
        return 0
    try:
        size = parse_size_bytes(request.size)
    except InputError as error:
        raise InputError(f"--size {error.what}", error.remedy) from None
    if size == 0:
        raise InputError(f"--size {request.size} is not above 0", "write it as 4G, 512M or 1T")
    return size


def _name(request: Request) -> str:
    name = request.name
    if name is None:
        return ""
    if not name.strip() or not name.isprintable() or len(name) > _LONGEST_NAME:
        raise InputError(
            f"--name {name[:_LONGEST_NAME]!r} is not a valid name",
            f"give 1 to {_LONGEST_NAME} printable characters",
        )
    return name


def _workload(request: Request) -> Workload:
    if request.command or request.step:
        _refuse_for_commands(request)
    if request.step:
        return workload.steps(
            _steps(request.step),
            prepare=list(request.prepare),
            conclude=list(request.conclude),
            env=_env(request.env),
            ignore_failure=request.ignore_failure,
        )
    if request.command:
        if not request.command[0].strip():
            raise InputError(
                "the command is empty", "write it after --, as in: fscost compare -- make -j2"
            )
        return workload.command(
            _words_or_shell(request.command, is_prepared=bool(request.prepare)),
            prepare=list(request.prepare),
            conclude=list(request.conclude),
            env=_env(request.env),
            ignore_failure=request.ignore_failure,
            warmup=request.warmup,
        )
    for option, given, remedy in (
        ("--prepare", request.prepare, "drop it: built-in workloads prepare themselves"),
        ("--conclude", request.conclude, "drop it: built-in workloads have their own steps"),
        ("--env", request.env, "drop it: built-in workloads have their own environment"),
        ("--warmup", request.warmup, "drop it: built-in workloads have their own steps"),
        (
            "--ignore-failure",
            request.ignore_failure,
            "drop it: a built-in workload that fails is an error",
        ),
    ):
        if given:
            raise InputError(f"{option} requires a command after --", remedy)
    return workload.resolve(
        DEFAULT_WORKLOAD if request.workload is None else request.workload,
        scale=request.scale,
        seed=request.seed,
        source=None if request.source is None else Path(request.source),
        options=parse_options(request.set),
    )


def _refuse_for_commands(request: Request) -> None:
    for option, value in (
        ("--workload", request.workload),
        ("--source", request.source),
        ("--set", request.set),
        ("--scale", request.scale),
    ):
        if value not in (None, ()):
            raise InputError(
                f"{option} requires a built-in workload, not a command after -- or --step",
                "leave one of the two out",
            )
    if request.command and request.step:
        raise InputError(
            "--step and a command after -- cannot be combined",
            "name the command, too: --step NAME='COMMAND'",
        )
    if request.step and request.warmup:
        raise InputError("--warmup repeats one command, and --step gives several", "drop --warmup")


def _steps(texts: Sequence[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for text in texts:
        name, equals, command = text.partition("=")
        if not equals:
            raise InputError(f"--step {text!r} is not NAME=COMMAND", "write --step NAME='COMMAND'")
        if name in found:
            raise InputError(f"--step {name} is given twice", "give each step a name of its own")
        found[name] = command
    return found


def _words_or_shell(command: Sequence[str], *, is_prepared: bool) -> str | list[str]:
    """Return the command as text for the shell if it is one word with whitespace, unless a program
    has that name; otherwise as words."""
    is_shell = len(command) == 1 and any(character.isspace() for character in command[0].strip())
    is_text = is_shell and not Path(command[0]).exists()
    program = _left_behind(command[0].split() if is_text else command)
    if program is not None and not is_prepared:
        raise InputError(
            f"{program} does not exist where the command starts: in the new, empty file system",
            f"write {{here}}/{program}, or copy it with --prepare 'cp -r {{here}}/. .'",
        )
    return command[0] if is_text else list(command)


def _left_behind(words: Sequence[str]) -> Path | None:
    """Return a program, or the script of an interpreter, that is named as a file of this folder."""
    is_script = Path(words[0]).name in _INTERPRETERS and len(words) > 1
    program = Path(words[1] if is_script else words[0])
    is_path = is_script or "/" in words[0]
    return program if is_path and not program.is_absolute() and program.is_file() else None


def _env(texts: Sequence[str]) -> dict[str, str]:
    found = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not _VARIABLE.fullmatch(key):
            raise InputError(f"--env {text!r} sets no variable", "write --env KEY=VALUE")
        found[key] = value
    return found


def absolute(asked: Request) -> Request:
    """Replace `{here}` and relative paths, so that the request can be repeated from another
    folder."""
    return replace(
        asked,
        command=_with_here(asked.command),
        step=_with_here(asked.step),
        setup=_with_here(asked.setup),
        prepare=_with_here(asked.prepare),
        conclude=_with_here(asked.conclude),
        cleanup=_with_here(asked.cleanup),
        source=asked.source and str(Path(asked.source).absolute()),
        device=asked.device and str(Path(asked.device).absolute()),
        writable=tuple(str(Path(each).resolve()) for each in asked.writable),
        ssd=_absolute_device(asked.ssd),
        kernel=tuple(absolute_images(asked.kernel)),
        modules=tuple(str(Path(each).absolute()) for each in asked.modules),
        disk=tuple(map(_absolute_model, asked.disk)),
    )


def _with_here(texts: Sequence[str]) -> tuple[str, ...]:
    """Replace `{here}` with the folder in which fscost was started."""
    return tuple(
        text.replace("{here}", str(Path.cwd())) if "{here}" in text else text for text in texts
    )


def _absolute_device(name: str | None) -> str | None:
    """Return the value of --ssd: an absolute path for a file, or the name as given."""
    return str(Path(name).absolute()) if name is not None and devices.is_file_name(name) else name


def absolute_images(kernels: Sequence[str]) -> list[str]:
    """Return the values of `--kernel`: an absolute path for an image, or the version as given."""
    return [str(Path(each).absolute()) if "/" in each else each for each in kernels]


def _absolute_model(text: str) -> str:
    """Return the value of `--disk`, with an absolute path if the model is a file."""
    disk, equals, rest = text.partition("=")
    model, comma, size = rest.partition(",")
    if not devices.is_file_name(model):
        return text
    return f"{disk}{equals}{Path(model).absolute()}{comma}{size}"


def parse_options(texts: Sequence[str]) -> dict[str, str]:
    """Parse the values of `--set`."""
    found: dict[str, str] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not key or not equals:
            raise InputError(f"--set {text!r} is not KEY=VALUE", "write --set KEY=VALUE")
        if key in found:
            raise InputError(f"--set {text!r} repeats a key", "set each key once")
        found[key] = value
    return found


def _sectors(found: Profile, request: Request) -> Profile:
    logical, physical = request.logical_block_size, request.physical_block_size
    if logical is None and physical is None:
        return found
    for option, value in (("--logical-block-size", logical), ("--physical-block-size", physical)):
        if value is not None and value not in (512, 1024, 2048, 4096):
            raise InputError(
                f"{option} {value} is not a sector size", "give 512, 1024, 2048 or 4096"
            )
    disks = []
    for disk in found.disks:
        logical_bytes = logical or disk.logical_block_bytes
        physical_bytes = physical or max(disk.physical_block_bytes, logical_bytes)
        if physical_bytes < logical_bytes:
            raise InputError(
                f"--physical-block-size {physical_bytes} is below the logical {logical_bytes}",
                "make it as large, or larger",
            )
        disks.append(
            replace(disk, logical_block_bytes=logical_bytes, physical_block_bytes=physical_bytes)
        )
    return replace(found, disks=tuple(disks))
