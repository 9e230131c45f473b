"""`fscost recording strip` on the command line; its effect on content is tested in
crates/explain."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

CORPUS = Path(__file__).parents[1] / "crates/explain/tests/data/ext"


def fscost(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    program = Path(sys.executable).with_name("fscost")
    return subprocess.run([program, *arguments], capture_output=True, text=True, check=False)


def told(*arguments: str | Path) -> str:
    result = fscost(*arguments)
    assert result.returncode == 0
    # Before writing, the command says how large the result can be.
    assert re.fullmatch(r"(.*: up to .*B\n)?", result.stderr)
    return result.stdout


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ([], "names replaced"),
        (["--names", "extensions"], "names replaced, extensions kept"),
        (["--names", "keep"], "names kept"),
    ],
)
def test_what_is_stripped_says_so_and_can_be_used(
    options: list[str], names: str, tmp_path: Path
) -> None:
    source, out = CORPUS / "ext4.fscost", tmp_path / "stripped"
    line = told("recording", "strip", source, out, *options)
    assert (
        line
        == f"{out}: {out.stat().st_size / 1024:.1f} KiB, without the contents of files ({names})\n"
    )
    assert f"stripped of the contents of files ({names})" in told("recording", "info", out)
    facts = json.loads(told("recording", "info", "--json", out))
    before = json.loads(told("recording", "info", "--json", source))
    assert (before["stripped"], facts["stripped"]) == ("no", names)
    assert (facts["intervals"], facts["events"], facts["disks"]) == (
        before["intervals"],
        before["events"],
        before["disks"],
    )
    assert "are intact" in told("recording", "verify", out)
    explained = [json.loads(told("explain", file, "--json", "--all")) for file in (source, out)]
    assert explained[0]["groups"] == explained[1]["groups"]


def test_each_time_with_another_key(tmp_path: Path) -> None:
    for name in ("one", "other"):
        told("recording", "strip", CORPUS / "ext4.fscost", tmp_path / name)
    assert (tmp_path / "one").read_bytes() != (tmp_path / "other").read_bytes()


def test_what_was_cut_is_said_and_what_is_damaged_becomes_nothing(tmp_path: Path) -> None:
    source, cut, damaged, out = (
        CORPUS / "ext4.fscost",
        tmp_path / "cut",
        tmp_path / "damaged",
        tmp_path / "out",
    )
    content = source.read_bytes()
    cut.write_bytes(content[:-64])
    assert told("recording", "strip", cut, out).endswith(
        "(names replaced)\n  it ends early, as the original does\n"
    )
    out.unlink()
    middle = len(content) // 2
    damaged.write_bytes(
        content[:middle]
        + bytes(byte ^ 1 for byte in content[middle : middle + 64])
        + content[middle + 64 :]
    )
    result = fscost("recording", "strip", damaged, out)
    assert (result.returncode, out.exists()) == (2, False)
    assert "checksum" in result.stderr
    elsewhere = fscost("recording", "strip", source, tmp_path / "none" / "out")
    assert (
        elsewhere.returncode,
        elsewhere.stderr.splitlines()[0].endswith(f": there is no folder {tmp_path / 'none'}"),
    ) == (2, True)


def test_what_exists_stays(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.write_text("mine")
    result = fscost("recording", "strip", CORPUS / "ext4.fscost", out)
    assert result.returncode == 2
    assert f"{out} exists" in result.stderr
    assert out.read_text() == "mine"
    missing = fscost("recording", "strip", tmp_path / "none", tmp_path / "x")
    assert missing.returncode == 2
    assert not (tmp_path / "x").exists()
