"""`fscost explain`: what each written byte of a recording was, why, and whose."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from fscost import analyze
from fscost.analyze import By, Group
from fscost.cli.output.units import human_bytes
from fscost.cli.output.view import plain
from fscost.errors import InputError

BAR_COLUMNS = 24
_EIGHTHS = " ▏▎▍▌▋▊▉"


def explain(
    recording: Annotated[Path, typer.Argument(metavar="RECORDING", help="A file that a run kept: cells/…/recording.fscost.")],
    by: Annotated[By, typer.Option(help="What to sum by.")] = By.STRUCTURE,
    phase: Annotated[list[str] | None, typer.Option(metavar="NAME", help="Only this phase; may be given again.")] = None,
    all_: Annotated[bool, typer.Option("--all", help="mkfs and mount too.")] = False,
    top: Annotated[int, typer.Option(metavar="N", min=1, help="So many lines; the rest in one.")] = 20,
    parquet: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the table, a row for each written extent; must not exist.")] = None,
    json_: Annotated[bool, typer.Option("--json", help="One JSON object, with all groups.")] = False,
) -> None:
    """Say what each written byte was: structure, cause, file."""
    if phase and all_:
        raise InputError("--phase and --all contradict each other", "leave one out")
    if parquet is not None and parquet.exists():
        raise InputError(f"{parquet} exists", "name a file that does not")
    whole = analyze.explain(recording)
    phases = list(phase or (whole.phases if all_ else whole.measured))
    chosen = whole.within(phases)
    if parquet is not None:
        whole.write_parquet(parquet)
    groups = analyze.groups(chosen, by)
    if json_:
        print(json.dumps(_object(chosen, phases, by, groups), indent=2))
        return
    total, unknown = analyze.total_bytes(chosen), analyze.unknown_bytes(chosen)
    families = ", ".join(f"{disk}: {family or 'no known file system'}" for disk, family in chosen.families.items())
    print(plain(f"{recording}: {families}"))
    print(plain(f"{human_bytes(total)} written in {', '.join(phases) or 'no phase'}; {_percent(unknown, total)} unknown"))
    if chosen.end != "finished":
        print(plain(f"the recording is not whole ({chosen.end}): only what precedes that is here"))
    if groups:
        print()
        _print_groups(by, groups, top, total)
    found = analyze.findings(chosen)
    if found:
        print()
    for line in found:
        print(plain(f"- {line}"))
    if parquet is not None:
        print()
        print(plain(f"{parquet}: {whole.table.num_rows} rows, of all phases"))


def _object(chosen: analyze.Explanation, phases: Sequence[str], by: By, groups: Sequence[Group]) -> dict[str, object]:
    return {
        "end": chosen.end,
        "families": dict(chosen.families),
        "phases": list(phases),
        "write_bytes": analyze.total_bytes(chosen),
        "unknown_write_bytes": analyze.unknown_bytes(chosen),
        "by": by.value,
        "groups": [{"name": group.name, "write_bytes": group.bytes, "parts": group.parts} for group in groups],
        "findings": analyze.findings(chosen),
    }


def _print_groups(by: By, groups: Sequence[Group], top: int, total: int) -> None:
    shown = list(groups[:top])
    if rest := groups[top:]:
        parts = {part: sum(group.parts.get(part, 0) for group in rest) for part in dict.fromkeys(part for group in rest for part in group.parts)}
        shown.append(Group(f"({len(rest)} more)", sum(group.bytes for group in rest), parts))
    rows = [(by.value, "bytes", "share", "", "causes" if by is By.STRUCTURE else "of it")]
    rows += [
        (_line(group.name), human_bytes(group.bytes), _percent(group.bytes, total), _bar(group.bytes, total), _parts(group)) for group in shown
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    for name, size, share, bar, words in rows:
        print(f"{name:{widths[0]}}  {size:>{widths[1]}}  {share:>{widths[2]}}  {bar:{BAR_COLUMNS}}  {words}".rstrip())


def _line(name: str) -> str:
    return plain(name).replace("\n", "�")


def _parts(group: Group) -> str:
    """Up to four, the largest first; alone, without a share."""
    parts = sorted(group.parts.items(), key=lambda part: -part[1])
    if len(parts) == 1:
        return parts[0][0]
    texts = [f"{name} {_percent(size, group.bytes)}" for name, size in parts[:4]]
    return ", ".join(texts) + (f", {len(parts) - 4} more" if len(parts) > 4 else "")


def _bar(size: int, total: int) -> str:
    eighths = round(BAR_COLUMNS * 8 * size / total) if total else 0
    return "█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()


def _percent(part: int, whole: int) -> str:
    percent = 100 * part / whole if whole else 0.0
    if part and percent < 0.1:
        return "<0.1 %"
    return f"{percent:.1f} %"
