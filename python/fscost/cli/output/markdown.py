"""A run as Markdown: for issues, READMEs and wikis."""

from collections.abc import Sequence

from fscost.cli.output.view import Grid, View

_ESCAPED = str.maketrans({character: f"\\{character}" for character in r"\`*_{}[]<>|~^#"} | {"\n": "<br>"})


def text(view: View, folder: str) -> str:
    """The same tables and notes as on a terminal."""
    blocks = [f"## {_escape(view.title)}"]
    if view.summary.rows:
        blocks.append(_table(view.summary))
    blocks.append("  \n".join(map(_escape, view.about)))
    if len(view.phases.header) > 1:
        blocks += [f"{_escape(view.phases.title)}:", _table(view.phases)]
    if view.problems:
        blocks.append("\n".join(f"- {_escape(line)}" for line in view.problems))
    blocks.append(f"Results: {_escape(folder)}")
    return "\n\n".join(blocks) + "\n"


def _table(grid: Grid) -> str:
    rule = [":--", *("--:" for _ in grid.header[1:])]
    return "\n".join(
        _line(row) for row in ([_escape(name) for name in grid.header], rule, *([_escape(cell) for cell in row] for row in grid.rows))
    )


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _escape(text: str) -> str:
    return text.translate(_ESCAPED)
