"""Runs whose cells are executed by the machines of a cluster."""

from collections.abc import Callable

from fscost import matrix
from fscost.errors import InputError
from fscost.files import stores
from fscost.lab.spec import LabSpec
from fscost.request.model import Place, Request
from fscost.run import Executor, RunSpec

DEFAULT_LAB = "vm"
"""Lab of a cluster's machines: only guests write the same bytes on all of them."""


def refuse_local(asked: Request, *, crash: bool) -> None:
    """Refuse options that are about this machine."""
    of_this_machine = {
        "--device": asked.device is not None,
        "--disk with a device": any("=/dev/" in each for each in asked.disk),
        "--writable": bool(asked.writable),
        "--crash": crash,
    }
    for option, is_given in of_this_machine.items():
        if is_given:
            raise InputError(
                f"{option} is about this machine, and --on-cluster runs cells on others",
                "leave one of the two out",
            )


def check_store(place: Place) -> None:
    """Check the store for recordings, before anything runs."""
    if place.recordings_to is None:
        return
    if place.on_cluster is None:
        raise InputError(
            "--recordings-to is about the machines of a cluster",
            "leave it out: the run's folder holds the recordings (--out, --keep)",
        )
    stores.check(place.recordings_to)


def executor(
    address: str, lab: LabSpec, lock: str, spec: RunSpec, say: Callable[[str], None]
) -> Executor:
    """Return the executor of a run's cells on the Ray cluster at `address`. It connects when the
    run begins."""
    from fscost.run.executor.ray import RayCluster
    from fscost.run.executor.remote import Remote
    from fscost.run.executor.survey import Question

    cells = next(matrix.repetitions(spec.profiles, spec.workload, spec.seed))
    written = spec.workload.write_bytes_estimate or 0
    question = Question(lab, lock, tuple(cells), spec.disk_size_bytes, written, spec.store)
    return Remote(RayCluster(address, say), question, say)
