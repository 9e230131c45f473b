"""`fscost workloads` and `fscost profiles`: the lists, and the description of one entry."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.schemas import valid

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


LISTS = {
    "profiles": ("profiles", ("profiles",)),
    "workloads": ("workloads", ("workloads",)),
    "devices": ("devices", ("devices",)),
    "studies": ("studies", ("study", "list")),
    "doctor": ("labs", ("doctor",)),
}


@pytest.mark.parametrize("kind", LISTS)
def test_each_list_has_a_document(fscost: Run, kind: str) -> None:
    """The entries of the document are those of the text."""
    field, command = LISTS[kind]
    ended = fscost(*command, "--json", check=(0, 2))
    entries = valid(ended.stdout)[field]
    text = fscost(*command, columns=200, check=(0, 2)).stdout
    names = [each.get("name", each.get("lab")) for each in entries]
    assert names
    assert all(name in text for name in names)
    assert ended.returncode == 0 or kind == "doctor"


def test_one_entry_has_a_document(fscost: Run) -> None:
    [one] = valid(fscost("workloads", "sqlite", "--json").stdout)["workloads"]
    assert one["options"]["journal"]["choices"]
    assert [step["name"] for step in one["steps"] if step["measured"]]
    [device] = valid(fscost("devices", "sd-card-32gb", "--json").stdout)["devices"]
    assert device["wear"]["pe_cycles"] == 3000
    found = valid(fscost("profiles", "xfs", "--json").stdout)["profiles"]
    assert {each["type"] for each in found} == {"xfs"}


def test_runs_have_a_document(compare: Run, fscost: Run) -> None:
    compare("-o", "runs/one", "--on", "ext4", "-r", "1")
    [run] = valid(fscost("ls", "runs", "--json").stdout)["runs"]
    assert (run["folder"], run["lab"], run["profiles"]) == ("runs/one", "fake", ["ext4"])
    assert run["answer"] in fscost("ls", "runs", columns=300).stdout


def test_runs_of_the_same_show_their_trend(compare: Run, fscost: Run) -> None:
    """A list of runs had no word about what changed between them."""
    for name, seed, on in (("a", "1", "ext4"), ("b", "2", "ext4"), ("c", "2", "xfs")):
        compare("-o", f"runs/{name}", "--on", on, "-r", "3", "-n", "work", "--seed", seed)
    first, second, other = valid(fscost("ls", "runs", "--json").stdout)["runs"]
    assert (first["since"], other["since"]) == (None, None)
    said = valid(fscost("diff", "runs/a", "runs/b", "--json").stdout)
    assert second["since"]["run"] == "a"
    assert second["since"]["ratios"]["ext4"] == said["rows"][-1]["ratio"]
    lines = fscost("ls", "runs", columns=300).stdout.splitlines()
    assert [" Since a: ext4 " in line for line in lines] == [False, True, False]
    assert lines[1][-1] in "▁▂▃▄▅▆▇█"


def test_a_file_system_alone_comes_before_its_arrays(fscost: Run) -> None:
    assert fscost("profiles", "xfs").stdout.startswith("xfs ")
