"""mkdocs hook: adds pages generated from the program, and documents that lie outside docs/.

https://www.mkdocs.org/user-guide/configuration/#hooks
"""

import inspect
import json
import os
import re
import tomllib
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files
from mkdocs.utils import get_relative_url
from typer.cli import get_docs_for_click

from fscost import api, devices, workload
from fscost.cli.app import COMMANDS, app, command
from fscost.report import document
from fscost.results import METRICS
from fscost.results.table import SCHEMA

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
    """Add the pages that are not in docs/."""
    pages = {to: _from_root(ROOT / name) for name, to in BESIDE.items()}
    # Beside the table of contents, a terminal's 100 columns do not fit a window of 1,280 pixels.
    pages["index.md"] = f"---\nhide: [toc]\n---\n{pages['index.md']}"
    pages |= {
        "reference/commands.md": commands(),
        "reference/workloads.md": workloads(),
        "reference/metrics.md": metrics(),
        "reference/results.md": results(),
        "reference/devices.md": catalogue(),
        "reference/python.md": python_api(),
        "reference/rust.md": rust_api(),
    }
    for name, text in pages.items():
        files.append(File.generated(config, name, content=text))
    # `make docs` sets this to the output folder of rustdoc.
    made = Path(os.environ["FSCOST_RUSTDOC"])
    for path in made.rglob("*"):
        if path.is_file() and not path.name.startswith("."):
            name = f"rust/{path.relative_to(made)}"
            files.append(File.generated(config, name, abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Rewrite links from docs/ to files outside it, which are pages of the site."""
    if page.file.src_uri in BESIDE.values():
        return markdown
    up = "../" * page.file.src_uri.count("/")
    for name, to in BESIDE.items():
        markdown = markdown.replace(f"]({up}../{name}", f"]({up}{to}")
    return markdown


def on_post_page(output: str, page: Any, **_: Any) -> str:
    """Use a local copy of the script that search needs in pages opened from disk.

    mkdocs-material would fetch it from the network.
    """
    return output.replace(_SHIM, get_relative_url(_OWN_SHIM, page.url))


def on_post_template(output: str, **_: Any) -> str:
    """Use the local copy in the 404 page, too, which is a template and not a page."""
    return output.replace(_SHIM, f"/{_OWN_SHIM}")


def _from_root(path: Path) -> str:
    text = path.read_text()
    text = text.replace("](docs/", "](")
    for name, to in BESIDE.items():
        text = text.replace(f"]({name}", f"]({to}")
    return text


def commands() -> str:
    """Return the page of all commands with their options, as `--help` prints them."""
    parts = ["# Commands\n", app.info.epilog or "", "\n"]
    for name in COMMANDS:
        found: Any = command(name)
        context = found.make_context(f"fscost {name}", [], resilient_parsing=True)
        text = get_docs_for_click(obj=found, ctx=context, name=f"fscost {name}")
        # Demote the headings: the page has a single heading of level 1.
        parts.append(re.sub(r"^(#+) ", r"#\1 ", text, flags=re.MULTILINE))
    return "\n".join(parts)


def workloads() -> str:
    """Return the page of all built-in workloads with their options."""
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
    """Return the page of all metrics with their units and meanings."""
    rows = [f"| `{name}` | {metric.unit} | {metric.meaning} |" for name, metric in METRICS.items()]
    return "\n".join(["# Metrics\n", "| name | unit | meaning |", "|---|---|---|", *rows, ""])


def results() -> str:
    """Return the page of the samples table and all JSON documents: fields, types, meanings."""
    lines = ["# Results\n", "## `samples.parquet`\n"]
    lines += ["One row for each cell, phase, disk and metric; an empty disk is the sum of all.\n"]
    lines += ["| column | type |", "|---|---|"]
    lines += [f"| `{field.name}` | {field.type} |" for field in SCHEMA]
    for kind in document.VERSIONS:
        schema = json.loads(document.schema(kind))
        lines += ["", f"## `{kind}`\n", schema.get("description", "")]
        lines += _fields(schema)
        for name, part in schema.get("$defs", {}).items():
            lines += ["", f"### {kind}: {name}\n", part.get("description", ""), *_fields(part)]
    return "\n".join([*lines, ""])


def _fields(schema: Mapping[str, Any]) -> list[str]:
    if "properties" not in schema:
        return ["", _type(schema)]
    rows = [
        f"| `{name}` | {_type(field)} |"
        f" {field.get('description', '').replace('|', chr(92) + '|')} |"
        for name, field in schema["properties"].items()
    ]
    return ["", "| field | type | meaning |", "|---|---|---|", *rows]


def _type(field: Mapping[str, Any]) -> str:
    """Summarise the type of a field in a word or two."""
    if "$ref" in field:
        return str(field["$ref"].rpartition("/")[2])
    if "const" in field:
        return f"`{field['const']}`"
    if "enum" in field:
        return " or ".join(f"`{value}`" for value in field["enum"])
    if "anyOf" in field:
        return " or ".join(map(_type, field["anyOf"]))
    if field.get("type") == "array":
        return f"list of {_type(field.get('items', {}))}"
    if isinstance(field.get("additionalProperties"), dict):
        return f"object of {_type(field['additionalProperties'])}"
    return str(field.get("type", "any value"))


def catalogue() -> str:
    """Return the page of all devices in the catalogue, as TOML that users can copy and change."""
    lines = ["# Devices\n", "`--ssd` and `--disk` take these names, or a file of the same form.\n"]
    for found in devices.catalogue():
        aliases = f" Also called {', '.join(found.aliases)}." if found.aliases else ""
        lines += [f"## {found.name}\n", f"{_sentence(found.summary)}{aliases}\n"]
        lines += ["```toml", found.text.rstrip(), "```", ""]
    return "\n".join(lines)


def python_api() -> str:
    """Return the page of the Python API: each public name with its signature and docstring."""
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


def rust_api() -> str:
    """Return the page of the library crates, each with a link to its rustdoc page."""
    lines = [
        "# Rust\n",
        "Programs in Rust can read and explain recordings with the crates that fscost is made of.",
        "[Architecture](../architecture.md) says what each of them knows.\n",
        "| crate | contents |",
        "|---|---|",
    ]
    for library in sorted((ROOT / "crates").glob("*/src/lib.rs")):
        package = tomllib.loads((library.parents[1] / "Cargo.toml").read_text())["package"]
        if package.get("publish", True):
            page = f"../rust/{package['name'].replace('-', '_')}/index.html"
            lines.append(f"| [{package['name']}]({page}) | {package['description']} |")
    return "\n".join([*lines, ""])


def _signature(name: str, found: Any) -> list[str]:
    if not callable(found):
        return []
    return ["```python", f"{name}{inspect.signature(found)}", "```"]


def _documented(found: Any) -> str:
    return inspect.cleandoc(found.__doc__ or "")


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:].rstrip('.')}."
