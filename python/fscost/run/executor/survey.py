"""Comparison of a cluster's machines before the first cell: only those that agree run cells."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fscost import host, profile
from fscost.errors import FscostError, HostError
from fscost.files import stores
from fscost.lab.base import LabOptions
from fscost.lab.spec import LabSpec
from fscost.matrix import Cell
from fscost.profile.model import Profile


@dataclass(frozen=True)
class Question:
    """What a run needs of a machine. `cells`: one of each profile. `store`: URL of the store for
    its recordings."""

    lab: LabSpec
    lock: str
    cells: tuple[Cell, ...]
    disk_size_bytes: int
    write_bytes: int
    store: str = ""


@dataclass(frozen=True)
class Report:
    """A machine's answer. `identity`: versions that must be equal on all machines; `reasons`: why
    it cannot run a profile, by profile."""

    environment: dict[str, Any]
    identity: dict[str, str]
    lanes: int
    lane_bytes: int
    """Memory of each lane."""
    is_same_everywhere: bool
    guess_s: float
    reasons: dict[str, str]


Reports = Mapping[str, Report | str]
"""Reports by machine, or the reason why a machine cannot run any cell."""


def answer(question: Question) -> Report | str:
    """Answer for this machine."""
    try:
        if question.store:
            stores.check(question.store)
        lab = question.lab.make()
        lab.check()
        reasons = {
            cell.profile.name: because
            for cell in question.cells
            if (because := lab.unsupported_reason(cell, question.disk_size_bytes)) is not None
        }
        environment = lab.environment([cell.profile for cell in question.cells])
        return Report(
            environment,
            _identity(question, environment),
            lab.side_by_side,
            environment.get("guest", {}).get("memory_bytes", 0),
            lab.is_same_everywhere,
            lab.guess_s(question.write_bytes),
            reasons,
        )
    except FscostError as error:
        return f"{error.what}; {error.remedy}" if error.remedy else error.what


def _identity(question: Question, environment: Mapping[str, Any]) -> dict[str, str]:
    """Versions on which the bytes of a cell depend: guests run the host's programs, but not its
    kernel."""
    found = {"fscost": host.fscost_version()}
    guest = environment.get("guest")
    if guest is None:
        found["Linux"] = str(environment["kernel"]["release"])
    else:
        found |= {f"guest kernel {name}": build for name, build in guest["builds"].items()}
        found |= {"accelerator": guest["accelerator"], "QEMU": str(guest["qemu"])}
    needed = set()
    for cell in question.cells:
        planned = profile.plan_format(cell.profile, question.disk_size_bytes, cell.seed)
        needed |= {*planned.needs_tools, *cell.workload.needs_tools}
    tools = environment.get("tools", {})
    return found | {name: tools[name] for name in sorted(needed & tools.keys())}


def agreed(reports: Reports, say: Callable[[str], None]) -> dict[str, Report]:
    """Return the machines that run the cells: the largest group with equal versions, and of these
    the ones that can run the most profiles. `say` is called for each machine that is skipped."""
    found = {}
    for name, report in sorted(reports.items()):
        if isinstance(report, str):
            say(f"skipped: machine {name}, because {report}")
        else:
            found[name] = report
    if not found:
        return {}
    identities = [report.identity for report in found.values()]
    most = max(identities, key=identities.count)
    fewest = min(
        (set(report.reasons) for report in found.values() if report.identity == most), key=len
    )
    for name, report in list(found.items()):
        because = _difference(report.identity, most) or next(
            (why for of, why in report.reasons.items() if of not in fewest), None
        )
        if because is not None:
            say(f"skipped: machine {name}, because {because}")
            del found[name]
    return found


def _difference(identity: Mapping[str, str], most: Mapping[str, str]) -> str | None:
    for what in [*most, *identity]:
        here, there = identity.get(what, "missing"), most.get(what, "missing")
        if here != there:
            return f"its {what} is {here!r}, and that of other machines is {there!r}"
    return None


class ClusterSite:
    """Answers about all machines of a cluster that run cells."""

    def __init__(
        self,
        ask: Callable[[Question], Reports],
        question: Question,
        say: Callable[[str], None],
    ) -> None:
        self._ask = ask
        self._question = question
        self._say = say
        self.name: str = question.lab.kind
        self.machines: dict[str, Report] = {}
        """Machines that run cells, by name. A machine that is lost is removed."""

    def check(self) -> None:
        """Ask all machines, and raise HostError if none can run a cell."""
        self.machines = agreed(self._ask(self._question), self._say)
        if not self.machines:
            raise HostError(
                "no machine of the cluster can run a cell",
                "`fscost doctor --on-cluster ADDRESS` checks each machine",
            )

    @property
    def side_by_side(self) -> int:
        """Number of cells of one repetition that run at once."""
        if not self.is_same_everywhere:
            return 1
        return sum(report.lanes for report in self.machines.values())

    @property
    def is_same_everywhere(self) -> bool:
        """True if cells of different machines may be compared."""
        return self._any.is_same_everywhere

    def guess_s(self, write_bytes: int) -> float:
        """Return the longest guess of a machine, for the run's workload."""
        return max(report.guess_s for report in self.machines.values())

    def unsupported_reason(self, cell: Cell, disk_size_bytes: int | None = None) -> str | None:
        """Return the reason of the machines, which all have the same."""
        return self._any.reasons.get(cell.profile.name)

    def commands(self, cell: Cell, options: LabOptions) -> list[str]:
        """Return the commands as this machine would run them."""
        return self._question.lab.make(self._say).commands(cell, options)

    def environment(self, profiles: Sequence[Profile]) -> dict[str, Any]:
        """Return the environment of one machine, and what may differ of each."""
        machines = {
            name: {
                key: report.environment[key]
                for key in ("kernel", "cpu", "memory_bytes", "distribution")
                if key in report.environment
            }
            for name, report in self.machines.items()
        }
        return self._any.environment | {"machines": machines}

    @property
    def _any(self) -> Report:
        return next(iter(self.machines.values()))
