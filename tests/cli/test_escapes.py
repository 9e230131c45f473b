"""Hostile texts in a run's folder, which may come from a stranger: no terminal, spreadsheet or page
obeys them."""

import csv
import json
import shutil
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

ESCAPE = "\x1b[2J\u202e\u200b<b>"
"""Clears the screen, turns the text around, has no width, and is markup: short enough for a header
that names the baseline."""
FORMULA = "="
FIXED = ("status", "state", "cell", "recording", "output")
"""Fields with prescribed values, and paths inside the folder."""


def hostile(value: Any, name: str = "") -> Any:
    """Make every string hostile, except those with prescribed values."""
    match value:
        case str() if name not in FIXED:
            return FORMULA + value + ESCAPE
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
        marked = pc.binary_join_element_wise(FORMULA, given, ESCAPE, "")
        changed = pc.if_else(pc.equal(given, ""), given, marked)
        samples = samples.set_column(
            samples.schema.get_field_index(name), samples.schema.field(name), changed
        )
    pq.write_table(pa.table(samples), tmp_path / "run" / SAMPLES)
    return tmp_path / "run"


OUT, PAGE = "out", "out.html"
COMMANDS = {
    "show": ("show",),
    "by disk": ("show", "--by-disk"),
    "wide": ("show", "--wide"),
    "markdown": ("show", "--markdown", OUT),
    "csv": ("show", "--csv", OUT),
    "csv by disk": ("show", "--by-disk", "--csv", OUT),
    "diff": ("diff",),
    "ls": ("ls",),
    "report": ("report", "--out", PAGE),
}


@pytest.mark.parametrize("options", COMMANDS.values(), ids=COMMANDS)
def test_no_output_has_a_strangers_text_raw(
    fscost: Callable[..., Ended], folder: Path, options: tuple[str, ...]
) -> None:
    command, *rest = options
    given = [folder]
    match command:
        case "ls":
            given = [folder.parent]
        case "diff":
            given = [folder, Path(shutil.copytree(folder, folder.parent / "other"))]
    ended = fscost(command, *map(str, given), *rest, check=(0, 1))
    out = folder.parent / (rest[-1] if rest else OUT)
    told, written = ended.stdout + ended.stderr, out.read_text() if out.exists() else ""
    assert "ext4" in told + written, told
    # The page has our own tabs: its scripts.
    for character in {*told, *written} - {"\n", "\t"}:
        assert character.isprintable(), f"{character!r} in {told}{written}"
    if "--markdown" in rest or "--out" in rest:
        assert "<b>" not in written
    if "--csv" in rest:
        cells = [cell for row in csv.reader(written.splitlines()) for cell in row]
        assert "'=ext4\N{REPLACEMENT CHARACTER}[2J" in "".join(cells)
        assert not [cell for cell in cells if cell.startswith(("=", "+", "@"))]
