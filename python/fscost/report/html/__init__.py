"""One HTML file that shows a run: nothing is fetched when it is opened."""

from fscost.report.html.page import html_text

__all__ = ["html_text"]
