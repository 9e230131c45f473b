"""Runs of several studies as one Markdown page, with a picture for each study."""

from collections.abc import Mapping
from pathlib import Path

from fscost import files
from fscost.report import charts, markdown
from fscost.report.picture import svg
from fscost.study import Report
from fscost.view import repeat
from fscost.view.posts import Post, Posts, posts

_RULES = "[how verdicts are reached](studies.md#how-verdicts-are-reached)"
_ABOUT = f"""fscost repeated published experiments on file-system writes and judged their claims.
Every figure and verdict on this page comes from the samples of the runs listed below.
All runs are judged by the same fixed rules ({_RULES}).
The runs are smaller than the published experiments, so *inconclusive* often reflects a limit of \
the run, not of the post.
The paragraph that begins each post is ours, written after these runs; no verdict depends on it."""
_READING = """Dot: measured value with its 95 % interval.
Diamond: published value.
Band: values for which the criterion holds."""


def write(
    reports: list[Report], path: Path, command: str, answers: Mapping[str, str] | None = None
) -> list[Path]:
    """Write the page, and its pictures in a folder of the same name; return the files made."""
    found = posts(reports, answers)
    folder = path.with_suffix("")
    made = [path]
    pictures: dict[str, str] = {}
    for post in found.posts:
        if post.table.num_rows:
            files.make_folder(folder)
            picture = folder / f"{post.study.name}.svg"
            mine = [each for each in reports if each.study.name == post.study.name]
            with files.replacing(picture) as file:
                file.write(_drawn(post, mine).encode())
            pictures[post.study.name] = f"{folder.name}/{picture.name}"
            made.append(picture)
    with files.replacing(path) as file:
        file.write(text(found, pictures, command).encode("utf-8", "replace"))
    return made


def text(found: Posts, pictures: dict[str, str], command: str) -> str:
    """Return the page. `pictures`: a path for each study that has one."""
    blocks = [
        f"# {found.title}",
        _ABOUT,
        f"```console\n$ {command}\n```",
        found.count,
        *(
            block
            for heading, entries in found.others.items()
            for block in (heading, markdown.items(entries))
        ),
        "## Verdicts per study",
        markdown.table(found.summary),
        markdown.items(found.rules),
    ]
    for post in found.posts:
        blocks += _post(post, pictures.get(post.study.name))
    blocks += ["## What was not run", markdown.items(found.missing)]
    return "\n\n".join(filter(None, blocks)) + "\n"


def _post(post: Post, picture: str | None) -> list[str]:
    study = post.study
    blocks = [
        f"## {markdown.escape(study.name)}: {markdown.escape(study.title)}",
        f"Published: {markdown.escape(study.source)}. <{study.url}>",
        post.answer,
        markdown.items(post.runs),
        markdown.table(post.verdicts),
    ]
    if picture is not None:
        blocks.append(f"![Measured and published value and bounds of each criterion]({picture})")
        blocks.append(_READING)
    if post.decided.rows:
        blocks += ["Decided criteria:", markdown.table(post.decided)]
    if post.undecided:
        blocks += ["Open criteria, counted by reason:", markdown.items(post.undecided)]
    return list(filter(None, blocks))


def _drawn(post: Post, reports: list[Report]) -> str:
    sheet = charts.claims_sheet(post.table).properties(padding=charts.PADDING)
    spec = charts.configured(sheet.to_dict(), "white", "pad")
    runs = [repeat.provenance(report.results) for report in reports]
    return svg(spec, {"runs": runs})
