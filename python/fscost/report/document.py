"""Documents for programs: JSON objects that name the schema they follow."""

import json
from collections.abc import Mapping
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Any

SUITE = "suite"
"""The only kind that fscost reads; it writes all others."""
VERSIONS = dict.fromkeys(
    (
        SUITE,
        "run",
        "diff",
        "crash",
        "crash-controls",
        "crash-state",
        "explain",
        "explain-diff",
        "explain-at",
        "explain-trace",
        "wear",
        "replay",
        "study",
        "recording-info",
        "recording-verify",
        "runs",
        "profiles",
        "workloads",
        "devices",
        "doctor",
        "studies",
    ),
    1,
)
"""Version of each kind's schema. It is raised if a reader of the previous version could fail or be
misled."""


def name(kind: str) -> str:
    """Return name and version of a kind's schema."""
    return f"fscost-{kind}-{VERSIONS[kind]}"


def folder() -> Traversable:
    """Return the folder of the schemas."""
    return resources.files("fscost.report") / "schemas"


def schema(kind: str) -> str:
    """Return the schema as JSON."""
    return (folder() / f"{name(kind)}.json").read_text("utf-8")


def text(kind: str, value: Mapping[str, Any]) -> str:
    """Serialize a document, which names its schema first."""
    named = {"schema": name(kind), **value}
    return json.dumps(named, indent=1, allow_nan=False) + "\n"
