"""Manifests of runs that exist only in a test."""

from copy import deepcopy
from typing import Any

from fscost.results import Manifest

_FIELDS: dict[str, Any] = {
    "name": "test",
    "fscost_version": "0",
    "command_line": [],
    "started_utc": "2026-01-01T00:00:00Z",
    "lab": "fake",
    "environment": {},
    "profiles": [{"name": "ext4"}],
    "workload": {"name": "test"},
    "options": {},
    "stopping": {},
    "seed": 1,
    "baseline": "ext4",
    "request": {},
    "state": "running",
    "stopped_because": "",
    "elapsed_s": 0.0,
    "skipped": [],
    "cells": [],
}


def made(**fields: Any) -> Manifest:
    """Return a manifest with these fields; the others are those of a run that has just begun."""
    return Manifest(**{**deepcopy(_FIELDS), **fields})  # Tests append to its lists.
