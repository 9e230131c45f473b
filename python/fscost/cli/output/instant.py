"""One instant of a recording, on one screen."""

from collections.abc import Iterator, Sequence

from fscost.analyze import BtrfsRecovery, Instant, Recovery, Request, Volatile, XfsRecovery
from fscost.analyze.explain import incomplete
from fscost.analyze.recovery import place
from fscost.cli.output.explained import counted, facts, head, one_line
from fscost.report.layout import wrapped
from fscost.view.grid import plain
from fscost.view.units import human_bytes, human_seconds

_MOST_STRUCTURES = 5
_MOST_VOLATILE = 4
_MOST_NAMED = 3


def lines(instant: Instant, title: str, width: int | None, end: str = "finished") -> Iterator[str]:
    """Yield the lines of the screen. `width` is None if lines are not cut; `end` is how the
    recording ends."""
    yield plain(f"{title} at {_time(instant.at_ns)}")
    if told := incomplete(end):
        yield from wrapped(plain(told), width) if width is not None else [plain(told)]
    yield ""
    yield from facts(_facts(instant), width)
    yield ""
    several = len({each.disk for each in (*instant.before, *instant.under_way, *instant.after)}) > 1
    listed: list[tuple[str, Sequence[Request]]] = [
        ("", instant.before),
        ("under way", instant.under_way),
        ("after", instant.after),
    ]
    rows = {heading: [_row(each, several) for each in requests] for heading, requests in listed}
    columns = [
        max((len(row[column]) for found in rows.values() for row in found), default=0)
        for column in range(3)
    ]
    for heading, found in rows.items():
        if heading == "after" or (heading and found):
            yield (
                f"{f'---- {_time(instant.at_ns)}, {heading}: ':-<70}"
                if found
                else f"---- {_time(instant.at_ns)}, nothing after"
            )
        for begun, took, request, what in found:
            line = f"{begun:>{columns[0]}}  {took:>{columns[1]}}  {request:{columns[2]}}  "
            yield (line + head(what, None if width is None else max(width - len(line), 8))).rstrip()


def _facts(instant: Instant) -> Iterator[tuple[str, str]]:
    since_s = (instant.at_ns - instant.phase_begin_ns) / 1e9
    yield "phase", f"{instant.phase}, {human_seconds(since_s)} after it began"
    told = f"{human_bytes(instant.written_bytes)} since the beginning"
    if instant.phase_written:
        told += f"; {human_bytes(instant.phase_written_bytes)} in this phase"
    else:
        told += ", nothing yet in this phase"
    sizes = _sizes(instant.phase_written or instant.written)
    yield "written", f"{told}: {sizes}" if sizes else told
    if (running := instant.running) is not None:
        state = "" if running.state is None else f"; {running.state}"
        so_far = "" if running.state in ("complete", "durable") else " so far"
        told = f"{running.name}, first block at {_time(running.begin_ns)}"
        yield running.unit, f"{told}, {human_bytes(running.bytes)}{so_far}{state}"
    if instant.recovery is not None:
        told = recovery(instant.recovery)
        least = None if instant.durable_recovery is None else recovery(instant.durable_recovery)
        if told != least:
            told += f". If only durable data survives: {least or 'nothing to recover from'}"
        yield "recovery", told
    if instant.behind_superblock:
        sizes = _sizes(instant.behind_superblock)
        yield "unreachable", f"not yet reachable from a superblock: {sizes}"
    flush = "no flush yet"
    if instant.last_flush_ns is not None:
        flush = f"last flush ended at {_time(instant.last_flush_ns)}"
    if instant.volatile_requests:
        count = counted(instant.volatile_requests, "request")
        of = _first([_volatile(each) for each in instant.volatile], _MOST_VOLATILE)
        yield "not durable", f"{human_bytes(instant.volatile_bytes)} in {count} ({flush}): {of}"
    else:
        yield "not durable", f"nothing ({flush})"


def _sizes(structures: Sequence[tuple[str, int]]) -> str:
    return _first([f"{name} {human_bytes(size)}" for name, size in structures], _MOST_STRUCTURES)


def recovery(state: Recovery) -> str:
    """Describe the recovery at the next mount in a sentence."""
    return _of_xfs(state) if isinstance(state, XfsRecovery) else _of_btrfs(state)


def _of_xfs(state: XfsRecovery) -> str:
    if state.tail == state.head:
        return f"a mount would replay nothing: the log is clean at {place(state.head)}"
    told = (
        f"a mount would replay {counted(len(state.replayed), 'checkpoint')}"
        f" ({counted(state.items, 'item')}): the log from {place(state.tail)} to "
    )
    told += f"{place(state.head)}, {human_bytes(state.bytes)} in {counted(state.records, 'record')}"
    if state.unfinished:
        told += (
            f"; {len(state.unfinished):,} more {'has' if len(state.unfinished) == 1 else 'have'} no"
            " commit record yet"
        )
    return told


def _of_btrfs(state: BtrfsRecovery) -> str:
    told = f"a mount would continue from commit {state.generation}"
    if not state.is_sound:
        told += ", whose root tree is missing"
    if not state.logged_count:
        return f"{told}, no log tree"
    names = [
        f"inode {each.inode} of tree {each.tree}" if each.path is None else one_line(each.path)
        for each in state.logged
    ]
    more = state.logged_count - len(names[:_MOST_NAMED])
    files = ", ".join(names[:_MOST_NAMED]) + (f", {more:,} more" if more else "")
    return f"{told}, and replay the log trees of {counted(state.logged_count, 'inode')}: {files}"


def _first(texts: Sequence[str], most: int) -> str:
    return ", ".join(texts[:most]) + (f", {len(texts) - most} more" if len(texts) > most else "")


def _volatile(each: Volatile) -> str:
    return (
        f"{each.structure}{'' if each.path is None else f' of {one_line(each.path)}'}"
        f" {human_bytes(each.bytes)}"
    )


def _row(request: Request, several: bool) -> tuple[str, str, str, str]:
    """Return a request's completion time, latency, operation and content."""
    words = request.op + "+fua" * request.fua
    if request.length:
        words += f" {human_bytes(request.length)} at {request.offset}"
    if several:
        words = f"{request.disk} {words}"
    structure = request.structure or ""
    if request.home_structure:
        structure += f" of {request.home_structure}"
    if request.rows > 1:
        structure += f" and {request.rows - 1} more"
    what = "  ".join(one_line(text) for text in (structure, request.path, request.cause) if text)
    return _time(request.complete_ns), _took(request.complete_ns - request.submit_ns), words, what


def _time(ns: int) -> str:
    return f"{ns / 1e9:.6f} s"


def _took(ns: int) -> str:
    return f"{ns / 1000:.1f} µs" if ns < 10**6 else human_seconds(ns / 1e9)
