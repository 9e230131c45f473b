"""Templates of pages. Autoescape is always on."""

from functools import cache

import jinja2

from fscost.view.units import human_bytes, slug


def template(name: str) -> jinja2.Template:
    """Return a template of this folder."""
    return _environment().get_template(name)


@cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("fscost.report.html", "."),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"slug": slug, "human_bytes": human_bytes}
    return environment
