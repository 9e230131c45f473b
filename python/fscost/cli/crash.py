"""`fscost crash`: whether file systems keep their promises when the power goes."""

import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fscost.cli import options, shared
from fscost.cli.lines import say
from fscost.cli.measure import alone, execute
from fscost.errors import HostError, InputError
from fscost.request import Place, Request, absolute, prepared, with_range
from fscost.results import RunResults

if TYPE_CHECKING:
    from fscost.crash.explore import Limits, Source

_DEFAULT = ("ext4", "ext4 -o nobarrier", "ext4 -O ^has_journal", "xfs", "btrfs")
_TYPES = ("ext2", "ext3", "ext4", "xfs", "btrfs")
_SIZE = "512M"
_PHASE = "run"
_SAY_EVERY_S = 5


def crash(
    on: Annotated[
        shared.Repeated,
        typer.Option(metavar="PROFILE", help="Profile to examine, as for compare; repeatable."),
    ] = None,
    workload: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="What makes the promises: files, sqlite, sqlite-extra, sqlite-wal.",
        ),
    ] = "files",
    rounds: Annotated[
        int, typer.Option(min=1, max=1000, help="Rounds of the workload, of four promises each.")
    ] = 6,
    cuts: Annotated[int, typer.Option(min=1, max=10_000, help="Instants of a power cut.")] = 40,
    states: Annotated[
        int, typer.Option(min=4, max=10_000, help="Maximum number of states for each instant.")
    ] = 24,
    device: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="What survives: reorder-4k, reorder-512, in-order, power-loss-protected.",
        ),
    ] = "reorder-4k",
    seed: shared.Seed = 1,
    out: options.Out = None,
    wait: options.Wait = False,
    json: shared.Json = False,
) -> None:
    """Cut the power of recorded disks, and check what each file system kept.

    Each profile runs a workload that appends to, replaces, creates and overwrites files, each time
    with the calls that make it durable, or SQLite transactions (--workload). The recording is cut
    at many instants: what was not durable may have reached the disk or not. Each such state is
    mounted, read and checked by fsck.

    fscost crash --on ext4 --on 'ext4 -o nobarrier'
    """
    from fscost.crash.explore import DEVICES, Limits
    from fscost.crash.workloads import WORKLOADS

    if workload not in WORKLOADS:
        raise InputError(f"--workload {workload!r} is unknown", f"one of: {', '.join(WORKLOADS)}")
    if device not in DEVICES:
        raise InputError(f"--device {device!r} is unknown", f"one of: {', '.join(DEVICES)}")
    limits = Limits(cuts, states, seed, device)
    found = prepared(
        _request(on or _DEFAULT, workload, rounds, seed),
        Place("native", out, wait=wait),
        say,
        sys.argv,
    )
    for each in found.spec.profiles:
        _check(each.name, each.type, len(each.disks))
    with alone("native", wait=wait):
        outcome = execute(found)
        if outcome.interrupted:
            raise typer.Exit(130)
        _examine(outcome.results, workload, limits, is_json=json)
    raise typer.Exit(outcome.exit_code)


def _request(on: Sequence[str], workload: str, rounds: int, seed: int) -> Request:
    from fscost.crash.workloads import WORKLOADS

    program = WORKLOADS[workload]
    asked = Request(
        on=tuple(on),
        prepare=(program.prepare,),
        command=(program.run(rounds),),
        name="crash",
        size=_SIZE,
        seed=seed,
        min_repetitions=1,
        max_repetitions=1,
    )
    return absolute(with_range(asked, ["min_repetitions", "max_repetitions"]))


def _check(name: str, type_: str, disks: int) -> None:
    if type_ not in _TYPES:
        raise InputError(
            f"{name}: this kernel cannot examine states of {type_}",
            f"name profiles of {', '.join(_TYPES)}",
        )
    if disks != 1:
        raise InputError(f"{name} has {disks} disks", "name profiles on one disk")


def _examine(results: RunResults, workload: str, limits: "Limits", *, is_json: bool) -> None:
    from fscost.crash.explore import Control, Exploration, control, explore
    from fscost.report import document
    from fscost.report.terminal import print_parts
    from fscost.view.crash import crash_view
    from fscost.view.run import problems

    explored: dict[str, Exploration] = {}
    controls: dict[str, Control] = {}
    with tempfile.TemporaryDirectory(dir=results.folder, prefix="crash-") as name:
        folder = Path(name)
        for profile, found in _sources(results, workload):
            explored[profile] = explore(found, limits, folder, _progress(profile))
            if not controls or not any(each.tried for each in controls.values()):
                controls = {profile: control(found, limits, folder)}
    shown = crash_view(results, explored, controls, limits, problems(results))
    if is_json:
        controlled = [
            {"profile": profile, "flushes": each.tried, "noticed": each.noticed}
            for profile, each in controls.items()
        ]
        value = {
            "run": str(results.folder),
            "workload": workload,
            "device": limits.device,
            "seed": limits.seed,
            "rows": list(shown.rows),
            "controls": controlled,
            "notes": list(shown.notes),
        }
        sys.stdout.write(document.text("crash", value))
        return
    print_parts(shown.title, [shown.grid, *shown.notes], sys.stdout)
    print(f"Recordings: {results.folder}")


def _progress(profile: str) -> Callable[[int, int], None]:
    said_s = time.monotonic()

    def told(done: int, of: int) -> None:
        nonlocal said_s
        if done == of or time.monotonic() - said_s > _SAY_EVERY_S:
            said_s = time.monotonic()
            say(f"{profile}: {done:,} of {of:,} states")

    return told


def _sources(results: RunResults, workload: str) -> "Iterator[tuple[str, Source]]":
    from fscost.crash.explore import source
    from fscost.results import kept_recording

    profiles = {str(profile["name"]): profile for profile in results.manifest.profiles}
    for cell in results.manifest.done:
        path, about = kept_recording(results.folder, cell), profiles[cell.profile]
        if path is None:
            raise HostError(f"{cell.profile} has no recording", "free some space, and try again")
        output = (results.folder / cell.output).read_text(errors="replace")
        options = str(about.get("mount_options", ""))
        yield cell.profile, source(path, workload, str(about["type"]), options, output, _PHASE)
