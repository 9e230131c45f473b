"""Each oracle of a power cut has a broken disk that it must flag."""

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from fscost.crash import kept, promises
from fscost.crash.explore import kept_at
from fscost.crash.promises import broken, content, sector

ROUNDS = 9
"""Enough that a slot of the database has an older version to fall back to."""
KEPT = dict.fromkeys(("log", "config", "mail", "database"), ROUNDS)
Break = Callable[[Path], object]


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder in which the whole workload ran."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(kept, "PAUSE_S", 0)
    monkeypatch.setattr(promises, "say_kept", lambda **promised: None)
    monkeypatch.setattr(promises, "_type", lambda: "tmpfs")
    promises.prepare()
    promises.run(ROUNDS)
    return tmp_path


def test_an_intact_disk_breaks_nothing(made: Path) -> None:
    assert list(broken(made, KEPT)) == []
    # Nothing was promised yet beyond the last round but one.
    assert list(broken(made, dict.fromkeys(KEPT, ROUNDS - 1))) == []


def test_an_empty_disk_breaks_everything(tmp_path: Path) -> None:
    places = " ".join(place for _, place in broken(tmp_path, KEPT))
    for name in ("still-0", "mail-9", "log", "config", "database"):
        assert name in places


def overwrite(name: str, data: bytes, offset: int = 0) -> Break:
    def change(folder: Path) -> None:
        before = (folder / name).stat()
        with (folder / name).open("r+b") as file:
            file.seek(offset)
            file.write(data)
        os.utime(folder / name, ns=(before.st_atime_ns, before.st_mtime_ns))

    return change


@pytest.mark.parametrize(
    ("change", "kind", "place"),
    [
        (lambda made: (made / "mail/mail-3").unlink(), "lost", "mail-3 (missing)"),
        (overwrite("mail/mail-3", bytes(512), 512), "lost", "mail-3, sector 1"),
        (overwrite("mail/mail-3", sector("old", 0, 7), 512), "stale", "mail-3, sector 1"),
        (lambda made: (made / "log").unlink(), "lost", "log (missing)"),
        (lambda made: (made / "log").write_bytes(content("log", 0, 4)), "lost", "log (4 of 9"),
        (overwrite("log", bytes(512), 1024), "lost", "log, record 2"),
        (overwrite("log", sector("database", 0, 7), 1024), "stale", "log, record 2"),
        (lambda made: (made / "config").unlink(), "lost", "config (missing)"),
        (
            lambda made: (made / "config").write_bytes(content("config", 4, 8)),
            "lost",
            "config (older than version 9)",
        ),
        (lambda made: (made / "config").write_bytes(b""), "torn", "config (0 bytes)"),
        (overwrite("config", content("config", 8, 2)), "torn", "config (4096 bytes)"),
        (overwrite("config", sector("mail-1", 0, 0)), "stale", "config (4096 bytes)"),
        (overwrite("database", sector("database", 1, 8), 8 * 512), "lost", "database, sector 8"),
        (overwrite("database", bytes(512), 8 * 512), "lost", "database, sector 8"),
        (overwrite("database", sector("still-1", 0, 0), 8 * 512), "stale", "database, sector 8"),
        (overwrite("still-2", bytes(1)), "stale", "still-2, sector 0"),
        (overwrite("spool/spool-3", sector("old", 0, 9), 512), "stale", "spool-3, sector 1"),
        (lambda made: (made / "swap").unlink(), "lost", "swap (missing)"),
        (lambda made: (made / "swap").write_bytes(b""), "emptied", "swap (0 bytes)"),
        (overwrite("swap", bytes(1024)), "emptied", "swap (4096 bytes)"),
        (overwrite("swap", content("swap", 8, 2)), "emptied", "swap (4096 bytes)"),
        (overwrite("swap", sector("old", 0, 0)), "stale", "swap (4096 bytes)"),
    ],
)
def test_a_broken_promise_is_flagged(made: Path, change: Break, kind: str, place: str) -> None:
    change(made)
    [(found, where)] = broken(made, KEPT)
    assert (found, where[: len(place)]) == (kind, place)


def test_an_older_time_than_promised_is_flagged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: dict[str, int] = {}
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(promises, "say_kept", lambda **promised: made.update(promised))
    monkeypatch.setattr(promises, "_type", lambda: "tmpfs")
    promises.prepare()
    promises.run(3)
    assert sorted(each for each in made if each.endswith("_changed")) == [
        "config_changed",
        "log_changed",
        "mail_changed",
    ]
    assert list(broken(tmp_path, made)) == []
    for name in ("still-3", "log", "config", "mail/mail-3", "mail/mail-2", "database"):
        changed_ns = (tmp_path / name).stat().st_mtime_ns
        os.utime(tmp_path / name, ns=(0, changed_ns - 10**9))
    assert list(broken(tmp_path, made)) == [
        ("dated", "still-3"),
        ("dated", "log"),
        ("dated", "config"),
        ("dated", "mail/mail-3"),
    ]
    # A newer time is that of a call which had not returned yet.
    os.utime(tmp_path / "log", ns=(0, 2 * 10**18))
    assert ("dated", "log") not in list(broken(tmp_path, made))


def test_a_read_error_is_no_silent_loss(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path) -> bytes:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(Path, "read_bytes", refuse)
    found = list(broken(made, KEPT))
    assert ("unreadable", "log (Input/output error)") in found
    assert {kind for kind, _ in found} == {"unreadable"}


@pytest.mark.parametrize(
    ("change", "kinds"),
    [
        (lambda made: (made / "mail/mail-9").unlink(), []),
        (lambda made: (made / "mail/mail-9").write_bytes(b""), []),
        (overwrite("mail/mail-9", bytes(512)), []),
        (overwrite("mail/mail-9", sector("old", 0, 1)), ["stale"]),
        (lambda made: (made / "log").write_bytes(content("log", 0, 8)), []),
        (lambda made: (made / "config").write_bytes(content("config", 8, 8)), []),
        (overwrite("database", sector("database", 1, 8), 8 * 512), []),
        (lambda made: (made / "spool/spool-9").unlink(), []),
        (lambda made: (made / "spool/spool-9").write_bytes(bytes(4096)), []),
        (lambda made: (made / "swap").write_bytes(content("swap", 2, 8)), []),
    ],
)
def test_what_was_not_promised_may_be_lost_but_not_replaced(
    made: Path, change: Break, kinds: list[str]
) -> None:
    change(made)
    assert [kind for kind, _ in broken(made, dict.fromkeys(KEPT, ROUNDS - 1))] == kinds


def test_a_promise_counts_only_well_before_the_cut() -> None:
    """The workload's clock and the recording's may differ."""
    made = [(10_000_000, "log", 1), (20_000_000, "log", 2), (25_000_000, "mail", 1)]
    assert kept_at(made, 11_999_999, 2_000_000) == {}
    assert kept_at(made, 21_000_000, 2_000_000) == {"log": 1}
    assert kept_at(made, 22_000_000, 2_000_000)["log"] == 2
