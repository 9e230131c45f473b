"""Makes the page docs/atlas.md from runs of the suite docs/atlas/atlas.toml.

`collect RUN…` keeps the figures of finished runs in docs/atlas/runs, without their recordings, and
computes the NAND bytes of a second device from the recordings. `page` makes the page from what is
kept.
"""

import argparse
import json
import shlex
import shutil
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import pyarrow.compute as pc

import fscost
from fscost import wear
from fscost.results import MANIFEST, SAMPLES, TOTAL
from fscost.results.worn import NAND
from fscost.results.written import BY_CAUSE, KINDS, MIXED
from fscost.wear import replayed

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs" / "atlas"
RUNS = FOLDER / "runs"
SUITE = FOLDER / "atlas.toml"
TEMPLATE = FOLDER / "page.md.in"
SECOND_DEVICE = "samsung-870-evo-1tb"
SECOND = "second-device.json"
WRITTEN = "device_write_bytes"
MEASURES = {
    "written": WRITTEN,
    "program": "program_write_bytes",
    "requests": "device_write_requests",
    "flushes": "device_flushes",
}
MOST_CAUSES = 5
FOLDER_NAME = str.maketrans({" ": "-", "(": "", ")": ""})


def main() -> None:
    """Run one of the two commands."""
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    collecting = commands.add_parser("collect", help="keep the figures of finished runs")
    collecting.add_argument("runs", type=Path, nargs="+", metavar="RUN")
    commands.add_parser("page", help="make docs/atlas.md from the kept figures")
    asked = parser.parse_args()
    if asked.command == "collect":
        for run in asked.runs:
            collect(run)
    else:
        for file, text in page().items():
            file.write_text(text)


def collect(folder: Path) -> None:
    """Keep a run's manifest and samples, and the NAND bytes of the second device."""
    run = fscost.load(folder)
    if run.results.manifest.state in ("running", "interrupted"):
        raise SystemExit(f"{folder} is not finished: `make atlas` resumes it")
    kernel, workload = kernel_of(run), run.results.manifest.workload["name"]
    kept = RUNS / kernel.translate(FOLDER_NAME) / workload
    nand = nand_bytes(run)
    kept.mkdir(parents=True, exist_ok=True)
    for name in (MANIFEST, SAMPLES):
        shutil.copyfile(folder / name, kept / name)
    (kept / SECOND).write_text(json.dumps(nand, indent=1) + "\n")


def nand_bytes(run: fscost.Run) -> dict[str, float]:
    """Return the bytes that the second device writes to its NAND, by profile, from the recordings
    that the run kept."""
    samples = replayed(run.results, wear.find(SECOND_DEVICE)).samples
    found = samples.filter((pc.field("metric") == NAND) & (pc.field("phase") == TOTAL))
    return {row["profile"]: row["value"] for row in found.to_pylist()}


def kernel_of(run: fscost.Run) -> str:
    """Return the series of the kernel that ran the cells, and where."""
    environment = run.results.manifest.environment
    if guest := environment.get("guest"):
        [series] = guest["kernels"]
        return f"{series} (guest)"
    return ".".join(str(environment["kernel"]["release"]).split(".")[:2]) + " (native)"


def measured(run: fscost.Run) -> list[str]:
    """Return the profiles that have samples, in the suite's order."""
    done = {cell.profile for cell in run.results.manifest.done}
    return [name for name in run.results.manifest.profile_names if name in done]


def page() -> dict[Path, str]:
    """Return the page and its data, by file."""
    kept = [fscost.load(folder, trust=True) for folder in folders()]
    if not kept:
        raise SystemExit(f"{RUNS} holds no runs: `make atlas` runs the suite")
    found = data(kept)
    return {
        FOLDER / "data.js": f"const ATLAS = {json.dumps(found, separators=(',', ':'))};\n",
        ROOT / "docs" / "atlas.md": "\n".join([*head(found), *tables(found), ""]),
    }


def folders() -> Iterator[Path]:
    """Yield the kept runs: native ones first, then those of guests, each in the suite's order."""
    order = list(tomllib.loads(SUITE.read_text())["workloads"])
    found = [path.parent for path in RUNS.glob(f"*/*/{MANIFEST}")]
    is_guest = {path: path.parent.name.endswith("guest") for path in found}
    yield from sorted(
        found, key=lambda path: (is_guest[path], path.parent.name, order.index(path.name))
    )


def data(runs: Sequence[fscost.Run]) -> dict[str, Any]:
    """Return what the page shows: figures by kernel, workload and profile."""
    suite = tomllib.loads(SUITE.read_text())
    cells: dict[str, dict[str, Any]] = {}
    for run in runs:
        manifest = run.results.manifest
        name = str(manifest.workload["name"])
        cells.setdefault(kernel_of(run), {})[name] = figures(run)
    names = dict.fromkeys(name for each in cells.values() for name in each)
    return {
        "profiles": suite["profiles"],
        "workloads": list(names),
        "devices": [suite["ssd"], SECOND_DEVICE],
        "version": runs[0].results.manifest.fscost_version,
        "cells": cells,
    }


def figures(run: fscost.Run) -> dict[str, Any]:
    """Return the figures of each profile: medians over the repetitions, all measured phases."""
    second = json.loads((run.results.folder / SECOND).read_text())
    found = totals(run)
    return {
        profile: {
            "all": found[profile][WRITTEN],
            **{name: median(found[profile][metric]) for name, metric in MEASURES.items()},
            "nand": [median(found[profile][NAND]), second[profile]],
            "kinds": [median(found[profile][kind]) for kind in KINDS[:3]],
            "causes": causes(found[profile]),
            "command": command(run, profile),
        }
        for profile in measured(run)
    }


def totals(run: fscost.Run) -> dict[str, dict[str, list[float]]]:
    """Return each profile's values of each metric, one for each repetition."""
    is_total = pc.field("phase") == TOTAL
    is_counted = (pc.field("measured") & ~is_total) | ((pc.field("metric") == NAND) & is_total)
    chosen = run.samples.filter(is_counted & (pc.field("disk") == ""))
    sums = chosen.group_by(["profile", "metric", "repetition"]).aggregate([("value", "sum")])
    found: dict[str, dict[str, list[float]]] = {}
    for row in sums.to_pylist():
        of_profile = found.setdefault(row["profile"], {})
        of_profile.setdefault(row["metric"], []).append(row["value_sum"])
    return found


def causes(values: dict[str, list[float]]) -> list[tuple[str, float]]:
    """Return the causes for which most was written."""
    named = {**BY_CAUSE, "mixed": MIXED}
    found = [(name, median(values[metric])) for name, metric in named.items() if metric in values]
    return sorted((each for each in found if each[1]), key=lambda each: -each[1])[:MOST_CAUSES]


def command(run: fscost.Run, profile: str) -> str:
    """Return a command that measures this figure again."""
    manifest = run.results.manifest
    words = ["fscost", "compare", "--on", profile, "--workload", str(manifest.workload["name"])]
    if guest := manifest.environment.get("guest"):
        words += ["--lab", "vm", "--kernel", *guest["kernels"]]
    return shlex.join(words)


def head(found: dict[str, Any]) -> list[str]:
    """Return the page up to its tables."""
    first, second = found["devices"]
    count, profiles = len(found["workloads"]), len(found["profiles"])
    text = TEMPLATE.read_text().format(
        count=count, profiles=profiles, version=found["version"], first=first, second=second
    )
    return text.splitlines()


def tables(found: dict[str, Any]) -> Iterator[str]:
    """Yield a table of written bytes for each kernel."""
    for kernel, workloads in found["cells"].items():
        profiles = [
            name for name in found["profiles"] if any(name in cells for cells in workloads.values())
        ]
        yield from ("", f"### Linux {kernel}", "")
        yield "| workload | " + " | ".join(profiles) + " |"
        yield "|---" + "|--:" * len(profiles) + "|"
        for workload, cells in workloads.items():
            least = min(cell["written"] for cell in cells.values())
            shown = (mebibytes(cells.get(name), least) for name in profiles)
            yield f"| {workload} | " + " | ".join(shown) + " |"
        if left_out := [name for name in found["workloads"] if name not in workloads]:
            yield from ("", f"Not measured under this kernel: {', '.join(left_out)}.")


def mebibytes(cell: dict[str, Any] | None, least: float) -> str:
    """Format the bytes of a cell; the least of its row is bold."""
    if cell is None:
        return "—"
    written = cell["written"] / 2**20
    text = f"{written:.3f}" if 0 < written < 0.05 else f"{written:.1f}"
    return f"**{text}**" if cell["written"] == least else text


if __name__ == "__main__":
    main()
