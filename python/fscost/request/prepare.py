"""Preparation of a request: its specification, its lab and the lock that excludes other runs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from fscost import run
from fscost.request import cluster
from fscost.request.labs import choose_lab, lock_of
from fscost.request.model import AUTO, Place, Request
from fscost.request.real_devices import (
    real_device,
    real_disks,
    refuse_unneeded,
    with_real_disks,
)
from fscost.request.request import to_spec
from fscost.run import Executor, Local, RunSpec


@dataclass(frozen=True)
class Prepared:
    """Arguments of `run.execute`."""

    spec: RunSpec
    executor: Executor
    lock: str


def prepared(
    asked: Request, place: Place, say: Callable[[str], None], command_line: Sequence[str]
) -> Prepared:
    """Resolve everything without running anything. `say` is called with each remark for the
    user."""
    if place.on_cluster is not None:
        cluster.refuse_local(asked, crash=place.crash)
    cluster.check_store(place)
    claimed = real_device(asked.device, place.erase_device, place.force, say)
    spec = to_spec(
        asked,
        place.resume or place.out or Path(),
        resume=place.resume is not None,
        trust=place.trust,
        command_line=command_line,
        device_bytes=None if claimed is None else claimed.size_bytes,
    )
    disks = real_disks(spec.profiles, place.erase_device, place.force, say)
    refuse_unneeded([claimed, *disks.values()], place.erase_device, place.force)
    spec = with_real_disks(spec, disks, is_sized=asked.size is not None)
    if place.resume is None and place.out is None:
        spec = replace(spec, folder=run.default_folder(spec.name or spec.workload.name))
    for one, other in run.same_profiles(spec.profiles):
        same = f"'{one}' and '{other}' are the same profile"
        say(f"{same}: any difference between them is noise")
    lock = lock_of(place.lab)
    if place.on_cluster is not None:
        spec = replace(spec, store=place.recordings_to or "")
        name = cluster.DEFAULT_LAB if place.lab == AUTO else place.lab
        lab = choose_lab(name, spec, modules=asked.modules, say=say)
        return Prepared(spec, cluster.executor(place.on_cluster, lab, lock, spec, say), lock)
    lab = choose_lab(place.lab, spec, claimed, asked.modules, disks, say=say)
    return Prepared(spec, Local(lab.make(say, claimed, disks)), lock)
