"""`fscost calibrate`: a device measured with fio becomes a device model."""

import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from fscost.cli.declare import option, with_fields
from fscost.errors import InputError
from fscost.view.grid import plain

_LEAST_BYTES = 16 << 20


@dataclass(frozen=True)
class Options:
    """Options of `fscost calibrate`."""

    device: Annotated[
        str,
        typer.Argument(
            metavar="/dev/X", help="Block device to measure; read-only unless --write is given."
        ),
    ]
    out: Path | None = option(
        metavar="FILE.toml", help="Write the model to this file. (default: standard output)"
    )
    kind: str | None = option(
        metavar="flash|hard-disk", help="Kind of model. (default: as the kernel reports)"
    )
    rpm: float = option(default=7200, metavar="N", help="Revolutions per minute of a hard disk.")
    seconds: float = option(
        default=5,
        metavar="N",
        help="Duration in seconds of each of the three to seven measurements.",
    )
    write: bool = option(
        "--write", default=False, help="Also measure writes, on flash only. ERASES the device."
    )
    erase_device: str | None = option(
        metavar="/dev/X", help="Confirm that --write may erase the device: repeat its path."
    )
    force: bool = option("--force", default=False, help="Erase the device even if it is not empty.")
    dry_run: bool = option("--dry-run", default=False, help="Print the fio commands and exit.")


@with_fields
def calibrate(options: Options) -> None:
    """Measure a block device with fio, and write its model as TOML.

    Use the file wherever a device is expected: `--disk main=FILE.toml`, `fscost replay`.

    fscost calibrate /dev/sdb --out my-ssd.toml
    """
    from fscost import calibrate as room
    from fscost import files
    from fscost.calibrate import fio
    from fscost.lab.native import claim, look_at

    _refuse_combinations(options)
    if (out := options.out) is not None:
        if not out.name.endswith(".toml"):
            raise InputError(f"--out {out} does not end in .toml", f"--out {out}.toml")
        files.check_output(out)
    path = Path(options.device)
    if options.write:
        erase = None if options.erase_device is None else Path(options.erase_device)
        found = claim(path, erase, options.force, "calibrate --write ")
    else:
        found = look_at(path)
    if found.size_bytes < _LEAST_BYTES:
        raise InputError(
            f"{options.device} has {found.size_bytes} bytes, too few to measure",
            "name one of 16 MiB or more",
        )
    kind = options.kind or ("hard-disk" if found.is_rotational else "flash")
    if options.write and kind == "hard-disk":
        raise InputError(
            "--write measures flash only: for a hard disk, the model assumes a write cache",
            "drop --write, or give --kind flash",
        )
    jobs = (*room.KINDS[kind], *(fio.WRITES if options.write else ()))
    seconds = options.seconds
    if options.dry_run:
        print(plain("\n".join(room.commands(jobs, found.path, found.size_bytes, seconds))))
        return
    name = f"{found.model} ({found.path})"
    print(plain(f"{name}: {len(jobs)} measurements of {seconds:g} s each"), file=sys.stderr)
    with found.exclusively():
        answers = room.measure(jobs, found.path, found.size_bytes, seconds, _say)
    text = room.toml(
        kind,
        answers,
        size_bytes=found.size_bytes,
        rpm=options.rpm,
        measured=f"measured with {fio.version()} on {name}, {datetime.now(UTC).date().isoformat()}",
        summary=f"{name}, as fscost calibrate measured it",
    )
    if out is None:
        print(text, end="")
        return
    with files.replacing(out) as file:
        file.write(text.encode())
    print(plain(f"{out}: use it as --disk main={out}"), file=sys.stderr)


def _say(name: str) -> None:
    print(plain(f"  {name}"), file=sys.stderr, flush=True)


def _refuse_combinations(options: Options) -> None:
    for name, given in (
        ("--erase-device", options.erase_device is not None),
        ("--force", options.force),
    ):
        if given and not options.write:
            raise InputError(
                f"{name} requires --write", "leave it out: without --write fio only reads"
            )
    if options.kind not in (None, "flash", "hard-disk"):
        raise InputError(f"--kind {options.kind!r} is unknown", "use flash or hard-disk")
    if not 0.5 <= options.seconds <= 600:
        raise InputError(f"--seconds {options.seconds:g} is out of range", "give 0.5 to 600")
    if not 100 <= options.rpm <= 100_000:
        raise InputError(
            f"--rpm {options.rpm:g} is out of range", "give 100 to 100000, for example 7200"
        )
