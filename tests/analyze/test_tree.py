"""The tree of directories and files, compared with sums made by hand."""

from collections import Counter

import numpy as np
import pytest

from fscost.analyze import NO_FILE, total_bytes, tree
from fscost.analyze.tree import OTHER_DIRECTORIES

from .made import explanation, row


def of(paths: list[str | None], structure: str = "file_data") -> list[dict[str, object]]:
    return [
        row(structure, path=path, offset=number * 65536, length=4096 * (1 + number % 3))
        for number, path in enumerate(paths)
    ]


def test_rows_add_up_and_name_what_is_largest(seed: int) -> None:
    random = np.random.default_rng(seed)
    paths: list[str | None] = [
        f"/src/d{random.integers(20)}/f{random.integers(300)}" for _ in range(3000)
    ]
    rows = of([*paths, None, "/", "/src", "/top"])
    rows += of(["/src/d3/f1", None], "log")
    whole = explanation(rows)
    found = tree(whole).to_pylist()
    assert sum(each["write_bytes"] for each in found) == total_bytes(whole)
    sums: Counter[str] = Counter()
    for each in rows:
        path = str(each["path"] or "")
        if path.startswith("/src/d"):
            sums["/".join(path.split("/")[1:3]) + "/"] += int(str(each["length"]))
    shown = Counter({each["directory"]: 0 for each in found})
    for each in found:
        shown[each["directory"]] += each["write_bytes"]
    named = {name for name in shown if name.startswith("src/d")}
    largest = sorted(sums, key=lambda name: (-sums[name], name))
    assert named == set(largest[: len(named)])
    assert len(named) >= 10
    assert all(shown[name] == sums[name] for name in named)
    for name in named:
        files = sum(each["files"] for each in found if each["directory"] == name)
        assert files >= len({path for path in paths if path and path.startswith(f"/{name}")})
    assert shown[OTHER_DIRECTORIES] > 0


def test_files_of_one_directory_are_told_apart() -> None:
    found = tree(explanation(of([f"/a/b/c/{name}" for name in "xyz"])))
    assert {(each["directory"], each["name"]) for each in found.to_pylist()} == {
        ("a/b/c/", "x"),
        ("a/b/c/", "y"),
        ("a/b/c/", "z"),
    }


@pytest.mark.parametrize("paths", [[], [None], ["/"]])
def test_next_to_nothing(paths: list[str | None]) -> None:
    found = tree(explanation(of(paths)))
    assert found["directory"].to_pylist() == [NO_FILE if path is None else "/" for path in paths]
