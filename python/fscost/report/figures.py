"""Figures of a run, by name: those of a page, and those that `fscost plot` draws."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from fscost import stats
from fscost.report import charts
from fscost.view.kept import Explained
from fscost.view.page import Page, meaning
from fscost.view.summary import titled
from fscost.view.units import slug

LATENCY = "latency-"
_MORE_IS_BETTER = ("lifetime_years",)


@dataclass(frozen=True)
class Figure:
    """A chart with a name, a title and a text alternative. `profile` is empty for a figure of all
    profiles."""

    name: str
    title: str
    about: str
    chart: Any
    profile: str = ""
    anchor: str = ""

    @property
    def identity(self) -> str:
        """Identifier that is unique among the figures of a page."""
        return f"{self.name}-{self.anchor}" if self.anchor else self.name


def figures(page: Page) -> Iterator[Figure]:
    """Yield all figures that the run has data for."""
    if "claims" in page.tables:
        yield from of_claims(page.tables["claims"].data)
    yield from _of_run(page)
    yield from _of_times(page.tables["latencies"].data)
    yield from _of_models(page)
    causes = charts.largest(page.tables["causes"].data, "cause", "write_bytes")
    for each in page.kept.explained:
        yield from of_recording(each, causes)


def of_claims(table: pa.Table) -> Iterator[Figure]:
    """Yield one figure for each claim and unit with measurements, in the table's order."""
    for number in dict.fromkeys(table["claim"].to_pylist()):
        mine = table.filter(pc.and_(pc.equal(table["claim"], number), pc.is_valid(table["median"])))
        for place, unit in enumerate(dict.fromkeys(mine["unit"].to_pylist())):
            yield Figure(
                f"claim-{number}{'' if place == 0 else f'-{slug(unit)}'}",
                "● measured, with its 95 % interval; ◇ published; the criterion holds in the band",
                f"Claim {number}: {mine['text'][0].as_py()}. Numbers in the table below.",
                charts.claim(mine.filter(pc.equal(mine["unit"], unit))),
            )


def _of_run(page: Page) -> Iterator[Figure]:
    for name, draw in (
        ("causes", charts.causes),
        ("structures", charts.structures),
        ("phases", charts.phases),
    ):
        table = page.tables[name]
        if table.data.num_rows:
            about = f"{table.title}: a bar for each profile, numbers in the table below."
            yield Figure(name, table.title, about, draw(table.data))
    effects = page.tables["effects"].data
    if effects.num_rows:
        about = "Effect of each option of the sweep, and its 95 % interval; numbers in the table."
        yield Figure("effects", page.tables["effects"].title, about, charts.effects(effects))
    measures = page.tables["measures"].data
    for metric in dict.fromkeys(measures["metric"].to_pylist()):
        chosen = measures.filter(pc.equal(measures["metric"], metric))
        about = (
            f"{meaning(metric)}: median of each profile, the 95 % interval as a line, and each"
            " repetition as a tick."
        )
        values = stats.by_repetition(page.results.samples, metric)
        unit = chosen["unit"][0].as_py()
        chart = charts.measure(
            chosen,
            unit,
            {name: each.values() for name, each in values.items()},
        )
        better = "more" if metric in _MORE_IS_BETTER else "less"
        yield Figure(metric, f"{titled(metric, unit)} ({better} is better)", about, chart)


def _of_times(table: pa.Table) -> Iterator[Figure]:
    for what in dict.fromkeys(table["what"].to_pylist()):
        mine = table.filter(pc.equal(table["what"], what))
        if pc.max(mine["longer"]).as_py() > 0:
            yield Figure(
                f"{LATENCY}{slug(what)}",
                f"Share that took longer: {what}",
                f"A line for each profile: the share of {what} that took longer than a given time.",
                charts.latencies(mine),
            )


def _of_models(page: Page) -> Iterator[Figure]:
    models = page.modelled
    if models.wear_map.num_rows:
        yield Figure(
            "wear-map",
            "Wear map: mean erases of the blocks of the device, first to last",
            "A row for each profile or disk: how often each part of the device was erased.",
            charts.wear_map(models.wear_map),
        )
    if models.loads.data.num_rows:
        yield Figure(
            "loads",
            models.loads.title,
            "A bar for each disk: bytes written (parity and copies shown separately) and read.",
            charts.loads(models.loads.data),
        )


def of_recording(each: Explained, causes: Sequence[str]) -> Iterator[Figure]:
    """Yield the figures of one recording. `causes` are in the order of their colours in the run's
    figures."""
    profile = each.profile
    figure = _of_profile(each)
    if (maps := each.maps) is not None:
        yield figure(
            "over-time",
            "Bytes written over time, by cause",
            f"{profile}: bytes that the device received in each slice of time, by cause.",
            charts.over_time(maps.timeline, maps.phases, causes),
        )
        for disk in dict.fromkeys(maps.blocks["disk"].to_pylist()):
            yield from _of_disk(each, disk)
        yield figure(
            "writes-per-place",
            "Locations on the disk, by number of writes",
            f"{profile}: bytes at locations written once, twice and so on.",
            charts.writes_per_place(maps.writes_per_place),
        )
    if each.tree.num_rows:
        yield figure(
            "tree",
            "Directories and files, by bytes written for them",
            f"{profile}: each directory as an area of its bytes, divided into its files.",
            charts.tree(each.tree),
        )
    for name, table in (("files", each.files), ("directories", each.directories)):
        if table.num_rows:
            about = f"{profile}: the {name} with the most bytes written for them."
            yield figure(name, f"Most expensive {name}", about, charts.paths(table))


def _of_profile(each: Explained) -> Callable[..., Figure]:
    return partial(Figure, profile=each.profile, anchor=each.anchor)


def _of_disk(each: Explained, disk: str) -> Iterator[Figure]:
    maps, figure = each.maps, _of_profile(each)
    assert maps is not None
    several = len(set(maps.blocks["disk"].to_pylist())) > 1
    suffix, words = (f"-{slug(disk)}", f", disk {disk}") if several else ("", "")
    blocks = maps.blocks.filter(pc.equal(maps.blocks["disk"], disk))
    yield figure(
        f"block-map{suffix}",
        f"Block map{words}: offset over time",
        f"{each.profile}{words}: where and when the disk was written, coloured by structure.",
        charts.block_map(blocks, maps.phases),
    )
    table = maps.rewrites.filter(pc.equal(maps.rewrites["disk"], disk))
    yield figure(
        f"rewrites{suffix}",
        f"Rewrites{words}: writes of each block, in the order of offsets",
        f"{each.profile}{words}: how often the blocks of the disk were written.",
        charts.rewrites(table),
    )
