"""Templates of pages. Autoescape is always on, and each text is `plain`."""

import re
from functools import cache
from typing import Any

import jinja2
from jinja2.utils import urlize
from markupsafe import Markup, escape

from fscost.view.grid import plain
from fscost.view.units import human_bytes, slug

_OPTION = re.compile(r"(?<!\S)--?[A-Za-z][A-Za-z-]{0,20}(?![\w-])")


def template(name: str) -> jinja2.Template:
    """Return a template of this folder."""
    return _environment().get_template(name)


@cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("fscost.report.html", "."),
        autoescape=True,
        finalize=_plain,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "slug": slug,
        "human_bytes": human_bytes,
        "whole_options": whole_options,
        "linked": linked,
    }
    return environment


def whole_options(text: str) -> Markup:
    """Escape a sentence, and keep the words that begin with a hyphen whole: browsers end a line
    between the hyphens of --ssd."""
    return Markup(_OPTION.sub(r'<span class="option">\g<0></span>', str(escape(plain(text)))))


def linked(text: str) -> Markup:
    """Escape a sentence, make its addresses links, and drop the backticks of Markdown."""
    return Markup(urlize(plain(text).replace("`", ""), rel="noreferrer"))


def _plain(value: Any) -> Any:
    """Return a text without control characters, unless it is a part of the page itself."""
    return plain(value) if isinstance(value, str) and not hasattr(value, "__html__") else value
