"""Conversion of a study at a scale to the specification of a run."""

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from fscost import profile, wear, workload
from fscost.errors import HostError, InputError, did_you_mean
from fscost.profile import Profile
from fscost.run import RunSpec, StoppingRule, device_models
from fscost.study.model import Need, Scale, Study
from fscost.workload.model import Workload

_JUDGED_REPETITIONS = 2
"""Minimum repetitions of a judged study, because fewer decide nothing. On a busy host, a study may
therefore exceed its time limit."""


def scale_of(study: Study, name: str) -> Scale:
    """Return the scale of this name."""
    if name not in study.scales:
        raise InputError(
            f"study {study.name} has no scale '{name}'", f"use --scale {' or '.join(study.scales)}"
        )
    return study.scales[name]


def plan(
    study: Study,
    scale: Scale,
    folder: Path,
    *,
    seed: int = 0,
    options: Mapping[str, str] | None = None,
    source: Path | None = None,
    kernels: Sequence[str] = (),
    modules: Sequence[str] = (),
    disks: Sequence[str] = (),
    only: Sequence[str] = (),
    min_repetitions: int | None = None,
    max_repetitions: int | None = None,
    max_minutes: float | None = None,
    resume: bool = False,
    trust: bool = False,
    command_line: Sequence[str] = (),
) -> RunSpec:
    """Plan one run of the profiles, interleaved, under each of `kernels`. `options` are options of
    the workload and override those of the scale, as `source` does, and `disks` for each disk.
    `only`: short names of the profiles to run; all but the optional ones if empty."""
    most = max_repetitions
    if most is None:
        most = max(min_repetitions or 0, scale.max_repetitions)
    least = min(scale.min_repetitions, most) if min_repetitions is None else min_repetitions
    given = dict(options or {})
    asked = [profile.parse_disk(text) for text in disks]
    of_scale = [profile.parse_disk(text) for text in scale.disks]
    chosen = _chosen(study, only)
    used = {disk.name for each in chosen for disk in each.disks}
    of_scale = [
        each
        for each in of_scale
        if each.name in used and all(each.name != other.name for other in asked)
    ]
    named = profile.with_run_disks(chosen, [*of_scale, *asked])
    profiles = tuple(each for found in named for each in profile.on_kernels(found, kernels))
    return RunSpec(
        profiles=profiles,
        device_models=device_models(profiles),
        workload=_workload(study, scale, seed, given, source),
        folder=folder,
        seed=seed,
        stopping=StoppingRule(
            least,
            most,
            scale.max_minutes if max_minutes is None else max_minutes,
            whole_repetitions=min(_JUDGED_REPETITIONS, most),
        ),
        disk_size_bytes=scale.disk_mib << 20,
        probe_interval_ms=study.probe_interval_ms,
        ssd=study.ssd,
        wear_device=_wear_device(study, chosen),
        replay=study.replay,
        resume=resume,
        trust=trust,
        name=f"study {study.name}",
        command_line=tuple(command_line),
        request={
            "study": study.name,
            "scale": scale.name,
            "set": given,
            "source": "" if source is None else str(source),
            "kernel": list(kernels),
            "modules": list(modules),
            "disk": list(disks),
            "profile": list(only),
        },
    )


def _chosen(study: Study, only: Sequence[str]) -> list[Profile]:
    """Return the profiles with these short names, in the study's order; all but the optional ones
    if there are none."""
    for name in only:
        if name not in study.profiles:
            remedy = did_you_mean(name, study.profiles) or f"profiles: {', '.join(study.profiles)}"
            raise InputError(f"study {study.name} has no profile '{name}'", remedy)
    wanted = frozenset(only) or study.profiles.keys() - study.optional
    return [found for name, found in study.profiles.items() if name in wanted]


def _wear_device(study: Study, chosen: Sequence[Profile]) -> wear.Device | None:
    """Return the device to wear if a profile that runs is one of those that wear it."""
    is_worn = any(study.profiles[name] in chosen for name in study.worn)
    return wear.find(study.wear) if is_worn else None


def missing(needs: Sequence[Need]) -> list[Need]:
    """List the needs that this host does not meet."""
    return [
        need
        for need in needs
        if (need.tool and shutil.which(need.tool) is None)
        or (need.path and not _matches(need.path))
    ]


def _matches(pattern: str) -> list[Path]:
    """List the paths that match an absolute pattern, sorted."""
    return sorted(Path("/").glob(pattern.lstrip("/")))


def _workload(
    study: Study, scale: Scale, seed: int, options: Mapping[str, str], source: Path | None
) -> Workload:
    own = () if source is None else (scale.source,)
    lacking = missing([need for need in scale.needs if need.path not in own])
    if lacking:
        packages = " ".join(dict.fromkeys(need.package for need in lacking if not need.remedy))
        remedies = [f"apt install {packages}"] * bool(packages)
        remedies += [need.remedy for need in lacking if need.remedy]
        what = ", ".join(need.tool or need.path for need in lacking)
        raise HostError(
            f"study {study.name} at scale {scale.name} needs {what}", " && ".join(remedies)
        )
    if source is None and scale.source:
        source = _matches(scale.source)[-1]
    chosen = workload.resolve(
        study.workload,
        scale=scale.factor,
        seed=seed,
        source=source,
        options={**scale.options, **options},
    )
    return replace(chosen, steps=(*chosen.steps, *study.steps))
