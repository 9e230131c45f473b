"""`fscost devices`: the catalogue of devices for --ssd, with the source of each number."""

from typing import Annotated

import typer

from fscost import wear
from fscost.cli.lines import print_lines
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
) -> None:
    """List the devices that `fscost wear` knows, with the source of each number."""
    if name is None:
        print_lines([(each.name, f"{each.kind}: {each.summary}") for each in wear.catalogue()])
        print(
            "\n`fscost devices NAME` prints each parameter with its source; --ssd also takes a TOML file of your own."
        )
        return
    device = wear.find(name)
    if toml:
        print(plain(wear.to_toml(device)), end="")
        return
    print(plain(f"{device.name} ({device.kind}): {device.summary}"))
    print(
        f"spare {device.spare:.1%} of its NAND (over-provisioning {device.over_provisioning:.1%} of its capacity)\n"
    )
    for parameter in wear.PARAMETERS.values():
        value = device.values[parameter.name]
        text = str(value).lower() if isinstance(value, bool) else str(value)
        if parameter.name.endswith("_bytes") and value >= 1024:
            text += f" ({human_bytes(value)})"
        print(plain(f"{parameter.name} = {text}"))
        print(plain(f"    {parameter.meaning}"))
        print(plain(f"    source: {device.sources.get(parameter.name, 'the default')}"))
