"""`fscost report` and `fscost plot`."""

import json
import zlib
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest

from fscost.cli.app import command
from fscost.errors import InputError

DOCUMENTED = Path(__file__).parents[2] / "docs/answers/sqlite.svg"
"""A picture whose colours test_browser.py checks."""


def run(name: str, *arguments: object) -> None:
    command(name).main([str(each) for each in arguments], standalone_mode=False)


def png_chunks(png: bytes) -> dict[bytes, bytes]:
    """Return the chunks by type, after checking each checksum (PNG specification, 5.3)."""
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    found, at = {}, 8
    while at < len(png):
        size = int.from_bytes(png[at : at + 4])
        kind, body = png[at + 4 : at + 8], png[at + 8 : at + 8 + size]
        assert int.from_bytes(png[at + 8 + size : at + 12 + size]) == zlib.crc32(kind + body)
        found[kind] = body
        at += 12 + size
    return found


def test_the_page_is_written_into_the_run(
    made_run: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    folder = made_run("ext4", "xfs")
    run("report", folder)
    path = folder / "report.html"
    assert capsys.readouterr().out == f"{path}\n"
    assert path.read_text().startswith("<!doctype html>")


def test_a_picture_says_where_its_numbers_come_from(
    made_run: Callable[..., Path], tmp_path: Path
) -> None:
    folder = made_run("ext4", "xfs")
    run("plot", folder, "--chart", "wall_s", "-o", tmp_path / "a.png")
    keyword, _, text = png_chunks((tmp_path / "a.png").read_bytes())[b"iTXt"].partition(b"\0")
    assert keyword == b"fscost"
    told = json.loads(text.lstrip(b"\0"))
    assert (told["software"], told["seed"]) == ("fscost 0.1", 1)
    run("plot", folder, "--chart", "wall_s", "-o", tmp_path / "a.svg")
    root = ElementTree.parse(tmp_path / "a.svg").getroot()
    style = root.findtext("{http://www.w3.org/2000/svg}style")
    assert style is not None
    assert style in DOCUMENTED.read_text()
    metadata = root.find("{http://www.w3.org/2000/svg}metadata")
    assert metadata is not None
    assert json.loads(metadata.text or "") == told


def test_a_wrong_chart_or_file_is_refused(made_run: Callable[..., Path], tmp_path: Path) -> None:
    folder = made_run("ext4")
    with pytest.raises(InputError, match="did you mean wall_s"):
        run("plot", folder, "--chart", "wal_s", "-o", tmp_path / "a.png")
    with pytest.raises(InputError, match=r"extension \.png, \.svg or \.html"):
        run("plot", folder, "--chart", "wall_s", "-o", tmp_path / "a.gif")
    with pytest.raises(InputError, match="leave --profile out"):
        run("plot", folder, "--chart", "wall_s", "--profile", "xfs", "-o", tmp_path / "a.png")
    assert not list(tmp_path.glob("a.*"))
