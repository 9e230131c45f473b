"""No unit is separated from its number, and nothing is cut off, at any width."""

import re
from io import StringIO

import pytest

from fscost.report import layout, terminal
from fscost.view.grid import Grid

GRID = Grid(
    "Title; more",
    ("profile", "written", "vs ext4", "requests", "time", "space used"),
    [
        ["ext4 -O ^has_journal -o noatime", "38.2 MiB", "−21 %", "12,345", "≈ 1.23 s", "1,023 KiB"],
        ["xfs", "1.02 GiB", "8.80×", "7", "12.3 min", "61.2 MiB"],
    ],
    needed=3,
    changes=(2,),
)


def lines(grid: Grid, width: int) -> list[str]:
    found = []
    for placed in layout.tables(grid, width):
        for row in layout.rows(placed):
            found += [(" " * placed.gap).join(cells).rstrip() for cells in row]
    return found


@pytest.mark.parametrize("width", [40, 60, 80, 100, 140, 200])
@pytest.mark.parametrize("needed", [3, 6])
def test_every_number_keeps_its_unit(width: int, needed: int) -> None:
    grid = Grid(GRID.title, GRID.header, GRID.rows, needed=needed)
    shown = lines(grid, width)
    assert max(map(len, shown)) <= width
    columns = range(1, 6 if needed == 6 else 3)
    for row in GRID.rows:
        for index in columns:
            assert any(row[index] in line for line in shown), row[index]


@pytest.mark.parametrize("number", ["1.08 TB", "8.1 GB", "27 M", "1.5 MiB", "12 s"])
def test_a_line_ends_before_a_number_and_not_before_its_unit(number: str) -> None:
    assert layout.wrapped(f"of {number}", len(number)) == ["of", number]


def test_a_path_that_is_to_be_copied_stays_whole() -> None:
    path = f"runs/{'long-' * 20}/output.log"
    assert layout.wrapped(f"its output: {path}", 60, "  ", keep_words=True)[-1] == f"  {path}"
    assert max(map(len, layout.wrapped(f"its output: {path}", 60, "  "))) == 60


def test_what_is_not_needed_gives_way_and_the_needed_goes_on_below() -> None:
    assert "1,023 KiB" not in "\n".join(lines(GRID, 40))
    assert "1,023 KiB" in "\n".join(lines(GRID, 80))
    whole = Grid(GRID.title, GRID.header, GRID.rows)
    parts = list(layout.tables(whole, 40))
    assert len(parts) > 1
    assert parts[1].grid.title == "Title (continued)"
    assert all(part.grid.header[0] == "profile" for part in parts)


def test_a_changes_column_is_known_in_each_part() -> None:
    whole = Grid(GRID.title, GRID.header, GRID.rows, changes=(5,))
    parts = list(layout.tables(whole, 40))
    assert [part.grid.header[index] for part in parts for index in part.grid.changes] == [
        "space used"
    ]


@pytest.mark.parametrize("width", range(20, 60))
def test_a_sentence_breaks_between_words_only(width: int) -> None:
    text = "xfs: 9.92 MiB less than ext4, 8.2 % of 12.3 min; ≈ 3.1 s, ± 2 % → -o noatime"
    shown = layout.wrapped(text, width)
    assert " ".join(shown) == text
    for line in shown:
        assert not re.search(r"\d$", line) or line.endswith("ext4"), line
        assert not re.match(r"(MiB|%|min|s\b)", line), line


def test_joined_names_part_behind_a_plus() -> None:
    assert layout.wrapped("times+new_inode+inode_removed", 16) == [
        "times+new_inode+",
        "inode_removed",
    ]
    assert layout.wrapped("5 + 10", 5) == ["5 +", "10"]


@pytest.mark.parametrize(
    ("text", "indent"),
    [
        ("- one finding", 2),
        ("  - below another", 4),
        ("Why: a cause", 5),
        ("xfs: an answer", 5),
        ("An answer of one: a sentence", 0),
        ("Caution: btrfs: two labels", 9),
    ],
)
def test_lines_hang_under_their_first_word(text: str, indent: int) -> None:
    assert layout.hanging(text) == " " * indent
    out = StringIO()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", "60")
        terminal.print_parts("title", [f"{text} {'and more words ' * 8}"], out)
    first, *others = out.getvalue().splitlines()[2:]
    assert first.startswith(text)
    assert len(others) > 1
    assert all(line.startswith(" " * indent) and line[indent] != " " for line in others)
