"""A study at a scale → a run to be executed."""

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from fscost import profile, workload
from fscost.errors import HostError, InputError
from fscost.run import RunSpec, StoppingRule, device_models
from fscost.study.model import Need, Scale, Study
from fscost.workload.model import Workload

_JUDGED_REPETITIONS = 2
"""Fewer decide nothing: a study that a busy host has no time for takes longer instead."""


def scale_of(study: Study, name: str) -> Scale:
    """The scale of this name."""
    if name not in study.scales:
        raise InputError(
            f"study {study.name} has no scale '{name}'", f"--scale {' or '.join(study.scales)}"
        )
    return study.scales[name]


def plan(
    study: Study,
    scale: Scale,
    folder: Path,
    *,
    seed: int = 0,
    options: Mapping[str, str] | None = None,
    kernels: Sequence[str] = (),
    modules: Sequence[str] = (),
    min_repetitions: int | None = None,
    max_repetitions: int | None = None,
    max_minutes: float | None = None,
    resume: bool = False,
    trust: bool = False,
    command_line: Sequence[str] = (),
) -> RunSpec:
    """One run with all profiles, interleaved, under each of `kernels`. `options` are the
    workload's, and take the place of the scale's."""
    most = (
        max(min_repetitions or 0, scale.max_repetitions)
        if max_repetitions is None
        else max_repetitions
    )
    least = min(scale.min_repetitions, most) if min_repetitions is None else min_repetitions
    given = dict(options or {})
    disks = [profile.parse_disk(text) for text in scale.disks]
    named = profile.with_run_disks(list(study.profiles.values()), disks)
    profiles = tuple(each for found in named for each in profile.on_kernels(found, kernels))
    return RunSpec(
        profiles=profiles,
        device_models=device_models(profiles),
        workload=_workload(study, scale, seed, given),
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
        resume=resume,
        trust=trust,
        name=f"study {study.name}",
        command_line=tuple(command_line),
        request={
            "study": study.name,
            "scale": scale.name,
            "set": given,
            "kernel": list(kernels),
            "modules": list(modules),
        },
    )


def missing(needs: Sequence[Need]) -> list[Need]:
    """Those that this host has not got."""
    return [
        need
        for need in needs
        if (need.tool and shutil.which(need.tool) is None)
        or (need.path and not _matches(need.path))
    ]


def _matches(pattern: str) -> list[Path]:
    """Of an absolute pattern, sorted."""
    return sorted(Path("/").glob(pattern.lstrip("/")))


def _workload(study: Study, scale: Scale, seed: int, options: Mapping[str, str]) -> Workload:
    lacking = missing(scale.needs)
    if lacking:
        packages = " ".join(dict.fromkeys(need.package for need in lacking))
        what = ", ".join(need.tool or need.path for need in lacking)
        raise HostError(
            f"study {study.name} at scale {scale.name} needs {what}", f"apt install {packages}"
        )
    source = _matches(scale.source)[-1] if scale.source else None
    chosen = workload.resolve(
        study.workload,
        scale=scale.factor,
        seed=seed,
        source=source,
        options={**scale.options, **options},
    )
    return replace(chosen, steps=(*chosen.steps, *study.steps))
