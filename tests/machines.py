"""A cluster whose machines are workers in this process."""

import pickle
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from fscost.run.executor import survey, worker
from fscost.run.executor.remote import Ended, Joined, Lost, LostError
from fscost.run.executor.survey import Question, Report, Reports
from fscost.run.measure import Task


@dataclass
class Machines:
    """A cluster in this process: real workers, whose answers travel as pickles.

    `dies`: machine → number of the cell in the middle of which it dies. `twice`: every outcome
    arrives a second time. `interrupts_at`: number of the news before which Ctrl-C arrives.
    `broken`: machine → why it runs no cell. `fails_to_read`: machines that die while a file of a
    finished cell is read. `adds_bytes`: machine → bytes that it writes more.
    """

    names: tuple[str, ...] = ("one", "two", "three")
    dies: dict[str, int] = field(default_factory=dict)
    twice: bool = False
    interrupts_at: int | None = None
    broken: dict[str, str] = field(default_factory=dict)
    fails_to_read: set[str] = field(default_factory=set)
    adds_bytes: dict[str, int] = field(default_factory=dict)
    begun: list[tuple[str, str]] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    _news: deque[Joined | Ended | Lost] = field(default_factory=deque)
    _heard: int = 0
    _workers: dict[str, worker.Worker] = field(default_factory=dict)

    def ask(self, question: Question) -> Reports:
        sent = pickle.loads(pickle.dumps(question))
        return {name: self.broken.get(name) or survey.answer(sent) for name in self.names}

    def hire(self, question: Question, machines: Mapping[str, Report]) -> None:
        for name in machines:
            self._workers[name] = worker.Worker()
            of_machine = replace(question, lock=f"{question.lock}.{name}")
            because = self._workers[name].open(pickle.loads(pickle.dumps(of_machine)))
            self._news.append(Joined(name) if because is None else Lost(name, because))

    def begin(self, machine: str, ticket: int, task: Task) -> None:
        self.begun.append((machine, task.cell.id))
        if sum(name == machine for name, _ in self.begun) == self.dies.get(machine):
            self._news.append(Lost(machine, "its worker ended unexpectedly"))
            return
        outcome = self._workers[machine].run(pickle.loads(pickle.dumps(task)))
        for place, sample in enumerate(outcome.result.samples if outcome.result else ()):
            if sample.metric == "device_write_bytes" and sample.phase == "write":
                more = replace(sample, value=sample.value + self.adds_bytes.get(machine, 0))
                outcome.result.samples[place] = more
        for _ in range(1 + self.twice):
            self._news.append(Ended(ticket, pickle.loads(pickle.dumps(outcome))))

    def next(self) -> Joined | Ended | Lost:
        self._heard += 1
        if self._heard == self.interrupts_at:
            raise KeyboardInterrupt
        return self._news.popleft()

    def read(self, machine: str, cell: str, name: str, offset: int) -> bytes:
        if machine in self.fails_to_read:
            raise LostError("its worker ended unexpectedly")
        return self._workers[machine].read(cell, name, offset)

    def forget(self, machine: str, cell: str) -> None:
        self._workers[machine].forget(cell)

    def dismiss(self, machine: str) -> None:
        self._workers.pop(machine).close()

    def close(self) -> None:
        for name in list(self._workers):
            self.dismiss(name)
