"""A hook of mkdocs: pages that are made of the program, and those that lie beside docs/.

https://www.mkdocs.org/user-guide/configuration/#hooks
"""

import inspect
import re
from functools import cached_property
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files
from mkdocs.utils import get_relative_url
from typer.cli import get_docs_for_click

from fscost import api, devices, workload
from fscost.cli.app import COMMANDS, app, command
from fscost.results import METRICS

_SHIM = "https://unpkg.com/iframe-worker/shim"
_OWN_SHIM = "assets/iframe-worker.js"
ROOT = Path(__file__).parents[1]
BESIDE = {
    "README.md": "index.md",
    "ARCHITECTURE.md": "architecture.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "CHANGELOG.md": "changelog.md",
}


def on_files(files: Files, config: Any) -> Files:
    """Adds the pages that docs/ does not hold."""
    pages = {to: _from_root(ROOT / name) for name, to in BESIDE.items()}
    pages |= {
        "reference/commands.md": commands(),
        "reference/workloads.md": workloads(),
        "reference/metrics.md": metrics(),
        "reference/devices.md": catalogue(),
        "reference/python.md": python_api(),
    }
    for name, text in pages.items():
        files.append(File.generated(config, name, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Links from docs/ to files beside it, which are pages of the site."""
    if page.file.src_uri in BESIDE.values():
        return markdown
    for name, to in BESIDE.items():
        markdown = markdown.replace(f"](../{name}", f"]({to}")
    return markdown


def on_post_page(output: str, page: Any, **_: Any) -> str:
    """The search of a page opened from disk needs a script that mkdocs-material would fetch."""
    return output.replace(_SHIM, get_relative_url(_OWN_SHIM, page.url))


def on_post_template(output: str, **_: Any) -> str:
    """The page of a wrong address is none of the pages."""
    return output.replace(_SHIM, f"/{_OWN_SHIM}")


def _from_root(path: Path) -> str:
    text = path.read_text()
    text = text.replace("](docs/", "](")
    for name, to in BESIDE.items():
        text = text.replace(f"]({name}", f"]({to}")
    return text


def commands() -> str:
    """Every command with its options, as `--help` has them."""
    parts = ["# Commands\n", app.info.epilog or "", "\n"]
    for name in COMMANDS:
        found: Any = command(name)
        context = found.make_context(f"fscost {name}", [], resilient_parsing=True)
        text = get_docs_for_click(obj=found, ctx=context, name=f"fscost {name}")
        # One level down: the page has the only heading of the first.
        parts.append(re.sub(r"^(#+) ", r"#\1 ", text, flags=re.MULTILINE))
    return "\n".join(parts)


def workloads() -> str:
    """Every built-in workload with its options."""
    lines = ["# Workloads\n", "`fscost compare --workload NAME --set OPTION=VALUE`\n"]
    for found in workload.catalogue():
        tools = ", ".join(f"`{tool}`" for tool in found.needs_tools)
        lines += [f"## {found.name}\n", f"{_sentence(found.summary)}"]
        lines += [
            f"It writes at most {found.write_mib} MiB on a disk of {found.disk_mib} MiB at scale 1."
        ]
        lines += [f"It runs {tools}."] if tools else []
        lines += ["", "Phases:", ""]
        lines += [
            f"- {step.name}{'' if step.measured else ' (not measured)'}" for step in found.steps
        ]
        if found.options:
            lines += ["", "| option | default | meaning |", "|---|---|---|"]
            lines += [
                f"| `{name}` | {option.default} | {option.summary} |"
                for name, option in found.options.items()
            ]
        lines.append("")
    return "\n".join(lines)


def metrics() -> str:
    """Every metric: its unit and what it means."""
    rows = [f"| `{name}` | {metric.unit} | {metric.meaning} |" for name, metric in METRICS.items()]
    return "\n".join(["# Metrics\n", "| name | unit | meaning |", "|---|---|---|", *rows, ""])


def catalogue() -> str:
    """Every device of the catalogue, as the TOML that a user can change."""
    lines = ["# Devices\n", "`--ssd` and `--disk` take these names, or a file of the same form.\n"]
    for found in devices.catalogue():
        aliases = f" Also called {', '.join(found.aliases)}." if found.aliases else ""
        lines += [f"## {found.name}\n", f"{_sentence(found.summary)}{aliases}\n"]
        lines += ["```toml", found.text.rstrip(), "```", ""]
    return "\n".join(lines)


def python_api() -> str:
    """What a script imports: each name with its signature and what it says of itself."""
    lines = ["# Python", "", _documented(api), ""]
    for name in api.__all__:
        found = getattr(api, name)
        lines += [f"## `{name}`", "", *_signature(name, found), "", _documented(found), ""]
        if not inspect.isclass(found):
            continue
        for part, member in vars(found).items():
            is_shown = inspect.isfunction(member) or isinstance(member, property | cached_property)
            if is_shown and not part.startswith("_"):
                lines += [f"### `{name}.{part}`", "", *_signature(part, member), ""]
                lines += [_documented(member), ""]
    return "\n".join(lines)


def _signature(name: str, found: Any) -> list[str]:
    if not callable(found):
        return []
    return ["```python", f"{name}{inspect.signature(found)}", "```"]


def _documented(found: Any) -> str:
    return inspect.cleandoc(found.__doc__ or "")


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:].rstrip('.')}."
