"""What a recording holds, for people: a table with bars, what the journal did, and findings, as wide as the terminal."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from fscost.analyze import By, Group, Journal, Report
from fscost.analyze.commits import Why
from fscost.view.grid import plain
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
    """The report; with a device, NAND bytes too, of which `other_groups` are of no listed group."""
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
    """NAND bytes of the listed groups, of the rest, and of groups that the explanation lacks."""
    names = [group.name for group in report.groups]
    of_groups = [worn.by_group.get(name, 0.0) for name in names]
    others = list(worn.others(names, is_special=report.rest is not None))
    rest = worn.nand_write_bytes - sum(of_groups) - sum(size for _, size in others)
    return of_groups, max(rest, 0.0), others


def lines(report: Report, width: int | None, worn: "GroupWear | None" = None) -> Iterator[str]:
    """Line by line, below the recording's name; `width` None where nothing cuts it."""
    explanation = report.explanation
    families = ", ".join(
        f"{disk}: {family or 'no known file system'}"
        for disk, family in explanation.families.items()
    )
    unknown = percent(report.unknown_write_bytes, report.write_bytes)
    told = f"{families}; {human_bytes(report.write_bytes)} written in {', '.join(report.wrote) or 'no phase'}; {unknown} unknown"
    yield from _wrapped(told, width, "")
    if explanation.end != "finished":
        yield from _wrapped(
            f"the recording is not whole ({explanation.end}): only what precedes that is here",
            width,
            "",
        )
    if report.groups:
        yield ""
        yield from _table(report, width, worn)
    if worn is not None:
        yield ""
        yield from _wrapped(_life(worn), width, "")
    if report.journal is not None:
        yield ""
        yield from facts(_journal(report.journal, report.write_bytes), width)
    if report.findings:
        yield ""
    for finding in report.findings:
        yield from _wrapped(f"- {finding}", width, "  ")


def disk_lines(
    report: Report, disk: str, width: int | None, worn: "GroupWear | None" = None
) -> Iterator[str]:
    """The table of one disk."""
    yield plain(f"{disk}: {human_bytes(report.write_bytes)} written")
    if report.groups:
        yield from _table(report, width, worn)
    if worn is not None:
        yield from _wrapped(_life(worn), width, "")


def _life(worn: "GroupWear") -> str:
    """NAND bytes of the whole device, and how long it lasts."""
    ratio = worn.nand_write_bytes / worn.host_write_bytes if worn.host_write_bytes else 0.0
    told = f"{worn.device}: {human_bytes(worn.nand_write_bytes)} of NAND, {ratio:.2f} times what was written"
    if worn.lifetime_years is None:
        return told
    rate = f"{worn.runs_per_day:,.0f} runs a day, back to back"
    return f"{told}; lasts {human_years(worn.lifetime_years)} at {rate}"


def _table(report: Report, width: int | None, worn: "GroupWear | None") -> Iterator[str]:
    total = report.write_bytes
    shown = list(report.groups)
    if report.rest is not None:
        shown.append(Group(f"({report.rest.count:,} more)", report.rest.bytes, report.rest.parts))
    words = "causes" if report.by is By.STRUCTURE else "of it"
    notes = {}
    if report.by is By.TRANSACTION and report.journal is not None:
        words = "what it was"
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
    """Two columns in the place of the bar; and rows of what only the device writes."""
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
    """Name, numbers, bar and words; names keep their end, words their beginning, where it is
    narrow."""
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
        yield "  ".join([*cells, head(words, room)]).rstrip()


def _transaction(journal: Journal, blocks: int, why: Why, end_ns: int) -> str:
    counted = {
        "ext": f"{blocks:,} block{'s' * (blocks != 1)}, ",
        "xfs": f"{blocks:,} item{'s' * (blocks != 1)}, ",
    }.get(journal.family, "")
    return f"{counted}{'' if why is Why.UNTOLD else why.value + ', '}at {end_ns / 1e9:.3f} s"


def _journal(journal: Journal, total: int) -> Iterator[tuple[str, str]]:
    count = journal.count
    if journal.family == "btrfs":
        if journal.log_syncs:
            each = human_bytes(journal.log_sync_bytes / journal.log_syncs)
            yield (
                "log trees",
                f"{counted(journal.log_syncs, 'fsync')}, {human_bytes(journal.log_sync_bytes)} with their superblocks, {each} each",
            )
        if count:
            yield (
                "commits",
                f"{counted(count, 'generation')}, {human_bytes(int(journal.transaction_bytes.sum()))} of trees, {_why(journal)}",
            )
        return
    what = "transaction" if journal.family == "ext" else "log checkpoint"
    unit = "block" if journal.family == "ext" else "item"
    sizes, blocks = (
        sorted(journal.transaction_bytes.tolist()),
        sorted(journal.transaction_blocks.tolist()),
    )
    yield (
        "journal" if journal.family == "ext" else "log",
        f"{counted(count, what)}, {human_bytes(journal.bytes)}, {percent(journal.bytes, total)} of the bytes",
    )
    if count:
        median, largest = sizes[count // 2], sizes[-1]
        yield (
            "of each",
            f"{counted(blocks[count // 2], unit)} ({human_bytes(median)}) in the median, {blocks[-1]:,} ({human_bytes(largest)}) at most",
        )
        if why := _why(journal):
            yield "asked for", why
    if journal.again is not None and journal.copies:
        is_ext = journal.family == "ext"
        # xfs logs the parts of a block that changed, and each inode of a chunk by itself.
        copies = (
            counted(journal.copies, "copy", "copies")
            if is_ext
            else f"{journal.copies:,} blocks and inodes (each once a checkpoint)"
        )
        text = f"{percent(journal.again, journal.copies)} of {copies}"
        if journal.most_again and journal.most_again > 1:
            one = (
                "inode"
                if journal.most_again_structure == "inode_chunk"
                else f"block ({journal.most_again_structure})"
            )
            text += f"; one {one} {journal.most_again:,} times"
        yield "copied before" if is_ext else "logged before", text
    if journal.atime_copy_bytes:
        yield (
            "access times",
            f"{percent(journal.atime_copy_bytes, journal.copy_bytes)} of the copies hold nothing else",
        )
    if journal.checkpoint_bytes:
        yield (
            "in place",
            f"{human_bytes(journal.checkpoint_bytes)} "
            + ("that the journal had copied" if journal.family == "ext" else "of metadata"),
        )


def _why(journal: Journal) -> str:
    words = {
        Why.FORCED: "forced",
        Why.TIMER: "by the timer",
        Why.SETTLE: "at the end of a phase",
        Why.OTHER: "by a sync, or because the journal was full",
    }
    counts = [(journal.reasons.count(why), text) for why, text in words.items()]
    return ", ".join(f"{count:,} {text}" for count, text in counts if count) + (
        " (inferred)" if journal.reasons.inferred else ""
    )


def facts(pairs: Iterator[tuple[str, str]], width: int | None) -> Iterator[str]:
    """A label and what is to be said of it, a line each."""
    found = list(pairs)
    labels = max((len(label) for label, _ in found), default=0)
    for label, text in found:
        yield from _wrapped(f"{label:{labels}}  {text}", width, " " * (labels + 2))


def counted(count: int, one: str, many: str | None = None) -> str:
    """A number and what there is of it."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def one_line(name: str) -> str:
    """A file's name as a terminal may be told it: what it would obey or hide, as the bytes' numbers (docs/explaining.md, Names)."""
    return "".join(each if each.isprintable() else _numbers(each) for each in name)


def _numbers(character: str) -> str:
    return "".join(f"\\x{byte:02x}" for byte in character.encode("utf-8", "surrogatepass"))


def _parts(group: Group) -> str:
    """The largest first; alone, without a share."""
    parts = sorted(group.parts.items(), key=lambda part: -part[1])
    if len(parts) == 1:
        return parts[0][0]
    texts = [f"{name} {percent(size, group.bytes)}" for name, size in parts[:_MOST_PARTS]]
    return ", ".join(texts) + (
        f", {len(parts) - _MOST_PARTS} more" if len(parts) > _MOST_PARTS else ""
    )


def bar(size: int, total: int, width: int) -> str:
    """A share, drawn in eighths of a column."""
    eighths = round(width * 8 * size / total) if total else 0
    return "█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()


def percent(part: int, whole: int) -> str:
    """One digit; never 0 for something, nor all for not quite all."""
    share = 100 * part / whole if whole else 0.0
    if part and share < 0.1:
        return "<0.1 %"
    return f"{share:.1f} %" if part == whole or share < 99.95 else ">99.9 %"


def tail(text: str, width: int) -> str:
    """Its end, where it is too long."""
    return text if len(text) <= width else _ELLIPSIS + text[len(text) - width + 1 :]


def head(text: str, width: int | None) -> str:
    """Its beginning, where it is too long."""
    return (
        text if width is None or len(text) <= width else text[: width - 1].rstrip(" ,") + _ELLIPSIS
    )


def _wrapped(text: str, width: int | None, indent: str) -> Iterator[str]:
    """At blanks; a longer word stays whole."""
    rest = plain(text)
    while width is not None and len(rest) > width:
        place = rest.rfind(" ", len(indent) + 1, width + 1)
        if place < 0:
            place = rest.find(" ", width)
        if place < 0:
            break
        yield rest[:place].rstrip()
        rest = indent + rest[place + 1 :]
    yield rest
