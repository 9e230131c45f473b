"""`fscost run`, once its command line is parsed."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from fscost import files
from fscost.cli import suite
from fscost.cli.differing import BEYOND, beyond
from fscost.cli.lines import say
from fscost.cli.measure import Judge, make
from fscost.cli.output.emit import Outputs
from fscost.errors import InputError, did_you_mean
from fscost.request.model import AUTO, Place, Request
from fscost.request.request import absolute_images, to_spec
from fscost.results import MANIFEST, RunResults, load
from fscost.run import slug
from fscost.view.changes import Condition, compared
from fscost.view.grid import plain


def ran(
    file: Path,
    only: Sequence[str],
    changes: Mapping[str, Any],
    place: Place,
    against: Path | None,
    outputs: Outputs,
) -> int:
    """Run the workloads of a suite, print their tables, and return the exit status. `changes`:
    fields of all requests."""
    if not place.trust:
        _refuse_others(file)
    found = suite.load(file)
    chosen = {name: replace(each, **changes) for name, each in _chosen(found, file, only).items()}
    _check(file, chosen)
    if place.lab == AUTO and found.lab:
        place = replace(place, lab=found.lab)
    if place.resume is not None and place.out is not None:
        raise InputError("--resume and --out cannot be combined", "drop --out")
    conditions = {name: suite.conditions(found, name) for name in chosen}
    if against is not None and not any(conditions.values()):
        raise InputError(
            "--against has nothing to check: no chosen workload has fail_if",
            f"write fail_if in {file}, or drop --against and use `fscost diff`",
        )
    titles = {name: str(each.name) for name, each in chosen.items()}
    judge = _judge(conditions, against, titles, trust=place.trust)
    outputs.check()
    return make(chosen, place, outputs, is_suite=True, judge=judge)


def changes_of(
    repetitions: int | None, kernel: Sequence[str] | None, modules: Sequence[str] | None
) -> dict[str, Any]:
    """Return the fields of all requests that options override. Folders of modules belong to
    kernels, so --kernel replaces both of the suite's."""
    found: dict[str, Any] = {}
    if repetitions is not None:
        found |= {"min_repetitions": repetitions, "max_repetitions": repetitions}
    if kernel:
        found |= {"kernel": tuple(absolute_images(kernel)), "modules": ()}
    if modules:
        found["modules"] = tuple(str(Path(each).absolute()) for each in modules)
    return found


def _chosen(found: suite.Suite, file: Path, only: Sequence[str]) -> dict[str, Request]:
    """Return the requests of the chosen workloads."""
    requests = suite.requests(found, file)
    for name in only:
        if name not in found.workloads:
            raise InputError(
                f"{file} has no workload {name!r}",
                did_you_mean(name, found.workloads) or f"workloads: {', '.join(found.workloads)}",
            )
    return {
        name: each
        for name, each in requests.items()
        if not only or any(suite.is_of(name, each) for each in only)
    }


def _judge(
    conditions: Mapping[str, Sequence[Condition]],
    against: Path | None,
    titles: Mapping[str, str],
    *,
    trust: bool,
) -> Judge:
    """Return the function that checks the conditions of finished runs, which loads the earlier runs
    now: a missing one is an error before the first run. `titles`: the names of the runs in their
    results."""
    before = {} if against is None else _earlier(against, conditions, trust=trust)
    for name, earlier in before.items():
        _refuse_another(name, earlier, titles[name])
    if against is None and any(conditions.values()):
        say("fail_if is checked with --against DIR, the folder of an earlier --out")

    def judge(done: Mapping[str, RunResults]) -> int:
        is_beyond = [
            beyond(compared(before[name], each), conditions[name], f"{name}: ")
            for name, each in done.items()
            if name in before
        ]
        return BEYOND if any(is_beyond) else 0

    return judge


def _refuse_another(name: str, before: RunResults, title: str) -> None:
    """Refuse the earlier run of another workload: a suite of one run has no folder for each."""
    if (earlier := str(before.manifest.request.get("name") or title)) != title:
        folder = plain(str(before.folder))
        raise InputError(
            f"workloads.{name}: {folder} is a run of another workload ({plain(earlier)})",
            "name with --against the folder of an earlier --out of the same workloads",
        )


def _earlier(
    folder: Path, conditions: Mapping[str, Sequence[Condition]], *, trust: bool
) -> dict[str, RunResults]:
    """Load the earlier run of each workload with conditions. A suite of one run has no folder for
    each."""
    return {
        name: load(folder if (folder / MANIFEST).exists() else folder / slug(name), trust=trust)
        for name, each in conditions.items()
        if each
    }


def _refuse_others(file: Path) -> None:
    """Refuse a suite that another user could have written: its commands run as the caller."""
    if file.exists() and (found := files.replaceable(file.absolute(), files.trusted_owners())):
        part, why = found
        raise InputError(
            f"{file} is not safe to run: {part} {why}",
            "look at the commands in the file; if they are what you expect, add --trust",
        )


def _check(file: Path, requests: dict[str, Request]) -> None:
    """Validate all requests before the first run, which may take an hour."""
    for name, request in requests.items():
        try:
            to_spec(request, Path(), resume=False, command_line=())
        except InputError as error:
            raise InputError(f"{file}: workloads.{name}: {error.what}", error.remedy) from None
