"""Changes between two runs as Markdown, for a pull request."""

from fscost.report.markdown import escape, table
from fscost.view.changes import Changes, grid, headline, reasons


def text(found: Changes) -> str:
    """Write the answer, the changes with regressions first, and the causes that changed most."""
    blocks = [
        f"## {escape(found.before)} → {escape(found.after)}",
        f"**{escape(headline(found))}**",
        table(grid(found)),
        *(
            "\n".join(f"- {escape(line)}" for line in each)
            for each in (reasons(found), found.notes)
        ),
    ]
    return "\n\n".join(filter(None, blocks)) + "\n"
