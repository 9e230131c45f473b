"""Escape sequences in a run's folder, which may come from a stranger: no terminal obeys them."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from fscost.lab.fake import FakeLab
from fscost.results import MANIFEST, SAMPLES

from .conftest import Ended
from .test_by_disk import on_two_disks
from .test_golden import a_run

ESCAPE = "\x1b[2J"
"""Clears the screen: short enough for a header that names the baseline."""
FIXED = ("status", "state", "cell", "recording", "output")
"""Fields with prescribed values, and paths inside the folder."""


def hostile(value: Any, name: str = "") -> Any:
    """Put an escape sequence into every string, and into every name of a free-form object."""
    match value:
        case str() if name not in FIXED:
            return value + ESCAPE
        case dict():
            return {key: hostile(each, key) for key, each in value.items()}
        case list():
            return [hostile(each) for each in value]
    return value


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a run of two disks with escape sequences, of which one profile fails and one is
    skipped."""
    lab = FakeLab(skip={"f2fs": "no f2fs here"}, fail={"xfs": ("mkfs", "refused")})
    run = on_two_disks(a_run(tmp_path / "run", lab, repetitions=2))
    value = json.loads((tmp_path / "run" / MANIFEST).read_text())
    for cell in value["cells"]:
        del cell["samples_sha256"], cell["files_sha256"]
        cell["facts"]["why"] = [{"words": "because", "remedy": "-o noatime"}]
    (tmp_path / "run" / MANIFEST).write_text(json.dumps(hostile(value)))
    samples = run.samples
    for name in ("profile", "disk"):
        given = samples[name]
        marked = pc.binary_join_element_wise(given, ESCAPE, "")
        changed = pc.if_else(pc.equal(given, ""), given, marked)
        samples = samples.set_column(
            samples.schema.get_field_index(name), samples.schema.field(name), changed
        )
    pq.write_table(pa.table(samples), tmp_path / "run" / SAMPLES)
    return tmp_path / "run"


@pytest.mark.parametrize(
    "options", [(), ("--by-disk",), ("--wide",), ("--markdown", "out"), ("--csv", "out")]
)
def test_no_form_of_show_contains_an_escape(
    fscost: Callable[..., Ended], folder: Path, options: tuple[str, ...]
) -> None:
    (folder.parent / "out").write_text("")
    ended = fscost("show", str(folder), *options)
    found = ended.stdout + (folder.parent / "out").read_text()
    assert "ext4\N{REPLACEMENT CHARACTER}[2J" in found
    assert "\x1b" not in found
