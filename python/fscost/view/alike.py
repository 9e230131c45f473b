"""Differences between two runs other than their measurements: what each did, on which profiles, and
where. The manifests are untrusted."""

from collections.abc import Mapping, Sequence
from typing import Any

from fscost.results import Manifest
from fscost.view.grid import plain

_STEP = ("name", "shell", "measured", "settle", "drop_caches", "env")
_PROFILE = {
    "type": "file system",
    "mkfs_flags": "mkfs flags",
    "mount_options": "mount options",
    "disks": "disks",
    "array": "array",
    "after_mkfs": "commands after mkfs",
    "after_mount": "commands after mount",
    "background": "background programs",
}
_NO_WORK = ("keep", "replay", "wear_device")
"""Options that do not change what a cell does."""
_LONGEST = 60
"""Maximum length of a value that is worth printing."""

Facts = Mapping[str, Any]


def work(manifest: Manifest, profiles: Sequence[str]) -> Facts:
    """Return what a run did with these profiles, by name. A fact that an older version did not
    store is missing."""
    workload = manifest.workload
    facts: dict[str, Any] = {
        name: workload[name] for name in ("scale", "recipe") if name in workload
    }
    facts |= {"workload": workload.get("name"), "seed": manifest.seed}
    steps = workload.get("steps")
    facts["steps"] = [
        {name: step.get(name) for name in _STEP} if isinstance(step, dict) else step
        for step in (steps if isinstance(steps, list) else [])
    ]
    options = manifest.options.items()
    facts |= {f"workload's {name}": value for name, value in workload.get("options", [])}
    facts |= {_option(name): value for name, value in options if name not in _NO_WORK}
    for profile in manifest.profiles:
        if profile["name"] in profiles:
            facts |= {
                f"{profile['name']}'s {word}": profile[name]
                for name, word in _PROFILE.items()
                if name in profile
            }
    return facts


def without_seed(manifest: Manifest, facts: Facts) -> dict[str, Any]:
    """Return what a run did, on the whole: the steps of some built-in workloads hold the seed."""
    is_built_in = not (manifest.request.get("command") or manifest.request.get("step"))
    left_out = {"seed", "steps"} if is_built_in else {"seed"}
    return {name: value for name, value in facts.items() if name not in left_out}


def unlike(before: Manifest, after: Manifest, profiles: Sequence[str]) -> dict[str, str]:
    """Return both values of what two runs did otherwise with these profiles, by name."""
    facts = [work(manifest, profiles) for manifest in (before, after)]
    if before.seed != after.seed:
        kept = [
            without_seed(manifest, each) | {"seed": manifest.seed}
            for manifest, each in zip((before, after), facts, strict=True)
        ]
        return differences(*kept)
    return differences(*facts)


def place(manifest: Manifest) -> Facts:
    """Return where a run took place, by name."""
    environment = manifest.environment
    kernel, guest = environment.get("kernel"), environment.get("guest")
    facts: dict[str, Any] = {"fscost": manifest.fscost_version}
    is_guest = isinstance(guest, dict)
    if isinstance(kernel, dict):
        facts["host's kernel" if is_guest else "kernel"] = kernel.get("release")
    if isinstance(guest, dict):
        facts |= {f"guests' {name}": value for name, value in guest.items()}
    return facts


def differences(before: Facts, after: Facts) -> dict[str, str]:
    """Return both values of the facts that differ, as text; values that are too long to print are
    left out."""
    found = {}
    for name in sorted(before.keys() & after.keys()):
        if before[name] != after[name]:
            values = [plain(_text(facts[name])) for facts in (before, after)]
            is_short = all(len(value) <= _LONGEST for value in values)
            found[plain(name)] = ", then ".join(values) if is_short else "not the same"
    return found


def _text(value: Any) -> str:
    parts = value.values() if isinstance(value, dict) else value
    if isinstance(value, dict | list | tuple):
        return " ".join(map(str, parts)) or "none"
    return str(value) or "none"


def _option(name: str) -> str:
    return "disk size" if name == "disk_size_bytes" else name.replace("_", " ")
