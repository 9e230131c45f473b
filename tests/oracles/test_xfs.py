"""Cases of xfs that strangers found: each row is compared with the content of its write."""

from pathlib import Path

import pytest
from tests.oracles.tagged_check import RIGHT
from tests.oracles.tagged_run import Ran, run

from fscost.analyze import explain


@pytest.mark.root
def test_blocks_that_a_shrunk_file_freed_belong_to_the_clone_that_reuses_them(
    tmp_path: Path,
) -> None:
    all_right(of_xfs(tmp_path, "shrink"))


@pytest.mark.root
def test_nodes_of_attributes_belong_to_no_directory(tmp_path: Path) -> None:
    rows = explain(of_xfs(tmp_path, "attributes").recording).table.to_pylist()
    structures = {row["home_structure"] or row["structure"] for row in rows}
    assert "xattr" in structures
    assert not structures & {"directory", "directory_index"}


def of_xfs(folder: Path, action: str) -> Ran:
    """Run an action of tagged_xfs.py on a file system of small blocks."""
    script = Path(__file__).with_name("tagged_xfs.py")
    shell = f"python3 {{input}}/{script.name} {action}"
    return run("xfs -b size=1024", folder / "run", [shell], inputs=[script])


def all_right(ran: Ran) -> None:
    summary = ran.compared()
    assert summary.bytes.keys() == {RIGHT}, str(summary)
    assert not summary.doubted
