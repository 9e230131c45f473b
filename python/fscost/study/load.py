"""Reader for studies in `published/NAME/study.toml` and `published/NAME/published.csv`. It checks
that every profile named in a formula exists."""

import csv
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from importlib import resources
from io import StringIO
from typing import Any

from fscost import profile
from fscost.errors import InputError, did_you_mean
from fscost.study.formula import Formula, Reference
from fscost.study.model import (
    Claim,
    Comparison,
    Criterion,
    Line,
    Need,
    Precondition,
    Published,
    Scale,
    Study,
    Table,
)
from fscost.workload.model import Step

UNITS = {
    "B": 1.0,
    "MB": float(1 << 20),
    "GB": float(1 << 30),
    "GiB": float(1 << 30),
    "s": 1.0,
    "min": 60.0,
    "ratio": 1.0,
}
"""Units of published values, as the sources name them. MB of 2009's lifetime counter is 2^20 bytes
(e2fsprogs, misc/dumpe2fs.c); GB of `df -h` is 2^30."""
_FILES = ("study.toml", "published.csv")
_CSV_COLUMNS = ["profile", "phase", "metric", "value", "unit", "note"]


def catalogue() -> list[Study]:
    """Return all studies, by name."""
    folder = resources.files("fscost.study") / "published"
    entries = sorted(folder.iterdir(), key=lambda entry: entry.name)
    return [
        read(entry.name, *((entry / file).read_text("utf-8") for file in _FILES))
        for entry in entries
        if entry.is_dir()
    ]


def load(name: str) -> Study:
    """Return the study of this name."""
    found = {study.name: study for study in catalogue()}
    if name not in found:
        remedy = did_you_mean(name, found) or f"studies: {', '.join(found)}"
        raise InputError(
            f"no study is called '{name}'", f"{remedy} (`fscost study list` lists all)"
        )
    return found[name]


def read(name: str, toml: str, published: str) -> Study:
    """Read a study's two files. An InputError names the file and the problem."""
    try:
        table = tomllib.loads(toml)
        return _Reader(name, table).study(published)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{name}/study.toml: {error}") from None
    except KeyError as error:
        raise InputError(f"{name}/study.toml: {error} is missing") from None
    except TypeError as error:
        raise InputError(
            f"{name}/study.toml does not match the fields of a study: {error}"
        ) from None
    except InputError as error:
        raise InputError(f"{name}: {error.what}", error.remedy) from None


class _Reader:
    """Reader for one data file."""

    def __init__(self, name: str, table: dict[str, Any]) -> None:
        self._name = name
        self._table = table
        self._metric: str = table["metric"]
        self._optional = table.get("optional_profiles", {})
        self._profiles = {
            short: profile.resolve(spelling) for short, spelling in table["profiles"].items()
        } | {
            short: profile.read_profile(f"{name}/study.toml", short.replace("_", "-"), entry)
            for short, entry in self._optional.items()
        }

    def study(self, published: str) -> Study:
        table = self._table
        workload = table["workload"]
        study = Study(
            name=self._name,
            title=table["title"],
            source=table["source"],
            url=table["url"],
            summary=table["summary"],
            method=table["method"].strip(),
            metric=self._metric,
            profiles=self._profiles,
            optional=frozenset(self._optional),
            workload=workload["name"],
            steps=tuple(
                Step(**{**step, "shell": step["shell"].strip()})
                for step in workload.get("steps", ())
            ),
            probe_interval_ms=workload.get("probe_interval_ms"),
            ssd=workload.get("ssd", ""),
            wear=workload.get("wear", {}).get("device", ""),
            worn=frozenset(workload.get("wear", {}).get("profiles", ())),
            replay=workload.get("replay", {}),
            has_activity=table.get("has_activity", False),
            sums={name: tuple(parts) for name, parts in table.get("sums", {}).items()},
            definitions={
                name: Formula.parse(text, self._metric)
                for name, text in table.get("definitions", {}).items()
            },
            published=self._published(published),
            scales={name: self._scale(name, scale) for name, scale in table["scales"].items()},
            comparisons=tuple(self._comparison(entry) for entry in table.get("comparisons", ())),
            tables=tuple(self._a_table(entry) for entry in table.get("tables", ())),
            claims=tuple(self._claim(entry) for entry in table["claims"]),
        )
        self._check_profiles("wear", *study.worn)
        for formula in _formulas(study):
            self._check_profiles(
                f"'{formula.text}'", *(reference.profile for reference in formula.references)
            )
        return study

    def _published(self, text: str) -> Published:
        reader = csv.DictReader(StringIO(text))
        if reader.fieldnames != _CSV_COLUMNS:
            raise InputError(f"published.csv: the columns must be {', '.join(_CSV_COLUMNS)}")
        values: dict[Reference, float] = {}
        notes: dict[Reference, str] = {}
        texts: dict[Reference, str] = {}
        for row in reader:
            phase, _, disk = row["phase"].partition("@")
            reference = Reference(row["profile"], phase, row["metric"], disk)
            self._check_profiles("published.csv", reference.profile)
            value = f"published.csv: {reference.profile}.{reference.phase}"
            if reference in values:
                raise InputError(f"{value} occurs twice")
            if row["unit"] not in UNITS:
                raise InputError(f"{value}: the unit is not one of {', '.join(UNITS)}")
            values[reference] = float(row["value"]) * UNITS[row["unit"]]
            texts[reference] = f"{row['value']} {row['unit']}"
            if row["note"]:
                notes[reference] = row["note"]
        constants = self._table.get("published_constants", {})
        return Published(
            values, {name: float(value) for name, value in constants.items()}, notes, texts
        )

    def _scale(self, name: str, entry: Mapping[str, Any]) -> Scale:
        return Scale(
            **{
                "name": name,
                **entry,
                "disks": tuple(entry.get("disks", ())),
                "leaves_open": self._beginnings(entry.get("leaves_open", ())),
                "needs": tuple(Need(**need) for need in entry.get("needs", ())),
            }
        )

    def _beginnings(self, texts: Sequence[str]) -> tuple[str, ...]:
        claims = [claim["text"] for claim in self._table["claims"]]
        for text in texts:
            if sum(claim.startswith(text) for claim in claims) != 1:
                raise InputError(f"leaves_open: {text!r} does not begin exactly one claim")
        return tuple(texts)

    def _comparison(self, entry: Mapping[str, Any]) -> Comparison:
        self._check_profiles(entry["title"], entry["with"], entry["without"])
        return Comparison(entry["title"], entry["with"], entry["without"], entry["printed"])

    def _a_table(self, entry: Mapping[str, Any]) -> Table:
        columns = entry["columns"]
        lines = [
            Line(
                line["label"],
                line["unit"],
                {short: Formula.parse(line["value"], self._metric, short) for short in columns},
            )
            for line in entry["lines"]
        ]
        published = tuple(entry.get("published", ()))
        is_turned = entry.get("is_turned", False)
        return Table(entry["title"], columns, published, tuple(lines), is_turned)

    def _claim(self, entry: Mapping[str, Any]) -> Claim:
        criteria = tuple(self._criterion(criterion) for criterion in entry["criteria"])
        explanation = " ".join(entry.get("explanation", "").split())
        return Claim(entry["text"], entry["rule"], criteria, explanation)

    def _criterion(self, entry: Mapping[str, Any]) -> Criterion:
        is_measured = "value" in entry or not entry.keys() & {"because", "cannot"}
        formula = Formula.parse(entry["value"], self._metric) if is_measured else None
        precondition = (
            self._precondition(entry["precondition"]) if "precondition" in entry else None
        )
        plain = {key: value for key, value in entry.items() if key not in ("value", "precondition")}
        criterion = Criterion(**plain, formula=formula, precondition=precondition)
        if formula is not None and criterion.at_least is None and criterion.at_most is None:
            raise InputError(
                f"criterion '{criterion.label}' has no bound", "give at_least, at_most or both"
            )
        return criterion

    def _precondition(self, entry: Mapping[str, Any]) -> Precondition:
        rest = {key: value for key, value in entry.items() if key != "value"}
        return Precondition(Formula.parse(entry["value"], self._metric), **rest)

    def _check_profiles(self, where: str, *shorts: str) -> None:
        for short in shorts:
            if short not in self._profiles:
                raise InputError(
                    f"{where}: no profile is called '{short}'",
                    f"there are {', '.join(self._profiles)}",
                )


def _formulas(study: Study) -> Iterator[Formula]:
    for table in study.tables:
        for line in table.lines:
            yield from line.cells.values()
    for criterion in (each for claim in study.claims for each in claim.criteria):
        if criterion.formula is not None:
            yield criterion.formula
        if criterion.precondition is not None:
            yield criterion.precondition.formula
