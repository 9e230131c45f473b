"""Documents for programs: JSON objects that name the schema which they follow."""

import json
from collections.abc import Mapping
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Any

SUITE = "suite"
"""The one kind that fscost reads; it prints all others."""
VERSIONS = dict.fromkeys(
    (
        SUITE,
        "run",
        "diff",
        "explain",
        "explain-diff",
        "explain-at",
        "wear",
        "replay",
        "study",
        "recording-info",
        "recording-verify",
    ),
    1,
)
"""Of each kind's schema. Raised when a reader of the version before could fail or be misled."""


def name(kind: str) -> str:
    """Name and version of a kind's schema."""
    return f"fscost-{kind}-{VERSIONS[kind]}"


def folder() -> Traversable:
    """Where the schemas are."""
    return resources.files("fscost.report") / "schemas"


def schema(kind: str) -> str:
    """The schema itself, as JSON."""
    return (folder() / f"{name(kind)}.json").read_text("utf-8")


def text(kind: str, value: Mapping[str, Any]) -> str:
    """The document, which names its schema first."""
    named = {"schema": name(kind), **value}
    return json.dumps(named, indent=1, allow_nan=False) + "\n"
