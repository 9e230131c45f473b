"""Runs whose workload makes promises, which a power cut may break."""

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from fscost.cli.lines import say
from fscost.request.model import Place, Request
from fscost.request.prepare import Prepared, prepared
from fscost.request.request import absolute, with_range
from fscost.results import POWER_CUTS

BESIDE, _ROUNDS = "files", 3
"""Workload of the power cuts beside another run."""
_SIZE = "512M"


def request(
    on: Sequence[str],
    prepare: Sequence[str],
    command: Sequence[str],
    seed: int,
    kernels: Sequence[str] = (),
) -> Request:
    """Return the run that makes the promises."""
    found = Request(
        on=tuple(on),
        prepare=tuple(prepare),
        command=tuple(command),
        kernel=tuple(kernels),
        name="crash",
        size=_SIZE,
        seed=seed,
        min_repetitions=1,
        max_repetitions=1,
    )
    return absolute(with_range(found, ["min_repetitions", "max_repetitions"]))


def promising(
    on: Sequence[str],
    workload: str,
    rounds: int,
    seed: int,
    kernels: Sequence[str] = (),
    *,
    is_native: bool = True,
) -> Request:
    """Return the run of a workload that says itself what it promised."""
    from fscost.crash.workloads import named
    from fscost.lab.vm import seen_python

    program, python = named(workload), sys.executable if is_native else seen_python()
    prepare, run = program.prepare(rounds, python), program.run(rounds, python)
    return request(on, [prepare], [run], seed, kernels)


def beside(found: Prepared, asked: Request) -> Prepared | None:
    """Return the run that cuts the power of another run's profiles, in its folder and lab: of those
    whose states can be examined there; None if there are none."""
    from fscost.crash.explore import TYPES
    from fscost.crash.families import FAMILIES, family
    from fscost.lab.vm import VmLab

    is_native = not isinstance(found.executor.site, VmLab)
    # Several kernels share a profile, and are in its name.
    names = dict.fromkeys(
        each.name.removesuffix(f" @{Path(each.kernel).name}")
        for each in found.spec.profiles
        if (each.type in TYPES and not each.array if is_native else family(each.type) in FAMILIES)
    )
    if not names:
        return None
    wanted = promising(list(names), BESIDE, _ROUNDS, asked.seed, asked.kernel, is_native=is_native)
    place = Place("native" if is_native else "vm", found.spec.folder / POWER_CUTS)
    return prepared(replace(wanted, modules=asked.modules), place, say, sys.argv)
