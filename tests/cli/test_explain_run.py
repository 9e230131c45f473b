"""`fscost explain RUN`: the recordings that a run kept, one for each profile."""

import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fscost import capture

Run = Callable[..., Any]
BLOCK = 4096
MARK = 8


def recorded(path: Path, blocks: int) -> None:
    """Make a recording whose phase `work` writes this number of blocks, by way of a dm-log-writes
    log."""

    def entry(content: bytes, flags: int = 0, text: bytes = b"") -> bytes:
        return (struct.pack("<QQQQ", 0, len(content) // 512, flags, len(text)) + text).ljust(
            512, b"\0"
        ) + content

    entries = [entry(b"", MARK, b"work"), *(entry(bytes([1]) * BLOCK) for _ in range(blocks))]
    log = path.with_name("log")
    log.write_bytes(
        struct.pack("<QQQI", 0x6A736677736872, 1, len(entries), 512).ljust(512, b"\0")
        + b"".join(entries)
    )
    capture.import_dm_log_writes(log, path)


@pytest.fixture
def kept(compare: Run, tmp_path: Path) -> Callable[..., Path]:
    """Return a function that makes a run of ext4, xfs and btrfs, twice each, and adds recordings of
    these cells to its manifest."""

    def make(**cells: str) -> Path:
        profiles = [word for name in ("ext4", "xfs", "btrfs") for word in ("--on", name)]
        compare(
            *profiles,
            "--out",
            "run",
            "--keep",
            "none",
            "--min-repetitions",
            "2",
            "--max-repetitions",
            "2",
        )
        folder = tmp_path / "run"
        manifest = json.loads((folder / "manifest.json").read_text())
        for number, (cell, path) in enumerate(cells.items()):
            [record] = [
                each for each in manifest["cells"] if each["cell"] == cell.replace("_", ".")
            ]
            record["recording"] = path
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            recorded(folder / path, number + 1)
        (folder / "manifest.json").write_text(json.dumps(manifest))
        return folder

    return make


def test_the_first_of_each_profile_has_a_section(kept: Callable[..., Path], fscost: Run) -> None:
    kept(xfs_0="cells/xfs.0/r", ext4_1="cells/ext4.1/r", xfs_1="cells/xfs.1/r")
    told = fscost("explain", "run").stdout
    titles = [line for line in told.splitlines() if "repetition" in line]
    assert titles == ["ext4 (repetition 1)", "xfs (repetition 0)"]
    found = json.loads(fscost("explain", "run", "--json").stdout)
    assert [
        (each["profile"], each["repetition"], each["write_bytes"]) for each in found["recordings"]
    ] == [
        ("ext4", 1, 2 * BLOCK),
        ("xfs", 0, BLOCK),
    ]
    assert found["run"] == "run"


def test_profiles_are_chosen_and_then_a_recording_has_its_options(
    kept: Callable[..., Path], fscost: Run, tmp_path: Path
) -> None:
    kept(xfs_0="cells/xfs.0/r", ext4_1="cells/ext4.1/r")
    [only] = json.loads(fscost("explain", "run", "--profile", "xfs", "--json").stdout)["recordings"]
    assert only["profile"] == "xfs"
    fscost("explain", "run", "--profile", "xfs", "--parquet", "t.parquet")
    assert (tmp_path / "t.parquet").exists()
    assert (
        "work, 0.00 s after it began"
        in fscost("explain", "run", "--profile", "ext4", "--at", "work").stdout
    )
    assert (
        json.loads(fscost("explain", "run", "--profile", "ext4", "--at", "work", "--json").stdout)[
            "phase"
        ]
        == "work"
    )


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--profile", "btrfs"], "'btrfs' is without a recording"),
        (["--profile", "zfs"], "'zfs' is not in this run"),
        (["--profile", "zfs"], "choose one that has a recording: ext4, xfs"),
        (["--parquet", "t"], "choose one with --profile: ext4, xfs"),
        (["--at", "work"], "choose one with --profile: ext4, xfs"),
        (["--profile", "xfs", "--at", "never"], "or one of its marks: work"),
        (["--at", "work", "--all"], "drop either --at"),
    ],
)
def test_what_it_cannot_do_it_says(
    arguments: list[str], words: str, kept: Callable[..., Path], fscost: Run
) -> None:
    kept(xfs_0="cells/xfs.0/r", ext4_1="cells/ext4.1/r")
    assert words in fscost("explain", "run", *arguments, check=(2,)).stderr


def test_a_run_without_recordings_says_how_to_keep_them(
    kept: Callable[..., Path], fscost: Run
) -> None:
    kept()
    assert "--keep" in fscost("explain", "run", check=(2,)).stderr
    assert "holds no run" in fscost("explain", ".", check=(2,)).stderr


def test_a_manifest_names_nothing_outside_of_its_folder(
    kept: Callable[..., Path], fscost: Run, tmp_path: Path
) -> None:
    kept(xfs_0="../elsewhere/r")
    assert (tmp_path / "elsewhere/r").exists()
    fscost("explain", "run", check=(2,))
    (tmp_path / "run/link").symlink_to(tmp_path / "elsewhere")
    manifest = tmp_path / "run/manifest.json"
    manifest.write_text(manifest.read_text().replace("../elsewhere/r", "link/r"))
    fscost("explain", "run", check=(2,))


def test_profile_is_for_runs(kept: Callable[..., Path], fscost: Run) -> None:
    kept(xfs_0="cells/xfs.0/r")
    assert (
        "one recording"
        in fscost("explain", "run/cells/xfs.0/r", "--profile", "xfs", check=(2,)).stderr
    )
