"""Model results for a run's devices on a page: the wear of an SSD, and the load of each disk or
array member."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fscost import wear
from fscost.errors import FscostError
from fscost.results import TOTAL, CellRecord, RunResults
from fscost.results.worn import EXACT, NAND, ROAMING
from fscost.stats import Row, summarise
from fscost.view.breakdown import WRITTEN
from fscost.view.grid import plain
from fscost.view.kept import first_recorded
from fscost.view.tables import Table

MAP_CELLS = 96
"""Maximum number of cells of a wear map: neighbouring blocks share a cell."""
_WORN: Mapping[str, tuple[pa.DataType, str]] = {
    "profile": (pa.string(), ""),
    "disk": (pa.string(), ""),
    "host_write_bytes": (pa.int64(), "bytes"),
    "nand_write_bytes": (pa.float64(), "bytes"),
    "device_amplification": (pa.float64(), "times"),
    "exact_amplification": (pa.float64(), "times"),
    "roaming_amplification": (pa.float64(), "times"),
    "effective_spare": (pa.float64(), "share"),
    "least_erases": (pa.int64(), "count"),
    "mean_erases": (pa.float64(), "count"),
    "most_erases": (pa.int64(), "count"),
    "lifetime_write_bytes": (pa.float64(), "bytes"),
    "lifetime_runs": (pa.float64(), "count"),
}
_MAP = pa.schema(
    {
        "row": pa.string(),
        **dict.fromkeys(("cell", "first_block", "last_block"), pa.int64()),
        "mean_erases": pa.float64(),
    }
)
_LOADS: Mapping[str, tuple[pa.DataType, str]] = {
    "profile": (pa.string(), ""),
    "disk": (pa.string(), ""),
    "write_bytes": (pa.float64(), "bytes"),
    "redundant_write_bytes": (pa.float64(), "bytes"),
    "read_bytes": (pa.float64(), "bytes"),
    "parity_read_bytes": (pa.float64(), "bytes"),
    "utilisation": (pa.float64(), "share"),
}


@dataclass(frozen=True)
class Modelled:
    """Model results of a run. `wear` and `wear_map` are those of each profile's first kept
    repetition; `loads` are those of disks that work side by side. `missing`: reasons, by profile,
    why a recording was not replayed."""

    device: wear.Device | None
    array: wear.Shape | None
    wear: Table
    wear_map: pa.Table
    loads: Table
    missing: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_empty(self) -> bool:
        """True if there are no model results for this run."""
        return not self.wear.data.num_rows and not self.loads.data.num_rows and not self.missing


def modelled(
    results: RunResults,
    device: wear.Device | None = None,
    array: wear.Shape | None = None,
) -> Modelled:
    """Replay the kept recordings on `device`, by default that of the run's --ssd. With `array`,
    each recorded disk is an array of such devices."""
    missing: dict[str, str] = {}
    own = None
    if name := results.manifest.request.get("ssd"):
        try:
            own = wear.find(str(name))
        except FscostError as error:
            if device is None:
                missing["--ssd"] = plain(error.what)
    device = device or own
    worn: list[dict[str, object]] = []
    cells: list[dict[str, object]] = []
    samples = results.samples
    totals = samples.filter(pc.equal(samples["phase"], TOTAL))
    loads = _of_disks(summarise(totals, by_disk=True))
    for profile in results.manifest.profile_names:
        recorded = first_recorded(results, profile)
        if device is None or recorded is None:
            continue  # the page's section "Where and when" gives the reason
        cell, path = recorded
        known = _replayed(results, cell) if device == own and array is None else {}
        try:
            _replay(path, profile, device, array, known, (worn, cells, loads))
        except FscostError as error:
            missing[plain(profile)] = plain(error.what)
    what = "" if device is None else f" on {device.name}: {device.summary}"
    of = "each disk" if array is None else f"each member of {array.level}"
    return Modelled(
        device,
        array,
        _table("wear", f"Wear{what} (first repetition)", _WORN, worn),
        pa.Table.from_pylist(cells, _MAP),
        _table("loads", f"Load of {of}, all measured phases", _LOADS, loads),
        missing,
    )


def _replay(
    path: Path,
    profile: str,
    device: wear.Device,
    array: wear.Shape | None,
    known: Mapping[str, float],
    out: tuple[list[dict[str, object]], list[dict[str, object]], list[dict[str, object]]],
) -> None:
    worn, cells, loads = out
    if array is None:
        sources = wear.sources(path, is_explained=False)
    else:
        sources = wear.members(path, array)
        load = wear.array_load(sources[0], device)
        loads += _of_members(plain(profile), load, has_timing=wear.has_timing(device))
    for source in sources:
        # The run knows the sums of its disks.
        found = wear.measure(source, device, known=known if len(sources) == 1 else {})
        worn.append(_worn(plain(profile), found))
        row = plain(profile) if len(sources) == 1 else f"{plain(profile)}, {plain(source.disk)}"
        cells += _map(row, found)


def _replayed(results: RunResults, cell: CellRecord) -> dict[str, float]:
    """Return the NAND bytes that the run computed for a cell, if it is of this version: another one
    may have another model of the device."""
    from fscost.host import fscost_version

    if results.manifest.fscost_version != fscost_version():
        return {}
    samples = results.samples
    mine = samples.filter(
        pc.and_(pc.equal(samples["cell"], cell.cell), pc.equal(samples["phase"], TOTAL))
    )
    values = dict(zip(mine["metric"].to_pylist(), mine["value"].to_pylist(), strict=True))
    return {metric: values[metric] for metric in (NAND, EXACT, ROAMING) if metric in values}


def _worn(profile: str, found: wear.Wear) -> dict[str, object]:
    return {
        "profile": profile,
        "disk": plain(found.disk),
        "host_write_bytes": found.host_write_bytes,
        "nand_write_bytes": found.nand_write_bytes,
        "device_amplification": found.device_amplification,
        "exact_amplification": found.exact_amplification,
        "roaming_amplification": found.roaming_amplification,
        "effective_spare": found.effective_spare,
        "least_erases": int(found.erases.min()),
        "mean_erases": float(found.erases.mean()),
        "most_erases": int(found.erases.max()),
        "lifetime_write_bytes": found.life.host_write_bytes,
        "lifetime_runs": found.life.runs,
    }


def _map(row: str, found: wear.Wear) -> list[dict[str, object]]:
    """Average the erases of neighbouring blocks, in their order on the device."""
    parts = np.array_split(np.arange(len(found.erases)), min(MAP_CELLS, len(found.erases)))
    return [
        {
            "row": row,
            "cell": number,
            "first_block": int(part[0]),
            "last_block": int(part[-1]),
            "mean_erases": float(found.erases[part].mean()),
        }
        for number, part in enumerate(parts)
    ]


def _of_disks(rows: Sequence[Row]) -> list[dict[str, object]]:
    """Return the loads of profiles with several disks, from the totals that the run measured."""
    found: dict[tuple[str, str], dict[str, float]] = {}
    for row in rows:
        if row.disk:
            found.setdefault((row.profile, row.disk), {})[row.metric] = row.median
    elapsed = {
        row.profile: row.median
        for row in rows
        if not row.disk and row.metric == "modelled_elapsed_s"
    }
    disks = [profile for profile, _ in found]
    return [
        {
            "profile": plain(profile),
            "disk": plain(disk),
            "write_bytes": values.get(WRITTEN, 0.0),
            "redundant_write_bytes": values.get("parity_write_bytes", 0.0),
            "read_bytes": values.get("device_read_bytes", 0.0),
            # A measured disk does not tell why it was read.
            "parity_read_bytes": None,
            "utilisation": _utilisation(values, elapsed.get(profile)),
        }
        for (profile, disk), values in found.items()
        if disks.count(profile) > 1
    ]


def _utilisation(values: Mapping[str, float], elapsed_s: float | None) -> float | None:
    busy_s = values.get("modelled_busy_s")
    if busy_s is not None and elapsed_s:
        return busy_s / elapsed_s
    return values.get("device_utilisation")


def _of_members(profile: str, load: wear.ArrayLoad, *, has_timing: bool) -> list[dict[str, object]]:
    return [
        {
            "profile": profile,
            "disk": f"m{number}",
            "write_bytes": member["write_bytes"],
            "redundant_write_bytes": member["redundant_write_bytes"],
            "read_bytes": member["read_bytes"],
            "parity_read_bytes": member["preread_bytes"],
            "utilisation": load.utilisation(number) if has_timing else None,
        }
        for number, member in enumerate(load.measured.members)
    ]


def _table(
    name: str,
    title: str,
    columns: Mapping[str, tuple[pa.DataType, str]],
    rows: Sequence[Mapping[str, object]],
) -> Table:
    schema = pa.schema([(column, kind) for column, (kind, _) in columns.items()])
    units = {column: unit for column, (_, unit) in columns.items() if unit}
    return Table(name, title, pa.Table.from_pylist(list(rows), schema), units)
