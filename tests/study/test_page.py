"""The page of a study's run: published beside measured values, and the numbers that decide."""

import csv
import json
import re
from collections.abc import Callable
from dataclasses import replace
from io import StringIO

from fscost.report.figures import figures
from fscost.report.html import html_text
from fscost.study import Report
from fscost.view.page import page

Reported = Callable[..., Report]
PHASES = {"clean": 2e6}


def doubled(short: str, phase: str, metric: str, repetition: int) -> float:
    """Samples in which a journal doubles the bytes that make clean writes, and adds nothing
    elsewhere."""
    has_journal = not short.endswith("_nj") and short != "ext2"
    return PHASES.get(phase, 1e8) * (2 if has_journal and phase == "clean" else 1) + repetition


def test_the_page_shows_each_claim_with_its_verdict_and_picture(reported: Reported) -> None:
    found = page(reported("journal-tax", doubled).results)
    assert found.answers[0].startswith("Of 13 claims: 3 reproduced, 1 partly, ")
    text = html_text(found)
    assert '<th scope="col"><bdi></bdi></th>' not in text, "axe: empty-table-header"
    assert "(make clean): REPRODUCED" in text
    assert text.index('id="fig-claim-1"') < text.index("… and 4 % at least: NOT REPRO")
    data = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    assert data
    rows = list(csv.DictReader(StringIO(json.loads(data[1])["csv"]["claims"])))
    clean = [row for row in rows if row["claim"] == "1"]
    assert [row["outcome"] for row in clean] == ["holds"] * 4
    assert {row["published"] for row in clean} - {""} != set()
    assert all(1.9 < float(row["median"]) < 2.1 and row["at_most"] == "2.5" for row in clean)
    # Criteria in percent are shares, as in the tables above them.
    percent = [row for row in rows if row["unit"] == "percent" and row["at_least"]]
    assert percent
    for row in percent:
        assert f"<bdi>{float(row['at_least']) * 100:.1f} %</bdi>" in text


def test_only_claims_with_numbers_have_a_picture(reported: Reported) -> None:
    report = reported("journal-tax", {"6.1": doubled, "6.12": doubled})
    found = page(report.results)
    table = found.tables["claims"].data
    assert set(table["kernel"].to_pylist()) == {"6.1", "6.12"}
    measured = {row["claim"] for row in table.to_pylist() if row["median"] is not None}
    drawn = {int(f.name.split("-")[1]) for f in figures(found) if f.name.startswith("claim-")}
    assert drawn == measured
    assert len(drawn) < len(report.study.claims)


def test_a_study_that_is_unknown_leaves_the_rest_of_the_page(reported: Reported) -> None:
    results = reported("journal-tax", doubled).results
    manifest = replace(results.manifest, request={**results.manifest.request, "study": "other"})
    found = page(replace(results, manifest=manifest))
    assert found.study is None
    assert any("no study is called 'other'" in line for line in found.damage)
    assert "no study is called" in html_text(found)
