"""`fscost workloads` and `fscost profiles`: the lists, and the description of one entry."""

from collections.abc import Callable
from typing import Any

import pytest

from fscost import profile, workload

Run = Callable[..., Any]


@pytest.mark.parametrize("name", [each.name for each in workload.catalogue()])
def test_a_workload_is_told_whole(fscost: Run, name: str) -> None:
    [declared] = [each for each in workload.catalogue() if each.name == name]
    text = fscost("workloads", name, columns=80).stdout
    assert text.startswith(f"{name}: ")
    assert all(f"\n  {option}=" in text for option in declared.options)
    steps = text[text.index("\nSteps\n") :]
    for step in workload.resolve(name).steps:
        mark = "" if step.measured else " (not measured)"
        assert f"\n  {step.name}{mark}\n" in steps
        assert step.shell.strip().splitlines()[-1].strip() in steps


def test_profiles_of_one_file_system(fscost: Run) -> None:
    listed = {
        line.split()[0]
        for line in fscost("profiles", "xfs", columns=200).stdout.split("\n\n")[0].splitlines()
    }
    assert listed == {each.name for each in profile.catalogue() if each.type == "xfs"}
    assert len(listed) < len(profile.catalogue())


@pytest.mark.parametrize(
    ("command", "wrong", "remedy"),
    [("workloads", "sqlit", "did you mean sqlite?"), ("profiles", "ext5", "did you mean ext")],
)
def test_near_misses(fscost: Run, command: str, wrong: str, remedy: str) -> None:
    found = fscost(command, wrong, check=(2,))
    assert wrong in found.stderr
    assert remedy in found.stderr
