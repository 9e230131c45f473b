"""`--by-disk`: rows of each disk, in tables and exports."""

import csv
import json
from io import StringIO
from pathlib import Path

from fscost.lab.fake import FakeLab
from fscost.report import machine, markdown, terminal
from fscost.results import RunResults, to_table
from fscost.results.table import SampleRow, with_totals
from fscost.view.run import Choice, view

from .test_golden import a_run


def on_two_disks(run: RunResults) -> RunResults:
    """Split the bytes of a run three to one between m0 and m1."""
    rows = []
    for row in run.samples.to_pylist():
        if row["phase"] != "total" and not row["disk"]:
            rows.append(SampleRow(**row))
            if row["metric"] == "device_write_bytes":
                rows += [
                    SampleRow(**{**row, "disk": disk, "value": row["value"] * share})
                    for disk, share in (("m0", 0.75), ("m1", 0.25))
                ]
    cells = dict.fromkeys(row.cell for row in rows)
    return RunResults(
        run.folder,
        run.manifest,
        to_table(
            total
            for cell in cells
            for total in with_totals([row for row in rows if row.cell == cell])
        ),
    )


def test_rows_of_disks_are_in_every_form_when_asked_for(tmp_path: Path) -> None:
    run = on_two_disks(a_run(tmp_path, FakeLab(), repetitions=1))
    shown = view(run, Choice(is_by_disk=True))
    lines = list(csv.DictReader(StringIO(machine.csv_text(shown))))
    of = {
        (line["profile"], line["disk"]): float(line["median"])
        for line in lines
        if (line["phase"], line["metric"]) == ("total", "device_write_bytes")
    }
    assert of["ext4", "m0"] == 3 * of["ext4", "m1"] == 0.75 * of["ext4", ""]
    rows = json.loads(machine.json_text(run, shown))["rows"]
    assert {row["disk"] for row in rows} == {"", "m0", "m1"}
    for text in (terminal.text(shown, "folder", 100), markdown.text(shown, "folder")):
        assert "By disk" in text
        assert "m1" in text


def test_without_it_only_sums_are_shown(tmp_path: Path) -> None:
    run = on_two_disks(a_run(tmp_path, FakeLab(), repetitions=1))
    shown = view(run)
    lines = list(csv.DictReader(StringIO(machine.csv_text(shown))))
    assert {line["disk"] for line in lines} == {""}
    assert "By disk" not in terminal.text(shown, "folder", 100)
