"""One HTML file that shows a run; opening it fetches nothing."""

from fscost.report.html.page import html_text

__all__ = ["html_text"]
