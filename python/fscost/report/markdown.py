"""A run as Markdown, for issues, READMEs and wikis."""

from collections.abc import Sequence

from fscost.view.grid import Grid
from fscost.view.run import View

_ESCAPED = str.maketrans(
    {character: f"\\{character}" for character in r"\`*_{}[]<>|~^#"} | {"\n": "<br>"}
)


def text(view: View, folder: str) -> str:
    """Write the same tables and notes as for a terminal."""
    blocks = [f"## {escape(view.title)}"]
    if view.headline:
        blocks.append(f"**{escape(view.headline)}**")
    if view.summary.rows:
        blocks.append(table(view.summary))
    blocks.append("  \n".join(map(escape, view.legend)))
    for grid in (*view.effects, view.pareto, view.kernels):
        if grid is not None:
            blocks += [f"{escape(grid.title)}:", table(grid)]
    found = view.breakdown
    if found.grid.rows:
        blocks += [
            f"{escape(found.grid.title)}:",
            table(found.grid),
            "  \n".join(map(escape, found.notes)),
        ]
    for title, lines in ((view.why_title, view.why), ("Caution", view.cautions)):
        if lines:
            blocks += [f"{title}:", items(lines)]
    for grid in (view.times, view.live_times, view.disks, view.phases):
        if grid is not None and grid.rows:
            blocks += [f"{escape(grid.title)}:", table(grid)]
    if view.problems:
        blocks.append(items(view.problems))
    blocks.append("  \n".join(map(escape, [*view.conditions, f"Results: {folder}", *view.way_on])))
    return "\n\n".join(filter(None, blocks)) + "\n"


def parts(title: str, grids: Sequence[Grid], notes: Sequence[str], lead: Sequence[str] = ()) -> str:
    """Write several tables, with notes below the first, and its answer above it."""
    blocks = [f"## {escape(title)}"]
    if lead:
        blocks.append("  \n".join(map(escape, lead)))
    blocks += [table(grids[0]), "  \n".join(map(escape, notes))]
    for grid in grids[1:]:
        blocks += [f"{escape(grid.title)}:", table(grid)]
    return "\n\n".join(blocks) + "\n"


def items(lines: Sequence[str]) -> str:
    """Write a list."""
    return "\n".join(f"- {escape(line)}" for line in lines)


def table(grid: Grid) -> str:
    """Write a Markdown table."""
    rule = [":--" if index in grid.left else "--:" for index in range(len(grid.header))]
    return "\n".join(
        _line(row)
        for row in (
            [escape(name) for name in grid.header],
            rule,
            *([escape(cell) for cell in row] for row in grid.rows),
        )
    )


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def escape(text: str) -> str:
    """Escape text, so that none of it is interpreted as Markdown."""
    return text.translate(_ESCAPED)
