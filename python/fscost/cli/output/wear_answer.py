"""The answer of `fscost wear`: how long the device lasts, what limits it, and what is left of the
user's own device."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from fscost import stats
from fscost.view.grid import plain
from fscost.view.repetition import Repeated, widest
from fscost.view.units import decimal_bytes, human_share, human_years
from fscost.wear import Counters, Device, Life, Wear

_UNEVEN = 1.5
"""Lead of the most erased block over the mean from which it, and not the NAND as a whole, limits
the life."""
_AMPLIFIED = 2.0
_CACHED = ("consumer SSD", "eMMC", "UFS")
"""Kinds of devices that write to a cache of SLC first."""
_SIZES_DIFFER = 0.1
_MOST_LEFT = 5
"""Rows whose remaining life is told."""
_APART = 2
"""Ratio of the device's own WA to the model's from which the model's life misleads."""


@dataclass(frozen=True)
class Row:
    """The repetitions of a row of the table."""

    name: str
    wears: Sequence[Wear]

    def median(self, value: Callable[[Wear], float | None]) -> float | None:
        """Median of a value of each repetition; None if none has it."""
        known = [found for each in self.wears if (found := value(each)) is not None]
        return stats.interval(known).median if known else None


@dataclass(frozen=True)
class Answer:
    """What the answer says. `rate`: runs a day; `at`: the same in words."""

    device: Device
    rows: Sequence[Row]
    rate: float | None
    at: str
    counters: Counters | None = None

    def years(self, row: Row, life: Callable[[Wear], Life | None]) -> float | None:
        """Years that a row's device lasts."""

        def of(wear: Wear) -> float | None:
            found = life(wear)
            return None if found is None else found.years(self.rate)

        return row.median(of)

    def left_years(self, row: Row) -> tuple[float, float] | None:
        """Years that are left of the user's device by the model, least and most."""
        least = self.years(row, lambda wear: wear.life)
        if self.counters is None or self.counters.left is None or least is None:
            return None
        most = self.years(row, lambda wear: wear.life_most) or least
        return least * self.counters.left[0], most * self.counters.left[1]

    def lead(self) -> Iterator[str]:
        """Yield the sentences above the table."""
        known = [
            (years, row)
            for row in self.rows
            if (years := self.years(row, lambda wear: wear.life)) is not None
        ]
        runs = self.rows[0].median(lambda wear: wear.life.runs)
        if runs is None and not known:
            writes = any(wear.host_write_bytes for row in self.rows for wear in row.wears)
            yield (
                "No wear: the device's write buffer holds all that this workload writes."
                if writes
                else "No wear: this workload writes nothing."
            )
            yield from self._now()
            return
        if known:
            yield plain(f"Lasts {self._span(known)} {self.at}{self._cycles()}.")
        else:
            yield (
                f"Lasts {runs:,.0f} runs of the workload{self._cycles()}. The trace has no times:"
                " --per-day 40GB or --runs-per-day N gives years."
            )
        yield from self._now()
        yield f"Limited by {_limit(self.rows[0], self.device)}"
        yield from self._assumed()
        yield from self._believe()

    def _span(self, known: Sequence[tuple[float, Row]]) -> str:
        (least, worst), (most, best) = min(known, key=_first), max(known, key=_first)
        if human_years(least) == human_years(most):
            return human_years(least)
        return f"{human_years(least)} ({worst.name}) to {human_years(most)} ({best.name})"

    def _cycles(self) -> str:
        values, most = self.device.values, self.device.most_pe_cycles
        if most == values["pe_cycles"]:
            return f", if its NAND endures {most:,} cycles"
        factor = most / values["pe_cycles"]
        return (
            f" if its NAND endures {values['pe_cycles']:,} cycles; up to {factor:.2g} times as long"
            f" if it endures {most:,}"
        )

    def _now(self) -> Iterator[str]:
        """Yield what is left of the user's own device."""
        counters = self.counters
        if counters is None:
            return
        name = plain(counters.model or counters.origin)
        for warning in counters.warnings:
            yield f"Caution: {name}: {warning}."
        if counters.left is None:
            yield f"{name} does not count the share of its life that is used."
        else:
            used = " to ".join(human_share(each) for each in counters.used or ())
            yield f"{name} has used {used} of its life ({plain(counters.used_by)})."
            for row in self.rows[:_MOST_LEFT]:
                if (found := self.left_years(row)) is not None:
                    who = f"{row.name}: " if len(self.rows) > 1 else ""
                    yield plain(f"{who}{_range(*found)} are left by this model, at this rate.")
        yield from self._by_itself(counters)
        size = float(self.device.values["capacity_bytes"])
        if counters.capacity_bytes and abs(counters.capacity_bytes / size - 1) > _SIZES_DIFFER:
            yield (
                f"Caution: {name} has {decimal_bytes(counters.capacity_bytes)}, the model"
                f" {decimal_bytes(size)}: name a device of its size, or a TOML file of your own."
            )

    def _by_itself(self, counters: Counters) -> Iterator[str]:
        """Yield what the drive's own counters say, without the model."""
        row = self.rows[0]
        host = row.median(lambda wear: wear.host_write_bytes)
        if (left := counters.left_bytes) is not None and self.rate and host:
            a_year = self.rate * host * 365
            most = None if left[1] is None else left[1] / a_year
            spelled = (
                f"at least {human_years(left[0] / a_year)}"
                if most is None
                else _range(left[0] / a_year, most)
            )
            yield (
                f"By its own counters alone: {spelled}, if it wears as it did for its first"
                f" {decimal_bytes(counters.host_write_bytes or 0)}."
            )
        own = counters.amplification(float(self.device.values["nand_bytes"]))
        modelled = row.median(lambda wear: wear.device_amplification)
        if own is not None and modelled is not None:
            how = (
                "" if counters.nand_write_bytes is not None else " (mean erases × the model's NAND)"
            )
            yield f"WA of its life until now: {own:.2f}{how}; of this workload: {modelled:.2f}."
            if own >= _APART * modelled:
                yield (
                    f"Caution: the device amplified {own / modelled:.1f} times as much as the"
                    " model. If it has always had this workload, believe its own counters, and divide the"
                    " model's life by that."
                )

    def _assumed(self) -> Iterator[str]:
        """Yield that other repetitions would give another answer, for the row where they differ
        most."""
        rows = (
            (
                row.name,
                Repeated(
                    wear.host_write_bytes,
                    wear.nand_write_bytes,
                    wear.exact_nand_write_bytes,
                    wear.roaming_nand_write_bytes,
                ),
            )
            for row in self.rows
            for wear in row.wears
        )
        if (found := widest(rows)) is not None:
            name, text = found
            yield plain(f"{name}: {text}" if len(self.rows) > 1 else text)

    def _believe(self) -> Iterator[str]:
        """Yield which endurance to believe, the rated or the computed one."""
        rated = self.device.values["rated_write_bytes"]
        row = self.rows[0]
        least = row.median(lambda wear: wear.life.host_write_bytes)
        most = row.median(lambda wear: (wear.life_most or wear.life).host_write_bytes)
        runs = row.median(lambda wear: wear.life.runs)
        if not rated or not least or most is None or not runs:
            return
        years = None if not self.rate else runs / self.rate / 365 * rated / least
        rating = decimal_bytes(rated) + ("" if years is None else f", {human_years(years)}")
        computed = decimal_bytes(least)
        if most > least:
            computed += f" to {decimal_bytes(most)}"
        if rated < least:
            yield (
                f"Believe the rating ({rating}) when you buy: it includes retention without power"
                f" and weak samples; the computed {computed} count cycles alone."
            )
        elif rated <= most:
            yield f"Believe the rating ({rating}): it lies within the computed {computed}."
        else:
            yield (
                f"Believe the computed {computed}, not the rating ({rating}): this workload wears"
                " the NAND more than a rating assumes."
            )

    def limits(self) -> Iterator[str]:
        """Yield limits of the model that can change the answer by a factor of two."""
        if self.device.kind in _CACHED:
            yield (
                "Not modelled: a cache of SLC, from which data is programmed a second time. The"
                " life may be half as long."
            )

    def values(self) -> dict[str, Any] | None:
        """Return the user's device for JSON."""
        counters = self.counters
        if counters is None:
            return None
        least, most = counters.used or (None, None)
        left = counters.left_bytes or (None, None)
        return {
            "origin": counters.origin,
            "model": counters.model,
            "used_least": least,
            "used_most": most,
            "used_by": counters.used_by,
            "host_write_bytes": counters.host_write_bytes,
            "nand_write_bytes": counters.nand_write_bytes,
            "mean_erases": counters.mean_erases,
            "capacity_bytes": counters.capacity_bytes,
            "power_on_hours": counters.power_on_hours,
            "device_amplification": counters.amplification(self.device.values["nand_bytes"]),
            "host_bytes_left_least": left[0],
            "host_bytes_left_most": left[1],
            "warnings": list(counters.warnings),
        }


def _first(pair: tuple[float, Row]) -> float:
    return pair[0]


def _range(least: float, most: float) -> str:
    """Spell a range of years, with one unit if both have the same."""
    words = human_years(least), human_years(most)
    if words[0] == words[1]:
        return words[0]
    number, _, unit = words[0].rpartition(" ")
    return f"{number if words[1].endswith(unit) else words[0]} to {words[1]}"


def _limit(row: Row, device: Device) -> str:
    """Describe what limits the life, and what would double it."""
    wear = row.wears[0]
    nand = wear.nand_write_bytes
    lead = (wear.life.mean_runs or 0) / wear.life.runs if wear.life.runs else 1
    amplification = wear.device_amplification or 1
    if lead >= _UNEVEN:
        return (
            f"its most erased block, which has {lead:.2g} times the mean erases: a device with"
            " static wear levelling would last longer by that factor."
        )
    if amplification < _AMPLIFIED:
        return (
            f"the bytes that the host writes: the NAND programs {amplification:.2f} bytes for each."
            " Half of them, or twice the capacity, would last twice as long."
        )
    if wear.padding_bytes > wear.copy_bytes:
        return (
            f"flushes, which pad pages: {human_share(wear.padding_bytes / nand)} of the NAND's"
            " bytes. Fewer flushes would help most."
        )
    copied = f"copies: {human_share(wear.copy_bytes / nand)} of the NAND's bytes. "
    if device.values["mapping"] == "page":
        return (
            f"{copied}More spare would help most (trim it, or leave space free; try --sweep"
            " spare=7..50 or --fill 50)."
        )
    return (
        f"{copied}Larger or fewer writes would help most, or a device that maps pages"
        " (`fscost devices`)."
    )
