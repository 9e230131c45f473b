"""docs/posts.md is what the runs beside it show: each is judged again by today's rules."""

import html
import json
import re
from pathlib import Path

from fscost import study
from fscost.cli.studying import answers_of
from fscost.report.posts import text
from fscost.results import load
from fscost.study import Report
from fscost.view.posts import posts

PAGE = Path(__file__).resolve().parents[2] / "docs" / "posts.md"
RUNS = PAGE.parent / "posts" / "runs"


def judged(name: str) -> Report:
    results = load(RUNS / name)
    return study.report(study.load(str(results.manifest.request["study"])), results)


def test_the_page_shows_what_its_runs_show() -> None:
    page = re.sub(r"<!--.*?-->\n", "", PAGE.read_text())
    command = re.search(r"^\$ (fscost study page (.*) --answers .*)$", page, re.MULTILINE)
    assert command is not None
    names = [Path(each).name for each in command[2].split()]
    assert sorted(names) == sorted(each.name for each in RUNS.iterdir())
    found = posts(
        [judged(name) for name in names], answers_of(PAGE.parent / "posts" / "answers.toml")
    )
    pictures = {name: f"posts/{name}.svg" for name in (post.study.name for post in found.posts)}
    assert text(found, pictures, command[1]) == page


def test_each_picture_shows_the_runs_of_its_study() -> None:
    begun: dict[str, set[str]] = {}
    for folder in RUNS.iterdir():
        manifest = load(folder).manifest
        begun.setdefault(str(manifest.request["study"]), set()).add(manifest.started_utc)
    shown = {}
    for picture in (PAGE.parent / "posts").glob("*.svg"):
        about = re.search(r'\{"runs": .*?\]\}', html.unescape(picture.read_text()))
        assert about is not None, picture
        shown[picture.stem] = {run["started_utc"] for run in json.loads(about[0])["runs"]}
    assert shown == begun
