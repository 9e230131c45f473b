"""A Ray cluster: one actor holds each machine for the run, and each cell is one of its tasks.

The machine that runs fscost is part of the cluster, because Ray connects a driver through a raylet
on its own machine.
"""

import pickle
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from fscost import host
from fscost.errors import FscostError, HostError, InputError
from fscost.files import stores
from fscost.run.executor import survey, worker
from fscost.run.executor.remote import Ended, Joined, Lost, LostError
from fscost.run.executor.survey import Question, Report, Reports
from fscost.run.measure import Task

AUTO = "auto"
_ANSWER_S = 20
"""Time for a cluster's head to answer. Without such a limit, `ray.init` waits for two minutes."""
_SURVEY_S = 900
"""Time for a machine to answer, which may have to fetch a kernel for guests first."""
_CLOSE_S = 10
_PATIENCE_S = 10
_Answer = TypeVar("_Answer")


@dataclass(frozen=True)
class Node:
    """A machine of the cluster, as Ray knows it."""

    name: str
    id: str
    cpus: float
    memory_bytes: float


class RayCluster:
    """Machines of a Ray cluster. The connection is made when the machines are first asked."""

    def __init__(self, address: str, say: Callable[[str], None]) -> None:
        self._address = address
        self._say = say
        self._nodes: dict[str, Node] = {}
        self._actors: dict[str, Any] = {}
        self._pending: dict[Any, tuple[str, int | None]] = {}
        """Machine and ticket of each answer that is awaited; no ticket for a machine that has yet
        to join."""

    def ask(self, question: Question) -> Reports:
        """Ask each machine whether it can run the cells of a run."""
        self._connect()
        found = self.each(
            same_version,
            host.fscost_version(),
            _answer,
            pickle.dumps(question),
            within_s=_SURVEY_S,
        )
        return {
            name: report if isinstance(report, str) else self._within_resources(name, report)
            for name, report in found.items()
        }

    def each(
        self, function: Callable[..., _Answer], *arguments: Any, within_s: float
    ) -> dict[str, _Answer | str]:
        """Call a function on each machine. Return its answers, or why there is none."""
        self._connect()
        import ray

        remote = ray.remote(function)
        asked = {
            name: remote.options(num_cpus=0, max_retries=0, scheduling_strategy=_on(node)).remote(
                *arguments
            )
            for name, node in self._nodes.items()
        }
        until = time.monotonic() + within_s
        found: dict[str, _Answer | str] = {}
        for name, answer in asked.items():
            try:
                found[name] = ray.get(answer, timeout=max(0, until - time.monotonic()))
            except ray.exceptions.RayError as error:
                found[name] = _why(error)
        return found

    def hire(self, question: Question, machines: Mapping[str, Report]) -> None:
        """Reserve machines. An actor takes all CPUs of a machine whose speed its cells measure, so
        that Ray starts nothing beside them; otherwise a CPU, and a guest's memory, for each
        lane."""
        import ray

        actor = ray.remote(worker.Worker)
        for name, report in machines.items():
            node = self._nodes[name]
            self._actors[name] = actor.options(
                num_cpus=report.lanes if report.is_same_everywhere else node.cpus,
                memory=report.lanes * report.lane_bytes,
                max_concurrency=report.lanes,
                max_restarts=0,
                max_task_retries=0,
                scheduling_strategy=_on(node),
            ).remote()
            self._pending[self._actors[name].open.remote(question)] = name, None

    def begin(self, machine: str, ticket: int, task: Task) -> None:
        """Begin a cell on a machine that has joined."""
        self._pending[self._actors[machine].run.remote(task)] = machine, ticket

    def next(self) -> Joined | Ended | Lost:
        """Wait for the next news."""
        import ray

        begin = time.monotonic()
        has_said = any(ticket is not None for _, ticket in self._pending.values())
        while True:
            # In short waits, so that Ctrl-C arrives.
            ready, _ = ray.wait(list(self._pending), num_returns=1, timeout=0.5)
            if ready:
                break
            if not has_said and time.monotonic() - begin > _PATIENCE_S:
                has_said = True
                self._say("waiting for a machine of the cluster: their CPUs or memory are in use")
        machine, ticket = self._pending.pop(ready[0])
        try:
            answer = ray.get(ready[0])
        except ray.exceptions.RayError as error:
            return Lost(machine, _why(error))
        if ticket is not None:
            return Ended(ticket, answer)
        return Joined(machine) if answer is None else Lost(machine, answer)

    def read(self, machine: str, cell: str, name: str, offset: int) -> bytes:
        """Read a piece of a file of a finished cell."""
        actor = self._actors.get(machine)
        if actor is None:
            raise LostError("it was lost before its files were read")
        import ray

        try:
            piece: bytes = ray.get(actor.read.remote(cell, name, offset))
        except ray.exceptions.RayError as error:
            raise LostError(_why(error)) from error
        return piece

    def forget(self, machine: str, cell: str) -> None:
        """Let the machine remove the files of a finished cell."""
        self._actors[machine].forget.remote(cell)

    def read_stored(self, machine: str, url: str, name: str, offset: int) -> bytes:
        """Read a piece of a recording in a store on the machine that put it there."""
        self._connect()
        import ray

        node = self._nodes.get(machine)
        if node is None:
            raise HostError(
                f"machine {machine!r}, which has the recording, is not in the cluster",
                "let it join again under the same name (`ray start --node-name`)",
            )
        on = {"num_cpus": 0, "max_retries": 0, "scheduling_strategy": _on(node)}
        asked = ray.remote(same_version).options(**on)
        try:
            piece: bytes | str = ray.get(
                asked.remote(host.fscost_version(), _piece, url, name, offset)
            )
        except ray.exceptions.RayError as error:
            piece = _why(error)
        if isinstance(piece, str):
            raise HostError(f"machine {machine}: {piece}", "correct it there, and fetch again")
        return piece

    def dismiss(self, machine: str) -> None:
        """Release a machine, and end the cells that it runs: its agents end with their parent."""
        import ray

        actor = self._actors.pop(machine, None)
        if actor is not None:
            ray.kill(actor)
        for answer in [each for each, (name, _) in self._pending.items() if name == machine]:
            del self._pending[answer]

    def close(self) -> None:
        """Release all machines, end their cells, and remove what those left behind."""
        if not self._nodes:
            return  # never connected
        import ray

        busy = {name for name, _ in self._pending.values()}
        with suppress(ray.exceptions.RayError):
            idle = [
                actor.close.remote() for name, actor in self._actors.items() if name not in busy
            ]
            ray.wait(idle, num_returns=len(idle), timeout=_CLOSE_S) if idle else None
        for machine in list(self._actors):
            self.dismiss(machine)
        if busy:
            self.each(worker.sweep, _CLOSE_S / 2, within_s=_CLOSE_S)
        self._nodes = {}
        ray.shutdown()

    def _connect(self) -> None:
        """Connect to the cluster, once."""
        ray = _ray()
        if self._nodes:
            return
        _check_answers(self._address)
        try:
            with _own_signals():
                ray.init(
                    address=self._address,
                    log_to_driver=False,
                    logging_level="ERROR",
                    namespace="fscost",
                )
        except (ConnectionError, RuntimeError, ValueError, AssertionError) as error:
            raise HostError(
                f"--on-cluster {self._address}: {_first_line(error)}",
                "start fscost on a machine of the cluster (`ray start --address=…` makes it one),"
                " with the cluster's versions of Ray and Python",
            ) from error
        self._nodes = _named(ray.nodes())

    def _within_resources(self, name: str, report: Report) -> Report | str:
        """Return the report with no more lanes than Ray offers there."""
        node = self._nodes[name]
        room = int(node.cpus)
        if report.lane_bytes:
            room = min(room, int(node.memory_bytes // report.lane_bytes))
        if room < 1:
            return "it offers Ray no CPU, or too little memory for a guest"
        return replace(report, lanes=min(report.lanes, room))


def same_version(version: str, function: Callable[..., _Answer], *arguments: Any) -> _Answer | str:
    """Call a function on a machine, unless it has another version of fscost."""
    if (here := host.fscost_version()) != version:
        return f"it has fscost {here}, and this is fscost {version}"
    return function(*arguments)


def _answer(pickled: bytes) -> Report | str:
    """Answer a question, which is unpickled only where its classes are the same."""
    question: Question = pickle.loads(pickled)
    return survey.answer(question)


def _piece(url: str, name: str, offset: int) -> bytes | str:
    """Read a piece of a file in a store, or say why it cannot be read."""
    try:
        return stores.read(url, name, offset)
    except FscostError as error:
        return error.what


def _ray() -> Any:
    try:
        import ray
    except ImportError as error:
        raise HostError(
            f"--on-cluster needs Ray: {error}", "install it: pip install 'fscost[ray]'"
        ) from None
    return ray


def _check_answers(address: str) -> None:
    """Raise unless the head of a cluster answers soon at this address."""
    remedy = "check that the cluster runs there: `ray status --address=ADDRESS`"
    if address != AUTO:
        name, colon, port = address.rpartition(":")
        if not (colon and name and port.isdecimal() and 0 < int(port) < 65536) or "/" in address:
            raise InputError(
                f"--on-cluster {address!r} is not an address",
                "give HOST:PORT of the head, as `ray start` printed it, or auto",
            )
        try:
            socket.create_connection((name.strip("[]"), int(port)), timeout=_ANSWER_S / 4).close()
        except OSError as error:
            raise HostError(f"--on-cluster {address}: {error.strerror or error}", remedy) from error
    try:
        # Whatever else answers at that port keeps `ray.init` waiting, and signals too.
        subprocess.run(
            [sys.executable, "-m", "ray.scripts.scripts", "health-check", "--address", address],
            check=True,
            capture_output=True,
            timeout=_ANSWER_S,
            stdin=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired:
        raise HostError(
            f"--on-cluster {address}: no Ray cluster answered within {_ANSWER_S} s", remedy
        ) from None
    except subprocess.CalledProcessError as error:
        lines = error.stderr.decode(errors="replace").strip().splitlines()
        because = lines[-1] if lines else "it is not healthy"
        raise HostError(f"--on-cluster {address}: {because}", remedy) from None


@contextmanager
def _own_signals() -> Iterator[None]:
    """Keep the handler of SIGTERM, which `ray.init` replaces."""
    handler = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        with suppress(ValueError):  # not the main thread
            signal.signal(signal.SIGTERM, handler)


def _named(nodes: Sequence[Mapping[str, Any]]) -> dict[str, Node]:
    """Name each machine that is alive: as `ray start --node-name` did, else by its host name, with
    a part of Ray's number where two have the same."""
    alive = [node for node in nodes if node["Alive"]]
    names = [
        node["NodeManagerHostname"]
        if node["NodeName"] == node["NodeManagerAddress"]
        else node["NodeName"]
        for node in alive
    ]
    found = {}
    for name, node in zip(names, alive, strict=True):
        unique = name if names.count(name) == 1 else f"{name}-{node['NodeID'][:6]}"
        resources = node["Resources"]
        found[unique] = Node(
            unique, node["NodeID"], resources.get("CPU", 0), resources.get("memory", 0)
        )
    return found


def _on(node: Node) -> Any:
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    return NodeAffinitySchedulingStrategy(node.id, soft=False)


def _why(error: Exception) -> str:
    """Return the reason of an error of Ray in one line."""
    import ray

    text = str(error)
    if "No module named 'fscost'" in text:
        return "fscost is not installed there"
    if isinstance(error, ray.exceptions.GetTimeoutError):
        return "it did not answer in time"
    if isinstance(error, ray.exceptions.RayTaskError):
        return next(line for line in reversed(text.splitlines()) if line.strip())
    if isinstance(error, (ray.exceptions.RayActorError, ray.exceptions.WorkerCrashedError)):
        return "its worker ended unexpectedly"
    return _first_line(error)


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
