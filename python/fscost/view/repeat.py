"""Instructions to repeat a run: its command, the commands for each profile, and its environment. A
manifest is untrusted, so each part is shown only in the form that fscost writes."""

import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from fscost.results import RunResults
from fscost.view.grid import plain

_LONGEST = 400


def command(results: RunResults) -> str:
    """Return the command line of the run."""
    line = results.manifest.command_line
    return plain(shlex.join(["fscost", *line[1:]])) if line else ""


def steps(results: RunResults) -> list[tuple[str, str]]:
    """Return each profile and the commands of its first finished cell."""
    found: dict[str, str] = {}
    for cell in results.manifest.done:
        plan = cell.facts.get("plan")
        if cell.profile not in found and isinstance(plan, dict):
            found[cell.profile] = "\n".join(_of_plan(plan))
    return [(plain(name), plain(text)) for name, text in found.items() if text]


def _of_plan(plan: Mapping[str, Any]) -> Iterator[str]:
    for words in _list(plan.get("mkfs")):
        if isinstance(words, list):
            yield shlex.join(map(str, words))
    mount = plan.get("mount")
    if isinstance(mount, dict):
        options = mount.get("options")
        chosen = f" -o {shlex.quote(str(options))}" if options else ""
        yield f"mount -t {mount.get('type')}{chosen} {mount.get('device')} {{dir}}"
    for step in _list(plan.get("steps")):
        if isinstance(step, dict):
            yield f"{step.get('shell')}   # {step.get('name')}, then {step.get('settle')}"


def environment(results: RunResults) -> list[tuple[str, str]]:
    """Return names and values of all known facts about the run's environment."""
    manifest = results.manifest
    first = {
        "fscost": manifest.fscost_version,
        "started": manifest.started_utc,
        "lab": manifest.lab,
        "seed": manifest.seed,
        "baseline": manifest.baseline,
        "state": manifest.state,
    }
    return [
        (plain(name), plain(value)[:_LONGEST])
        for name, value in (*_flat(first), *_flat(manifest.environment), *_flat(manifest.options))
    ]


def mounts(results: RunResults) -> list[tuple[str, str]]:
    """Return each profile and the mount options that the kernel reported."""
    found: dict[str, str] = {}
    for cell in results.manifest.done:
        mount = cell.facts.get("mount")
        if isinstance(mount, dict):
            parts = (mount.get("options"), mount.get("super_options"))
            options = dict.fromkeys(
                word for part in parts if isinstance(part, str) for word in part.split(",")
            )
            found.setdefault(cell.profile, f"{mount.get('type')}: {','.join(options)}")
    return [(plain(name), plain(text)[:_LONGEST]) for name, text in found.items()]


def provenance(results: RunResults) -> dict[str, Any]:
    """Return the provenance of a picture's numbers: version, seed, and the digests of
    recordings."""
    manifest = results.manifest
    digests = {
        path: digest
        for cell in manifest.done
        for path, digest in cell.files_sha256.items()
        if path == cell.recording
    }
    return {
        "software": f"fscost {manifest.fscost_version}",
        "run": manifest.name,
        "started_utc": manifest.started_utc,
        "seed": manifest.seed,
        "recordings_sha256": digests,
    }


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _flat(value: Any, name: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _flat(inner, f"{name}.{key}" if name else str(key))
    elif isinstance(value, list):
        yield name, ", ".join(map(str, value))
    elif value is not None:
        yield name, str(value)
