"""`fscost devices`: the catalogue of devices, with the source of each number."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import typer

from fscost.cli import shared
from fscost.cli.lines import print_document, print_lines
from fscost.view.grid import plain
from fscost.view.units import human_bytes


def devices(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[MODEL|FILE.toml]",
            help="Print every parameter of this device, with its source.",
        ),
    ] = None,
    toml: Annotated[
        bool,
        typer.Option("--toml", help="Print the device as TOML, as a template for your own file."),
    ] = False,
    json: shared.Json = False,
) -> None:
    """List the devices whose wear and latency are modelled, with the source of each number."""
    from fscost import devices as room

    if json:
        found = room.catalogue() if name is None else [room.find(name)]
        print_document("devices", {"devices": [_entry(each) for each in found]})
        return
    if name is None:
        print_lines([(_names(each), _summary(each)) for each in room.catalogue()])
        print(
            "\n`fscost devices NAME` prints each parameter with its source."
            "\nOptions that take a device also take a TOML file of your own."
        )
        return
    device = room.find(name)
    parts = list(_sections(device))
    if toml:
        print(plain(device.text), end="")
        return
    print(plain(f"{_names(device)} ({device.kind}): {device.summary}"))
    for line in parts:
        print(plain(line))


def _entry(device: Any) -> dict[str, Any]:
    from fscost import latency, wear

    return {
        "name": device.name,
        "aliases": list(device.aliases),
        "kind": device.kind,
        "sections": list(device.sections),
        "summary": device.summary,
        "wear": dict(wear.of_file(device).values) if "wear" in device.sections else None,
        "latency": dict(latency.of_file(device).values) if "latency" in device.sections else None,
    }


def _names(device: Any) -> str:
    return ", ".join((device.name, *device.aliases))


def _summary(device: Any) -> str:
    return f"{device.kind} [{', '.join(device.sections)}]: {device.summary}"


def _sections(device: Any) -> Iterator[str]:
    """Yield the lines of each section. Every section is validated."""
    from fscost import latency, wear

    if "wear" in device.sections:
        worn = wear.of_file(device)
        yield "\n[wear]"
        yield f"spare {worn.spare * 100:.1f} % of its NAND"
        yield f"over-provisioning {worn.over_provisioning * 100:.1f} % of its capacity"
        meanings = {each.name: each.meaning for each in wear.PARAMETERS.values()}
        yield from _values(worn.values, meanings, worn.sources)
    if "latency" in device.sections:
        model = latency.of_file(device)
        known = latency.parameters(model.kind)
        values = {each.name: model.values.get(each.name, each.default) for each in known}
        yield f"\n[latency]\nmodel = {model.kind}"
        yield from _values(values, {each.name: each.meaning for each in known}, model.sources)


def _values(
    values: Mapping[str, Any], meanings: Mapping[str, str], sources: Mapping[str, str]
) -> Iterator[str]:
    for name, meaning in meanings.items():
        value = values[name]
        text = f"{value:g}" if isinstance(value, float) else str(value)
        text = text.lower() if isinstance(value, bool) else text
        if name.endswith("_bytes") and value >= 1024:
            text = f"{value:.0f} ({human_bytes(value)})"
        yield f"{name} = {text}"
        yield f"    {meaning}"
        yield f"    source: {sources.get(name, 'the default')}"
