"""The page as text: its content is complete, and names in it stay text."""

import base64
import csv
import json
import math
import re
from collections.abc import Callable
from hashlib import sha256
from html import unescape
from html.parser import HTMLParser
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import vl_convert

from fscost.report.charts import themed
from fscost.report.figures import figures
from fscost.report.html import html_text
from fscost.report.html.page import _short, compiled
from fscost.report.html.templates import linked, whole_options
from fscost.report.html.vega import _built
from fscost.results import SAMPLES, load, salvaged
from fscost.view.page import page

from .conftest import HOSTILE


class Parsed(HTMLParser):
    """Tags, the text of scripts, and all other text of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.scripts: list[str] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        assert not [name for name, _ in attrs if name.startswith("on")]

    def handle_data(self, data: str) -> None:
        if self.lasttag == "script" and self.rawdata:
            self.scripts.append(data)
        self.text += data


def shown(folder: Path) -> str:
    return html_text(page(*salvaged(folder)))


def embedded(text: str) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    assert found
    return json.loads(found[1])


def test_names_stay_text(hostile_run: Path) -> None:
    text = shown(hostile_run)
    parsed = Parsed(text)
    assert parsed.tags.count("script") == 3, "data, Vega and our own"
    assert "img" not in parsed.tags
    assert "\u202e" not in text, "what turns text around"
    assert "\x1b" not in text
    assert HOSTILE in parsed.text, "the reader sees the name as it is"


def test_options_in_sentences_stay_whole_and_text() -> None:
    shown = whole_options(f"the --ssd device, -o a=1, a-b, --, -O {HOSTILE}")
    span = '<span class="option">{}</span>'
    assert shown.startswith(
        f"the {span.format('--ssd')} device, {span.format('-o')} a=1, a-b, --, {span.format('-O')} "
    )
    assert "<script" not in shown


def test_addresses_are_links_and_text() -> None:
    shown = linked(f"`find`, see https://example.org/a?b=1&c=2 {HOSTILE} javascript:alert(1)")
    link = '<a href="https://example.org/a?b=1&amp;c=2" rel="noreferrer">'
    assert shown.startswith(f"find, see {link}https://example.org/a?b=1&amp;c=2</a> ")
    assert "<script" not in shown
    assert shown.count("<a ") == 1


def test_a_browser_runs_the_page_s_own_scripts_only(hostile_run: Path) -> None:
    text = shown(hostile_run)
    [policy] = re.findall(r'http-equiv="Content-Security-Policy" content="(.*?)">', text)
    allowed = dict(part.split(" ", 1) for part in unescape(policy).split("; "))
    scripts = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    digests = [base64.b64encode(sha256(script.encode()).digest()).decode() for script in scripts]
    assert allowed["script-src"].split() == [f"'sha256-{digest}'" for digest in digests]
    assert (allowed["base-uri"], allowed["form-action"]) == ("'none'", "'none'")


def test_nothing_is_fetched(hostile_run: Path) -> None:
    text = shown(hostile_run)
    assert "default-src 'none'" in text
    text = re.sub(r"<script.*?</script>", "", text, flags=re.DOTALL)
    links = re.findall(r'<(?:link|script|img|iframe)[^>]*(?:src|href)="([^"]*)"', text)
    assert links == ["data:,"]


def test_a_table_as_csv_is_the_table(made_run: Callable[..., Path]) -> None:
    folder = made_run("ext4", "xfs")
    found = page(load(folder))
    texts = embedded(html_text(found))["csv"]
    assert texts.keys() == found.tables.keys()
    for name, table in found.tables.items():
        rows = list(csv.DictReader(StringIO(texts[name])))
        assert len(rows) == table.data.num_rows
        for row, expected in zip(rows, table.data.to_pylist(), strict=True):
            for column, value in expected.items():
                text = row[column]
                assert (
                    text == ""
                    if value is None
                    else type(value)(text) == value or text == str(value)
                )


def test_damaged_samples_are_told_of(made_run: Callable[..., Path]) -> None:
    folder = made_run("ext4", "xfs")
    assert "samples are missing" not in shown(folder)
    (folder / SAMPLES).write_bytes(b"PAR1 damaged")
    text = shown(folder)
    assert "This report is not complete." in text
    assert "samples are missing" in text
    assert "6 finished cells are not shown" in text
    (folder / SAMPLES).unlink()
    assert "samples are missing" in shown(folder)


def test_a_profile_without_recording_is_named(hostile_run: Path) -> None:
    results = load(hostile_run)
    missing = page(results).kept.missing
    assert missing["ext4"] == "its recording is no longer there"
    assert "--keep one" in next(text for name, text in missing.items() if name != "ext4")
    assert "its recording is no longer there" in html_text(page(results))


def test_each_chart_is_what_its_schema_says(real_run: Path) -> None:
    """Each chart is valid by its schema. Pages are drawn without these checks of altair, which take
    a third of the time."""
    drawn = list(figures(page(load(real_run))))
    assert len(drawn) > 5
    assert "latency-fsync-and-fdatasync-of-the-commands" in {figure.name for figure in drawn}
    for figure in drawn:
        assert themed(figure.chart, "container")["$schema"]


def test_a_chart_is_compiled_without_its_rows(real_run: Path) -> None:
    """The compiler looks at no row, so that it gets none: with them, it gives the same."""
    for figure in figures(page(load(real_run))):
        spec = themed(figure.chart, "container")
        whole = vl_convert.vegalite_to_vega(spec)
        for source in whole["data"]:
            if rows := source.get("values"):
                source["values"] = {name: [row[name] for row in rows] for name in rows[0]}
        assert compiled(spec) == whole, figure.identity


@pytest.mark.parametrize(
    ("number", "text"),
    [(1.0, "1"), (-3.0, "-3"), (0.1, "0.1"), (1e20, "1" + "0" * 20), (1e21, "1e+21"), (7, "7")],
)
def test_numbers_of_charts_are_as_short_as_those_of_javascript(number: float, text: str) -> None:
    assert json.dumps(_short(number)) == text
    assert _short(math.nan) is None
    assert _short(-math.inf) is None


def test_a_module_in_the_current_folder_is_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A workload can plant one in the folder of its run, where root then makes the report."""
    (tmp_path / "vl_convert.py").write_text("open('planted', 'w')\n")
    monkeypatch.chdir(tmp_path)
    assert "vegaEmbed" in _built()
    assert not (tmp_path / "planted").exists()
