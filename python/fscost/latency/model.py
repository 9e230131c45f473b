"""Section [latency] of a device. crates/latency checks it and defines its fields."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fscost import devices
from fscost.latency import native


@dataclass(frozen=True)
class Parameter:
    """Field of the section: meaning, default (None: required) and range."""

    name: str
    meaning: str
    default: float | None
    least: float
    most: float


@dataclass(frozen=True)
class Model:
    """Model of a device. `text` is its file, which the disk server and the replay read; `sources`
    holds the source of each given value."""

    name: str
    summary: str
    kind: str
    values: Mapping[str, Any]
    sources: Mapping[str, str]
    origin: str
    text: str


def find(name: str) -> Model:
    """Find a device: in a file if the name ends in .toml or contains a slash, else in the
    catalogue."""
    return of_file(devices.find(name))


def of_file(file: devices.Device) -> Model:
    """Read the section [latency] of a device. An InputError names the file, the field and the
    remedy."""
    section = file.section("latency")
    native.check(file.origin, file.text)
    return Model(
        file.name,
        file.summary,
        section.values["model"],
        section.values,
        section.sources,
        file.origin,
        file.text,
    )


def parameters(kind: str) -> tuple[Parameter, ...]:
    """Return the fields of this kind of model, except `model`."""
    return tuple(Parameter(*each) for each in native.parameters(kind))
