"""Parts of a batch, and directories of paths, compared with the same in plain Python."""

import pytest

from fscost.analyze.groups import NO_FILE, directories
from fscost.analyze.rows import parts

from .made import explanation, row


@pytest.mark.parametrize("count", [0, 1, 2, 3, 40], ids=lambda count: f"{count}-runs")
def test_the_parts_of_a_batch_are_its_chosen_rows_in_order(count: int) -> None:
    phases = [name for number in range(count) for name in [("a", "b", "c")[number % 3]] * number]
    rows = [row("file_data", phase=name) for name in phases] or [row("file_data")]
    [batch] = explanation(rows).batches()
    for names in (["a"], ["b", "c"], ["c", "a", "no such phase"], []):
        found = [each for part in parts(batch, "phase", names) for each in part.to_pylist()]
        assert found == [each for each in batch.to_pylist() if each["phase"] in names]


def test_each_row_has_the_directory_of_its_path() -> None:
    paths = ["/a/b/c", "/a/b", "/a", "/a/b/d.txt", None, "/", "no folder", "/a/b/", None]
    for what in ("file_data", "directory", "inode_table"):
        made = explanation([row(what, path=path) for path in paths])
        sums = made.sums("path", "structure", "home_structure")
        found = dict(zip(sums["path"].to_pylist(), directories(sums).to_pylist(), strict=True))
        assert found.keys() == set(paths)
        for path, directory in found.items():
            if path is None:
                assert directory == NO_FILE
            elif what == "directory":
                assert directory == path
            else:
                assert directory == (path.rpartition("/")[0] or "/")
