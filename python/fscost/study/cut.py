"""Power cuts: the outputs of `fscost crash --json` that are kept as `crash-*.json` in the folder of
a study's run, as samples. Each file is a repetition; the study names the profiles."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from fscost import files, typed
from fscost.errors import InputError
from fscost.study.formula import Reference

PATTERN = "crash-*.json"
PHASE = "crash"
"""Phase of the counts of states after power cuts."""
_LONGEST_BYTES = 4 << 20
_WAY_MOUNT = "mount"
_REMEDY = "keep there what `fscost crash --lose-disks --json` printed, or remove the file"


@dataclass(frozen=True)
class States(typed.Table):
    """Counts of the states of a profile."""

    profile: str
    states: typed.Count
    lost: typed.Count
    stale: typed.Count
    corrupt: typed.Count
    repaired: typed.Count


@dataclass(frozen=True)
class Way(typed.Table):
    """One way back after the loss of a disk."""

    profile: str
    disk: str
    how: str
    way: str
    is_read_only: bool
    tried: typed.Count
    mounts: typed.Count


@dataclass(frozen=True)
class Cuts(typed.Table):
    """One examination of states after power cuts. `name`: that of its file."""

    schema: Literal["fscost-crash-1"]
    workload: str
    device: str
    seed: int
    rows: typed.List[States]
    lost: typed.List[Way]
    name: str = ""


def kept(folder: Path) -> list[Cuts]:
    """Read the examinations in a run's folder, by file name."""
    return [_read(path) for path in sorted(folder.glob(PATTERN))]


def samples(found: list[Cuts], names: Mapping[str, str]) -> Iterator[tuple[Reference, int, float]]:
    """Yield numbers with their repetition. `names` maps a profile's name to its short one.

    Phase `crash` has counts of states. Phase `lost-DISK-HOW` has the share of states that mount
    after the loss of this disk: `as_is_share`, and `best_share` by the best of the ways that leave
    the file system writable.
    """
    for repetition, cuts in enumerate(found):
        for row in cuts.rows:
            if row.profile in names:
                for metric in ("states", "lost", "stale", "corrupt", "repaired"):
                    reference = Reference(names[row.profile], PHASE, metric)
                    yield reference, repetition, float(getattr(row, metric))
        best: dict[Reference, float] = {}
        for way in cuts.lost:
            if way.profile not in names or way.is_read_only or not way.tried:
                continue
            phase, share = f"lost-{way.disk}-{way.how}", way.mounts / way.tried
            for metric in ("best_share", *(["as_is_share"] * (way.way == _WAY_MOUNT))):
                reference = Reference(names[way.profile], phase, metric)
                best[reference] = max(share, best.get(reference, 0.0))
        yield from ((reference, repetition, share) for reference, share in best.items())


def _read(path: Path) -> Cuts:
    try:
        with files.open_regular(path) as file:
            content = files.content(file, _LONGEST_BYTES)
        if content is None:
            raise InputError(f"{path} is larger than {_LONGEST_BYTES >> 20} MiB", _REMEDY)
        return replace(typed.read(Cuts, json.loads(content)), name=path.name)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}", _REMEDY) from None
    except (ValueError, RecursionError, typed.InvalidError) as error:
        raise InputError(f"{path}: {error}", _REMEDY) from None
