"""Makes the page docs/speed.md from what the benchmarks found.

`keep [BENCH…]` keeps the newest line of each benchmark of bench-results/history.jsonl, or of
these alone, in docs/speed.jsonl. `page` makes the page from what is kept.
"""

import argparse
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).parents[1]
HISTORY = ROOT / "bench-results" / "history.jsonl"
KEPT = ROOT / "docs" / "speed.jsonl"
PAGE = ROOT / "docs" / "speed.md"
MIB = 1 << 20
HEAD = (
    "# How fast fscost is\n\n"
    "Each table on this page is what one benchmark found when it last ran: `make bench ARGS=NAME`"
    " repeats it.\n"
    "Under each table stand the revision, the date, the machine and its load (how many programs ran"
    " or waited beside the benchmark).\n"
    "A busy machine only makes fscost look slower, so the least of several runs counts, except"
    " where the text says otherwise.\n"
    "Targets were set before the code was written; **a figure that misses its target is bold**.\n\n"
    "`python tools/speed.py keep` keeps the newest figures in `docs/speed.jsonl`, and"
    " `python tools/speed.py page` makes this page.\n"
)

Row = tuple[str, ...]


@dataclass(frozen=True)
class Section:
    """Table of one benchmark. `words`: the arguments after the benchmark's name."""

    bench: str
    title: str
    text: str
    columns: Row
    rows: Callable[[Any], Iterator[Row]]
    words: str = ""


def main() -> None:
    """Run one of the two commands."""
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    keeping = commands.add_parser("keep", help="keep the newest figures")
    keeping.add_argument("benches", nargs="*", metavar="BENCH")
    commands.add_parser("page", help="make docs/speed.md from the kept figures")
    asked = parser.parse_args()
    if asked.command == "keep":
        keep(asked.benches)
    else:
        PAGE.write_text(page())


def benches() -> list[str]:
    """Return the names of the benchmarks on the page, in its order."""
    return [section.bench for section in SECTIONS]


def keep(names: list[str]) -> None:
    """Keep the newest line of each of these benchmarks, or of all that ran."""
    found = lines(KEPT) if KEPT.exists() else {}
    newest = lines(HISTORY)
    if names and (unknown := [name for name in names if name not in newest]):
        raise SystemExit(f"{HISTORY} has no figures of {', '.join(unknown)}: run them first")
    found |= {name: newest[name] for name in names or newest}
    KEPT.write_text("".join(json.dumps(found[name]) + "\n" for name in benches() if name in found))


def lines(file: Path) -> dict[str, dict[str, Any]]:
    """Return the newest line of each benchmark."""
    return {line["bench"]: line for line in map(json.loads, file.read_text().splitlines())}


def page() -> str:
    """Return the page's text."""
    found = lines(KEPT)
    return "\n".join([HEAD, *(part(each, found[each.bench]) for each in SECTIONS)])


def part(section: Section, line: Mapping[str, Any]) -> str:
    """Return a section's text: what is measured, the table, and where it is from."""
    heads = [section.columns, tuple("---" if not n else "--:" for n in range(len(section.columns)))]
    rows = [*heads, *section.rows(line["figures"])]
    table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    machine = line["machine"]
    words = f"'{section.bench} {section.words}'" if section.words else section.bench
    source = (
        f"`make bench ARGS={words}`, revision {line['revision']}, {line['at'][:10]},"
        f" {machine['cpu']['cores']} cores ({machine['cpu']['model']}), load {line['load']:.1f}"
    )
    return f"## {section.title}\n\n{section.text}\n\n{table}\n\n{source}\n"


def judged(text: str, is_met: bool) -> str:
    """Mark a figure that misses its target."""
    return text if is_met else f"**{text}**"


def explained(figures: Any) -> Iterator[Row]:
    """Yield a row for each recording of `explain`."""
    for each in figures["recordings"]:
        wall_s = each["explain"]["wall_s"]
        ratio = each["parquet"]["wall_s"] / wall_s
        yield (
            each["name"],
            f"{each['bytes'] / 1e9:.2f} GB",
            f"{each['requests']:,}",
            f"{wall_s:.2f} s",
            f"{each['explain']['cpu_s']:.2f} s",
            judged(f"{each['bytes'] / wall_s / 1e9:.2f} GB/s", "rate" not in each["over_budget"]),
            judged(f"{each['explain']['first_s']:.2f} s", "first line" not in each["over_budget"]),
            judged(f"{ratio:.2f}", "parquet" not in each["over_budget"]),
            f"{each['export']['wall_s'] / each['copy']['wall_s']:.2f}",
            f"{each['md5sums']:.2f}",
        )


def classified(figures: Any) -> Iterator[Row]:
    """Yield a row for each recording of `classify`."""
    for each in figures:
        cpu_s, size, count = (
            each[name] for name in ("classifier_cpu_s", "content_bytes", "requests")
        )
        beside = each.get("blkparse_cpu_s")
        yield (
            f"{each['name']}, {each['family']}",
            f"{count:,}",
            f"{size / count / 1024:.1f}",
            judged(f"{size / cpu_s / 1e9:.2f}", "bytes" not in each["over_budget"]),
            judged(f"{count / cpu_s / 1e3:,.0f}", "requests" not in each["over_budget"]),
            judged(f"{each['peak_bytes'] / MIB:.0f} MiB", "memory" not in each["over_budget"]),
            f"{each['whole_cpu_s']:.2f} s",
            "" if beside is None else f"{beside:.2f} s",
        )


def recorded(figures: Any) -> Iterator[Row]:
    """Yield a row for each phase of `overhead`."""
    for each in figures:
        walls = {kind: median(found.values()) for kind, found in each["wall_s"].items()}
        interval = "" if each["low"] is None else f"{each['low']:.2f} to {each['high']:.2f}"
        yield (
            f"{each['workload']}, {each['phase']}",
            f"{each['requests']:,}",
            f"{walls['plain']:.2f} s",
            f"{walls['recorded']:.2f} s",
            judged(f"{each['ratio']:.2f}", each["ratio"] <= each["budget"]),
            interval,
            f"{each['budget']:.2f}",
            f"{each['floor']:.2f}" if "floor" in each else "",
        )


def guests(figures: Any) -> Iterator[Row]:
    """Yield a row for each way to start a guest."""
    for how, each in figures.items():
        took = each["cell_s"]
        yield (
            how,
            f"{median(took):.2f} s ({min(took):.2f} to {max(took):.2f})",
            f"{len(took)}",
            f"{each['peak_bytes'] / MIB:.0f} MiB",
        )


def worn(figures: Any) -> Iterator[Row]:
    """Yield a row for each pattern of `wear`."""
    for name, each in figures["patterns"].items():
        speed = each["steady"] if each["judges"] == "steady" else each["sequential"]
        yield (
            name,
            judged(f"{speed:,.1f}", speed >= each["target"]),
            f"{each['target']:,.0f}",
            f"{each['unit_bytes']:.1f}",
        )


def arrays(figures: Any) -> Iterator[Row]:
    """Yield a row for each array."""
    for name, each in figures.items():
        level, members = name.split()
        yield (
            level,
            members,
            judged(f"{each['random'][0]:.2f}", each["random"][0] >= 1),
            f"{each['random'][2]:.2f}",
            f"{each['sequential'][1]:.1f}",
            f"{each['sequential'][2]:.2f}",
        )


def traces(figures: Any) -> Iterator[Row]:
    """Yield a row for each reader."""
    for name, each in figures.items():
        speed = each["lines_per_s"] / 1e6
        yield name, judged(f"{speed:.1f}", speed >= 5), f"{each['megabytes_per_s']:,.0f}"


def replays(figures: Any) -> Iterator[Row]:
    """Yield a row for each model of `replay`."""
    for name, each in figures.items():
        whole = 1 / each["command"] / 1e6
        parts = (f"{1 / each[part] / 1e6:.1f}" for part in ("reading", "flushes", "all"))
        yield f"`{name}`", judged(f"{whole:.1f}", whole >= 5), *parts


def delays(figures: Any) -> Iterator[Row]:
    """Yield a row for each model of `delays`."""
    for name, each in figures["models"].items():
        p50, p90, p99 = (f"{late:.1f}" for late in each["late_us"])
        p99 = judged(p99, each["late_us"][2] <= figures["target_us"])
        yield name, p50, p90, p99, f"{each['cpu_us']:.0f} µs", f"{each['all_p99_late_us']:.1f}"


def live(figures: Any) -> Iterator[Row]:
    """Yield a row for each job of `live`."""
    for name, each in figures.items():
        yield (
            name,
            f"{each['live_s']:.2f} s",
            f"{each['offline_s']:.2f} s",
            f"{each['path_s']:.3f} s",
            judged(f"{each['ratio']:.3f}", abs(each["ratio"] - 1) <= 0.05)
            if each["path_s"] * 2 <= each["live_s"]
            else f"{each['ratio']:.3f} (not judged)",
        )


def lives(figures: Any) -> Iterator[Row]:
    """Yield a row for each device of `lives`."""
    for name, each in figures.items():
        yield (
            name,
            f"{each['modelled_bytes'] / 1e9:.0f} GB",
            judged(f"{each['wall_s']:.1f} s", each["wall_s"] < 30),
            f"{each['cpu_s']:.1f} s",
        )


def crashed(figures: Any) -> Iterator[Row]:
    """Yield a row for each profile of `crash`, and one for the enumeration."""
    for name, each in figures["examined"].items():
        rate = each["states"] / each["cpu_s"]
        yield (
            f"{name}, examined",
            f"{each['states']:,}",
            f"{each['wall_s']:.1f} s",
            f"{each['cpu_s']:.1f} s",
            judged(f"{rate:.0f}", rate >= each["target"]),
            f"{each['target']}",
        )
    many = figures["enumerated"]
    rate = many["states"] / many["cpu_s"]
    yield (
        "ext4, enumerated and told apart",
        f"{many['states']:,}",
        f"{many['wall_s']:.1f} s",
        f"{many['cpu_s']:.1f} s",
        judged(f"{rate:,.0f}", rate >= many["target"]),
        f"{many['target']:,.0f}",
    )


def reports(figures: Any) -> Iterator[Row]:
    """Yield the row of `report`."""
    yield (
        f"{figures['requests']:,}",
        f"{figures['add_s']:.1f} s",
        f"{figures['draw_s']:.1f} s",
        f"{figures['bytes'] / 1e6:.1f} MB",
    )


def pages(figures: Any) -> Iterator[Row]:
    """Yield a row for each run of `pages`. Only one has a target."""
    for name, each in figures["commands"].items():
        budget_s = each.get("budget_s")
        text = judged(f"{each['cpu_s']:.2f} s", budget_s is None or each["cpu_s"] <= budget_s)
        yield name, text, f"{budget_s:g} s" if budget_s else ""


def started(figures: Any) -> Iterator[Row]:
    """Yield a row for each command of `start`."""
    for name, each in figures.items():
        before_s = each.get("before_s")
        share = each["cpu_s"] / before_s if before_s else 0.0
        yield (
            f"`fscost {name}`",
            f"{each['cpu_s']:.2f} s",
            f"{each['libraries_s']:.2f} s",
            f"{before_s:.2f} s" if before_s else "",
            judged(f"{share:.2f}", share <= each["target"]) if before_s else "",
            f"{each['target']:.2f}",
        )


def stores(figures: Any) -> Iterator[Row]:
    """Yield the rows of `store`."""
    yield (
        "opened",
        f"{figures['cells']:,}",
        judged(f"{figures['cpu_s']:.2f} s", figures["cpu_s"] <= 2.0),
        f"{figures['peak_bytes'] / 1e6:,.0f} MB",
    )
    yield "its manifest as JSON", f"{figures['cells']:,}", f"{figures['json_cpu_s']:.2f} s", ""
    run = figures["run"]
    for cells, cost in ((run["cells"] // 2, run["half"]), (run["cells"], run["whole"])):
        yield (
            "run",
            f"{cells:,}",
            f"{cost['cpu_s']:.2f} s",
            judged(f"{cost['peak_bytes'] / 1e6:,.0f} MB", cost["peak_bytes"] <= 200e6),
        )


SECTIONS = (
    Section(
        "start",
        "The start of commands",
        "CPU time of commands that do little, the least of 20 runs: the list of the options, and"
        " the tables of a run of five profiles.\n"
        "Importing libraries takes most of it. The commands of revision ba24060 ran alternately"
        " with these, and each target is a share of the older time.",
        ("command", "CPU", "of which libraries", "ba24060", "share", "target"),
        started,
        "--before DIR",
    ),
    Section(
        "explain",
        "The command `fscost explain`",
        "A whole command, as a user waits for it, on a tree like a kernel's source (unpacked, built"
        " and removed), and on the workload small-files on xfs.\n"
        "Targets: 1 GB of recorded content per second, 0.2 s to the first line, and `--parquet` at"
        " most 1.3 times as long. The last columns compare the export of an image with `cp`, and"
        " the rate with that of md5sum in the same run, because machines differ.",
        (
            *("recording", "content", "requests", "time", "CPU", "rate", "first line"),
            *("`--parquet`", "export / `cp`", "rate / md5sum"),
        ),
        explained,
    ),
    Section(
        "classify",
        "The code that explains each request",
        "Rates refer to the CPU time of the classifier, a single thread; the column `explain` also"
        " includes decompression on other threads.\n"
        "Targets: 500,000 requests per second where requests have 4 KiB or less on average, 1 GB/s"
        " otherwise, and less than 1 GiB of memory.\n"
        "blkparse sums the same requests by process, from a trace with three events for each; it"
        " reads no content, so it shows the cost of reading requests alone.",
        (
            *("recording", "requests", "KiB each", "GB/s", "thousand requests/s"),
            *("peak memory", "`explain`, CPU", "blkparse, CPU"),
        ),
        classified,
    ),
    Section(
        "overhead",
        "Recording a disk",
        "The same workload on a plain loop device and on a recorded disk, in pairs, with everything"
        " in memory (ext4): medians, and the ratio with its 95 % interval.\n"
        "`FUSE alone` is the ratio of a FUSE server that keeps the bytes and does nothing else"
        " (`crates/device/examples/reply_only.rs`). No recorder behind FUSE and a loop device is"
        " faster, so a target below it cannot be reached there; `/dev/ublk*` has one hop less, but"
        " few kernels offer it.",
        (
            *("workload, phase", "requests", "plain", "recorded", "ratio", "95 %", "target"),
            "FUSE alone",
        ),
        recorded,
        "--floor",
    ),
    Section(
        "vm",
        "Guests",
        "An ext4 cell that writes one file, in an emulated guest: from a snapshot, and booted.\n"
        "The memory is that of QEMU and the disk server, the guest's own included.",
        ("guest", "duration of the cell (median, range)", "n", "peak resident memory"),
        guests,
    ),
    Section(
        "wear",
        "The SSD model",
        "Million units of 4 KiB per second of CPU time of one thread, at 256 GiB with 28 %"
        " over-provisioning and greedy collection; memory in bytes per physical unit.",
        ("writes", "million units/s", "target", "bytes per unit"),
        worn,
    ),
    Section(
        "raid",
        "The model of arrays",
        "Speed in CPU time, and the bytes written to the members for each byte of the array.\n"
        "Target: a million requests per second.",
        (
            "level",
            "members",
            "4 KiB at random: million requests/s",
            "bytes written",
            "1 MiB in order: GiB/s",
            "bytes written",
        ),
        arrays,
    ),
    Section(
        "traces",
        "Readers of traces",
        "CPU time of one core, without decompression; records of blktrace and entries of"
        " dm-log-writes count as lines. Target: 5 million lines per second.",
        ("format", "million lines/s", "MB/s"),
        traces,
    ),
    Section(
        "replay",
        "The command `fscost replay`",
        "Two million reads and writes, a quarter of them at random places, with a flush after every"
        " hundredth request, in million requests per second.\n"
        "A replay reads the recording once, and replays it under both assumptions at the same time;"
        " a request counts once for each in *whole replay*, whose target is 5 on two cores.\n"
        "The other columns give the speed of each part on one core.",
        ("model", "whole replay", "reading", "*at least*", "*in order*"),
        replays,
    ),
    Section(
        "delays",
        "The delays of a modelled disk",
        "How late replies are, in microseconds; the first three columns cover only requests for"
        " which the model takes at least 100 µs.\n"
        "Target: at most 20 µs for 99 % of the replies, on an idle core.",
        ("model", "late: median", "90 %", "99 %", "processor time", "99 % of all"),
        delays,
    ),
    Section(
        "live",
        "Live runs beside offline replays",
        "fio runs on a modelled disk (live), and on one without delay whose recording is then"
        " replayed (offline); median of the rounds. Target: a ratio within 5 % of 1 on a quiet"
        " machine. A job is not judged if the disk without delay takes more than half of its live"
        " time: it measures this machine and its kernel, which no model contains.",
        ("model, job", "live", "offline", "no delay", "ratio"),
        live,
    ),
    Section(
        "lives",
        "The life of a device",
        "`fscost wear` of a trace with 512 MiB of random 4 KiB writes, on each device of the"
        " catalogue: block and log mappings at their real size, the others at 64 GiB or their own"
        " size. Target: 30 s.",
        ("device", "modelled", "time", "CPU"),
        lives,
    ),
    Section(
        "crash",
        "States after power cuts",
        "`fscost crash RUN` of a recording of 8 rounds and 40 cuts: the choice of the states, their"
        " examination with all checks, and the controls. CrashMonkey (OSDI '18) publishes 2.2 s for"
        " a workload, with one state for each persistence point.",
        ("what", "states", "time", "CPU", "states per second of CPU", "target"),
        crashed,
    ),
    Section(
        "report",
        "The report",
        "The charts of one recording. Target: 10 s for 5 million requests.",
        ("requests", "adding up", "drawing", "size of the page"),
        reports,
    ),
    Section(
        "pages",
        "The command `fscost report`",
        "CPU time of the whole command, the least of five runs, for a run of twelve profiles"
        " (small-files, three repetitions), the script of the page's charts being in the cache.\n"
        "With `--ssd`, the page replays each recording on that device: up to three times, or once"
        " if the run itself was made with `--ssd`, and has the ends of the amplification.",
        ("report of", "CPU", "target"),
        pages,
    ),
    Section(
        "store",
        "A run of many cells",
        "Opening a run, as `fscost show` does first (target: 2 s for 100,000 cells), and running"
        " cells that do nothing (target: twice the cells in twice the time, and 2,000 in less than"
        " 200 MB).",
        ("what", "cells", "CPU", "peak memory"),
        stores,
    ),
)


if __name__ == "__main__":
    main()
