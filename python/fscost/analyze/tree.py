"""Written bytes as a tree of two levels: directories, and the files in them."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from fscost.analyze.explain import Explanation
from fscost.analyze.groups import NO_FILE, kind, mapped

OTHER_DIRECTORIES = "other directories"
_DIRECTORIES = 12
_ENOUGH_DIRECTORIES = 5
_IN_DIRECTORY = 40


def tree(explanation: Explanation) -> pa.Table:
    """Return a row for each of the most expensive files: directory, name, kind (of most of its
    bytes), files (their number), write_bytes.

    All other bytes have a row for each directory and kind: bytes of no single file, and files
    without a row of their own. The rows add up to all bytes.
    """
    sums = explanation.sums("path", "structure")
    depth = _depth(sums["path"].unique().drop_null().cast(pa.string()).to_pylist())
    rows = pa.table(
        {
            "directory": mapped(sums["path"], lambda path: _directory(path, depth)),
            "path": mapped(sums["path"], lambda path: NO_FILE if path is None else str(path)),
            "kind": mapped(sums["structure"], lambda name: kind(explanation, str(name))),
            "write_bytes": sums["length_sum"],
        }
    )
    rows = _few_directories(rows)
    found = [row for name in rows["directory"].unique().to_pylist() for row in _of(rows, name)]
    columns = list(zip(*found, strict=True)) or [()] * 5
    texts = [pa.array(column, pa.string()) for column in columns[:3]]
    numbers = [pa.array(column, pa.int64()) for column in columns[3:]]
    return pa.table([*texts, *numbers], ["directory", "name", "kind", "files", "write_bytes"])


def _depth(paths: Sequence[str]) -> int:
    """Choose the number of directory levels that separates the files: too few levels would show
    nothing, too many would leave one file in each directory."""
    deepest = max((path.count("/") - 1 for path in paths), default=0)
    for depth in range(1, deepest):
        if len({_directory(path, depth) for path in paths}) >= _ENOUGH_DIRECTORIES:
            return depth
    return max(1, deepest)


def _directory(path: str | None, depth: int) -> str:
    if path is None:
        return NO_FILE
    names = path.split("/", depth + 1)[1:-1]
    return f"{'/'.join(names)}/"


def _few_directories(rows: pa.Table) -> pa.Table:
    totals = rows.group_by("directory").aggregate([("write_bytes", "sum")])
    order = totals.sort_by([("write_bytes_sum", "descending"), ("directory", "ascending")])
    largest = order["directory"].combine_chunks()[:_DIRECTORIES]
    name = pc.if_else(
        pc.is_in(rows["directory"], value_set=largest), rows["directory"], OTHER_DIRECTORIES
    )
    return rows.set_column(0, "directory", name)


def _of(rows: pa.Table, directory: str) -> Iterator[tuple[str, str, str, int, int]]:
    mine = rows.filter(pc.equal(rows["directory"], directory))
    totals = mine.group_by("path").aggregate([("write_bytes", "sum")])
    order = totals.sort_by([("write_bytes_sum", "descending"), ("path", "ascending")])
    shown = order["path"].combine_chunks()[:_IN_DIRECTORY]
    is_shown = pc.is_in(mine["path"], value_set=shown)
    parts: dict[str, Counter[str]] = defaultdict(Counter)
    for row in mine.filter(is_shown).to_pylist():
        parts[row["path"]][row["kind"]] += row["write_bytes"]
    for path in shown.to_pylist():
        if path == NO_FILE:
            yield from ((directory, path, part, 1, count) for part, count in parts[path].items())
            continue
        name = path.removeprefix(f"/{directory}").removeprefix("/") or "/"
        yield (directory, name, _most(parts[path]), 1, parts[path].total())
    if order.num_rows > _IN_DIRECTORY:
        count = order.num_rows - _IN_DIRECTORY
        left = mine.filter(pc.invert(is_shown)).group_by("kind")
        for row in left.aggregate([("write_bytes", "sum")]).to_pylist():
            name = f"{count:,} smaller files"
            yield (directory, name, row["kind"], count, row["write_bytes_sum"])


def _most(parts: Counter[str]) -> str:
    return max(parts, key=lambda part: parts[part])
