"""The calls for durability of a recording, and the commits that they forced."""

from collections.abc import Iterator, Sequence

from fscost.analyze import Fsync, Fsyncs
from fscost.analyze.explain import incomplete
from fscost.view.grid import NOTHING, Grid, or_nothing, plain
from fscost.view.units import human_bytes, human_ns

_CALL = "fsync"
_UNTIED = (
    "The guest was emulated: its clock is not that of the recording, so its calls cannot be tied to"
    " commits."
)


def fsyncs_view(
    found: Fsyncs, write_bytes: int, top: int, end: str = "finished"
) -> tuple[str, list[Grid | str]]:
    """Return a headline, and tables of the callers and of the `top` costliest calls. `end` is how
    the recording ends."""
    parts: list[Grid | str] = [told[0].upper() + told[1:]] if (told := incomplete(end)) else []
    if not found.calls:
        return "No fsync, fdatasync or O_SYNC write was recorded.", parts
    parts += [_callers(found.calls, top), _calls(found.calls, top)]
    if not found.is_tied:
        parts.append(_UNTIED)
    if found.count > len(found.calls):
        parts.append(f"The recording holds {len(found.calls):,} of {found.count:,} calls.")
    if not any(call.inode for call in found.calls):
        parts.append("This recording does not name the callers: measure again.")
    return _headline(found, write_bytes), parts


def _headline(found: Fsyncs, write_bytes: int) -> str:
    calls = f"{found.count:,} {_CALL}{'s' * (found.count != 1)}"
    if not found.is_tied:
        return f"The workload made {calls}."
    size = sum(call.commit_write_bytes for call in found.calls)
    commits = sum(call.commits for call in found.calls)
    if not size:
        return f"{calls}, which forced no commit."
    told = f"{calls} forced {human_bytes(size)} of commits"
    if commits:
        told = f"{calls} forced {commits:,} commit{'s' * (commits != 1)}, {human_bytes(size)}"
    told += f" ({100 * size / write_bytes:.0f} % of the bytes)"
    (path, name), most = max(_grouped(found.calls), key=lambda each: _size(each[1]))
    if len(_grouped(found.calls)) > 1:
        told += plain(f"; most for {path} by {name}: {human_bytes(_size(most))}")
    return told


def _size(calls: Sequence[Fsync]) -> int:
    return sum(call.commit_write_bytes for call in calls)


def _grouped(calls: Sequence[Fsync]) -> list[tuple[tuple[str, str], list[Fsync]]]:
    """Group calls by file and program, the costliest first."""
    found: dict[tuple[str, str], list[Fsync]] = {}
    for call in calls:
        found.setdefault((_file(call), call.name or NOTHING), []).append(call)
    return sorted(found.items(), key=lambda each: (-_size(each[1]), -len(each[1]), each[0]))


def _callers(calls: Sequence[Fsync], top: int) -> Grid:
    groups = _grouped(calls)
    rest = [call for _, each in groups[top:] for call in each]
    more = [((f"({len(groups) - top:,} more)", ""), rest)] if rest else []
    rows = [
        (
            path,
            name,
            f"{len(each):,}",
            f"{sum(call.commits for call in each):,}",
            human_bytes(_size(each)),
            _took(max((call.took_ns or 0 for call in each), default=0) or None),
        )
        for (path, name), each in [*groups[:top], *more]
    ]
    header = ("file", "program", "calls", "commits", "bytes", "longest")
    return Grid("Commits forced, by file and program", header, rows, left=(0, 1), needed=5)


def _calls(calls: Sequence[Fsync], top: int) -> Grid:
    costliest = sorted(calls, key=lambda call: (-call.commit_write_bytes, call.at_ns))[:top]
    rows = [
        (
            f"{call.at_ns / 1e9:.3f} s",
            _file(call),
            " ".join(_words(call)),
            human_bytes(call.commit_write_bytes) if call.commit_write_bytes else NOTHING,
            _took(call.took_ns),
        )
        for call in costliest
    ]
    title = "Calls" if len(costliest) == len(calls) else f"The {len(rows)} costliest calls"
    return Grid(title, ("at", "file", "process", "commit", "took"), rows, left=(1, 2), needed=4)


def _words(call: Fsync) -> Iterator[str]:
    yield call.name or NOTHING
    if call.process:
        yield str(call.process)


def _file(call: Fsync) -> str:
    return call.path or (NOTHING if call.inode is None else f"inode {call.inode}")


def _took(took_ns: int | None) -> str:
    return or_nothing(took_ns, human_ns)
