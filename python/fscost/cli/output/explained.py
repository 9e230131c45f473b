"""Report of a recording for the terminal: a table with bars, journal activity, and findings."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from fscost.analyze import By, Group, Journal, Report
from fscost.analyze.commits import Why
from fscost.analyze.explain import incomplete
from fscost.capture import VERIFY
from fscost.errors import InputError
from fscost.report.layout import hanging, wrapped
from fscost.view.grid import plain
from fscost.view.repetition import Repeated, span
from fscost.view.units import human_bytes, human_years

if TYPE_CHECKING:
    from fscost.wear import GroupWear

_EIGHTHS = " ▏▎▍▌▋▊▉"
_BAR_COLUMNS = 24
_NARROW_BAR_COLUMNS = 6
_ROOMY = 100
_MOST_PARTS = 4
_LEAST_WORDS = 8
_ELLIPSIS = "…"


def json(report: Report, worn: "GroupWear | None") -> dict[str, Any]:
    """Return the report as JSON. With a device, add NAND bytes.

    `other_groups` holds the NAND bytes that belong to no listed group.
    """
    found = report.json()
    if worn is None:
        return found
    of_groups, rest, others = _nand(report, worn)
    for group, size in zip(found["groups"], of_groups, strict=True):
        group["nand_write_bytes"] = size
    if found["rest"] is not None:
        found["rest"]["nand_write_bytes"] = rest
    named = [{"name": name, "nand_write_bytes": size} for name, size in others]
    return {**found, **worn.json(), "other_groups": named}


def _nand(report: Report, worn: "GroupWear") -> tuple[list[float], float, list[tuple[str, float]]]:
    """Return NAND bytes of the listed groups, of the rest, and of groups not in the explanation."""
    names = [group.name for group in report.groups]
    of_groups = [worn.by_group.get(name, 0.0) for name in names]
    others = list(worn.others(names, is_special=report.rest is not None))
    rest = worn.nand_write_bytes - sum(of_groups) - sum(size for _, size in others)
    return of_groups, max(rest, 0.0), others


def lines(report: Report, width: int | None, worn: "GroupWear | None" = None) -> Iterator[str]:
    """Yield the lines below the recording's name. `width` is None if lines are not cut."""
    explanation = report.explanation
    families = ", ".join(
        f"{disk}: {family or 'no known file system'}"
        for disk, family in explanation.families.items()
    )
    unknown = percent(report.unknown_write_bytes, report.write_bytes)
    told = (
        f"{families}; {human_bytes(report.write_bytes)} written in"
        f" {', '.join(report.wrote) or 'no phase'}; {unknown} unknown"
    )
    yield from _wrapped(told, width)
    if told := incomplete(explanation.end):
        yield from _wrapped(told, width)
    if report.groups:
        yield ""
        yield from _table(report, width, worn)
    if worn is not None:
        yield ""
        yield from _wrapped(_life(worn), width)
    if report.journal is not None:
        yield ""
        yield from facts(_journal(report.journal, report.write_bytes), width)
    if report.findings:
        yield ""
    for finding in report.findings:
        yield from _wrapped(f"- {finding}", width)


def refuse_damage(ends: Iterable[tuple[object, str]]) -> None:
    """Fail for recordings that are damaged, after the part before the damage was shown. `ends`:
    each recording, and the end of its explanation."""
    if damaged := [f"{name}: {end}" for name, end in ends if end.startswith("damaged")]:
        raise InputError("; ".join(dict.fromkeys(damaged)), VERIFY)


def disk_lines(
    report: Report, disk: str, width: int | None, worn: "GroupWear | None" = None
) -> Iterator[str]:
    """Yield the lines of one disk's table."""
    yield plain(f"{disk}: {human_bytes(report.write_bytes)} written")
    if report.groups:
        yield from _table(report, width, worn)
    if worn is not None:
        yield from _wrapped(_life(worn), width)


def _life(worn: "GroupWear") -> str:
    """Describe the NAND bytes and the lifetime of the whole device."""
    ratio = worn.nand_write_bytes / worn.host_write_bytes if worn.host_write_bytes else 0.0
    told = (
        f"{worn.device}: {human_bytes(worn.nand_write_bytes)} of NAND, {ratio:.2f} times the bytes"
        " written"
    )
    if worn.lifetime_years is not None:
        rate = f"{worn.runs_per_day:,.0f} runs a day, back to back"
        told += f"; lasts {human_years(worn.lifetime_years)} at {rate}"
    assumed = span(
        Repeated(
            worn.host_write_bytes,
            worn.nand_write_bytes,
            worn.exact_nand_write_bytes,
            worn.roaming_nand_write_bytes,
        )
    )
    return told if assumed is None else f"{told}. {assumed}"


def _table(report: Report, width: int | None, worn: "GroupWear | None") -> Iterator[str]:
    total = report.write_bytes
    shown = list(report.groups)
    if report.rest is not None:
        shown.append(Group(f"({report.rest.count:,} more)", report.rest.bytes, report.rest.parts))
    words = "causes" if report.by is By.STRUCTURE else "parts"
    notes = {}
    if report.by is By.TRANSACTION and report.journal is not None:
        words = "details"
        names = {group.name for group in shown}
        listed = (each for each in report.journal.transactions if str(each.number) in names)
        notes = {
            str(each.number): _transaction(report.journal, each.blocks, each.why, each.end_ns)
            for each in listed
        }
    bar_columns = _BAR_COLUMNS if width is None or width >= _ROOMY else _NARROW_BAR_COLUMNS
    rows: list[tuple[str, ...]] = [(report.by.value, "bytes", "share", "", words)]
    for group in shown:
        numbers = (
            human_bytes(group.bytes),
            percent(group.bytes, total),
            bar(group.bytes, total, bar_columns),
        )
        rows.append((one_line(group.name), *numbers, notes.get(group.name) or _parts(group)))
    if worn is not None:
        rows, bar_columns = _with_nand(rows, report, worn), 0
    yield from columns(rows, width, bar_columns)


def _with_nand(
    rows: Sequence[tuple[str, ...]], report: Report, worn: "GroupWear"
) -> list[tuple[str, ...]]:
    """Replace the bar with two NAND columns, and add rows for writes of the device itself."""
    of_groups, rest, others = _nand(report, worn)
    if report.rest is not None:
        of_groups.append(rest)
    total = round(worn.nand_write_bytes)

    def nand(size: float) -> tuple[str, str]:
        return human_bytes(size), percent(round(size), total)

    head, *lines = rows
    found = [(*head[:3], "NAND", "of NAND", *head[3:])]
    for line, size in zip(lines, of_groups, strict=True):
        found.append((*line[:3], *nand(size), "", line[4]))
    return [*found, *((name, "", "", *nand(size), "", "") for name, size in others)]


def columns(rows: Sequence[tuple[str, ...]], width: int | None, bar_columns: int) -> Iterator[str]:
    """Yield rows of name, numbers, bar and words. If space is short, names keep their end, and
    words go on below."""
    sizes = [max(map(len, column)) for column in list(zip(*rows, strict=True))[1:-2]]
    gaps = 2 * (len(sizes) + 1 + bool(bar_columns))
    fixed = sum(sizes) + bar_columns + gaps
    name = max(len(row[0]) for row in rows)
    if width is not None:
        least = min(width * 9 // 20, max(width - fixed - _LEAST_WORDS, _LEAST_WORDS))
        name = min(name, max(least, width - fixed - max(len(row[-1]) for row in rows)))
    room = None if width is None else max(width - name - fixed, _LEAST_WORDS)
    for label, *numbers, drawn, words in rows:
        cells = [tail(label, name).ljust(name)]
        cells += [number.rjust(size) for number, size in zip(numbers, sizes, strict=True)]
        cells += [drawn.ljust(bar_columns)] if bar_columns else []
        first, *more = [words] if room is None else wrapped(words, room)
        yield "  ".join([*cells, first]).rstrip()
        for line in more:
            yield " " * (name + fixed) + line


def _transaction(journal: Journal, blocks: int, why: Why, end_ns: int) -> str:
    counted = {
        "ext": f"{blocks:,} block{'s' * (blocks != 1)}, ",
        "xfs": f"{blocks:,} item{'s' * (blocks != 1)}, ",
    }.get(journal.family, "")
    return f"{counted}{'' if why is Why.UNTOLD else why.value + ', '}at {end_ns / 1e9:.3f} s"


def _journal(journal: Journal, total: int) -> Iterator[tuple[str, str]]:
    if journal.family == "btrfs":
        yield from _log_trees_and_commits(journal)
        return
    is_ext = journal.family == "ext"
    transactions = counted(journal.count, "transaction" if is_ext else "log checkpoint")
    share = percent(journal.bytes, total)
    text = f"{transactions}, {human_bytes(journal.bytes)}, {share} of the bytes"
    yield "journal" if is_ext else "log", text
    if journal.count:
        yield "size", _sizes(journal)
        if why := _why(journal):
            yield "reason", why
    if journal.again is not None and journal.copies:
        yield "copied before" if is_ext else "logged before", _copied_before(journal)
    if journal.atime_copy_bytes:
        share = percent(journal.atime_copy_bytes, journal.copy_bytes)
        yield "access times", f"{share} of the copies hold nothing else"
    if journal.checkpoint_bytes:
        what = "of blocks that the journal had copied" if is_ext else "of metadata"
        yield "in place", f"{human_bytes(journal.checkpoint_bytes)} {what}"


def _log_trees_and_commits(journal: Journal) -> Iterator[tuple[str, str]]:
    if journal.log_syncs:
        each = human_bytes(journal.log_sync_bytes / journal.log_syncs)
        whole = human_bytes(journal.log_sync_bytes)
        fsyncs = counted(journal.log_syncs, "fsync")
        yield "log trees", f"{fsyncs}, {whole} with their superblocks, {each} each"
    if journal.count:
        trees = human_bytes(int(journal.transaction_bytes.sum()))
        generations = counted(journal.count, "generation")
        why = _why(journal)
        yield "commits", f"{generations}, {trees} of trees{f', {why}' if why else ''}"


def _sizes(journal: Journal) -> str:
    """Describe the median and maximum size of the transactions."""
    unit = "block" if journal.family == "ext" else "item"
    median, most = journal.blocks_median or 0, int(journal.transaction_blocks.max())
    # The median of an even number of transactions may lie between two whole numbers.
    blocks = counted(int(median), unit) if median == int(median) else f"{median:,.1f} {unit}s"
    return (
        f"{blocks} ({human_bytes(journal.bytes_median or 0)}) median,"
        f" {most:,} ({human_bytes(int(journal.transaction_bytes.max()))}) maximum"
    )


def _copied_before(journal: Journal) -> str:
    # xfs logs the changed parts of a block, and each inode of a chunk separately.
    copies = (
        counted(journal.copies, "copy", "copies")
        if journal.family == "ext"
        else f"{journal.copies:,} blocks and inodes (each counted once per checkpoint)"
    )
    text = f"{percent(journal.again or 0, journal.copies)} of {copies}"
    if journal.most_again and journal.most_again > 1:
        structure = journal.most_again_structure
        one = "inode" if structure == "inode_chunk" else f"block ({structure})"
        text += f"; one {one} {journal.most_again:,} times"
    return text


def _why(journal: Journal) -> str:
    words = {
        Why.FORCED: "forced",
        Why.TIMER: "by the timer",
        Why.SETTLE: "at the end of a phase",
        Why.OTHER: "by a sync or for lack of space",
    }
    counts = [(journal.reasons.count(why), text) for why, text in words.items()]
    return ", ".join(f"{count:,} {text}" for count, text in counts if count) + (
        " (inferred)" if journal.reasons.inferred else ""
    )


def facts(pairs: Iterator[tuple[str, str]], width: int | None) -> Iterator[str]:
    """Yield each label and its text on a line."""
    found = list(pairs)
    labels = max((len(label) for label, _ in found), default=0)
    for label, text in found:
        yield from _wrapped(f"{label:{labels}}  {text}", width, " " * (labels + 2))


def counted(count: int, one: str, many: str | None = None) -> str:
    """Return a count with its noun, singular or plural."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def one_line(name: str) -> str:
    """Return a file name that is safe to print on a terminal.

    Unprintable characters are shown as the numbers of their bytes (docs/explaining.md, Names).
    """
    return "".join(each if each.isprintable() else _numbers(each) for each in name)


def _numbers(character: str) -> str:
    return "".join(f"\\x{byte:02x}" for byte in character.encode("utf-8", "surrogatepass"))


def _parts(group: Group) -> str:
    """List the parts of a group, largest first. A single part has no share."""
    parts = sorted(group.parts.items(), key=lambda part: -part[1])
    if len(parts) == 1:
        return parts[0][0]
    texts = [f"{name} {percent(size, group.bytes)}" for name, size in parts[:_MOST_PARTS]]
    return ", ".join(texts) + (
        f", {len(parts) - _MOST_PARTS} more" if len(parts) > _MOST_PARTS else ""
    )


def bar(size: int, total: int, width: int) -> str:
    """Draw a share as a bar, in eighths of a column."""
    eighths = round(width * 8 * size / total) if total else 0
    return "█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()


def percent(part: int, whole: int) -> str:
    """Format a share with one decimal. Only nothing is 0 %, and only the whole is 100 %."""
    share = 100 * part / whole if whole else 0.0
    if part and share < 0.1:
        return "<0.1 %"
    return f"{share:.1f} %" if part == whole or share < 99.95 else ">99.9 %"


def tail(text: str, width: int) -> str:
    """Keep the end of a text that is too long."""
    return text if len(text) <= width else _ELLIPSIS + text[len(text) - width + 1 :]


def head(text: str, width: int | None) -> str:
    """Keep the beginning of a text that is too long."""
    return (
        text if width is None or len(text) <= width else text[: width - 1].rstrip(" ,") + _ELLIPSIS
    )


def _wrapped(text: str, width: int | None, indent: str | None = None) -> Iterator[str]:
    """Wrap at blanks; by default, further lines begin under the first word. A word longer than the
    width stays whole."""
    rest = plain(text)
    indent = hanging(rest) if indent is None else indent
    while width is not None and len(rest) > width:
        place = rest.rfind(" ", len(indent) + 1, width + 1)
        if place < 0:
            place = rest.find(" ", width)
        if place < 0:
            break
        yield rest[:place].rstrip()
        rest = indent + rest[place + 1 :]
    yield rest
