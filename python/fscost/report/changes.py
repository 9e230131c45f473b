"""Changes between two runs as Markdown, for a pull request."""

from fscost.report.markdown import escape, items, table
from fscost.view.changes import Changes, grid, headline, reasons


def text(found: Changes) -> str:
    """Write the answer, the changes with regressions first, and the causes that changed most."""
    blocks = [
        f"## {escape(found.before)} → {escape(found.after)}",
        f"**{escape(headline(found))}**",
        table(grid(found)),
        items(reasons(found)),
        items(found.notes),
    ]
    return "\n\n".join(filter(None, blocks)) + "\n"
