"""A run that grows too large ends while its files can still be read."""

from collections.abc import Callable
from pathlib import Path

import pytest

from fscost.results import CellRecord, RunFullError, RunStore, SampleRow, limits, load, with_totals


@pytest.mark.parametrize(
    ("limit", "value", "what"),
    [
        ("LARGEST_MANIFEST_BYTES", 30_000, "bytes of its manifest"),
        ("MOST_VALUES", 1_000, "values of its manifest"),
        ("MOST_SAMPLES", 90, "samples"),
        ("LARGEST_SAMPLES_BYTES", 4_000, "bytes of text in its samples"),
    ],
)
def test_a_run_ends_before_a_limit_of_its_reader(
    run: Path,
    record: Callable[..., CellRecord],
    row: Callable[..., SampleRow],
    monkeypatch: pytest.MonkeyPatch,
    limit: str,
    value: int,
    what: str,
) -> None:
    monkeypatch.setattr(limits, limit, value)
    store = RunStore.reopen(run)

    def add(number: int) -> None:
        name = f"ext4.{number}"
        rows = [row("work", "device_write_bytes", 1.0, cell=name, repetition=number)]
        facts = {"mounted": list(range(7))}
        store.add(record("ext4", number, facts=facts), with_totals(rows))

    with pytest.raises(RunFullError, match=f"the run is full: more than [0-9,]+ {what}"):
        list(map(add, range(1, 1_000)))
    added = len(store.manifest.cells) - 2
    assert added > 20
    assert len(load(run).manifest.cells) == 2 + added
    # How the run ended is still noted.
    store.manifest.state = "stopped"
    store.save()
    found = RunStore.reopen(run).results
    assert (found.manifest.state, len(found.manifest.cells)) == ("stopped", 2 + added)
    assert found.samples.num_rows == 2 + 2 * added


def test_files_that_could_not_be_read_are_not_written(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = RunStore.reopen(run)
    store.manifest.stopped_because = "x" * 30_000
    for limit, value in (("LARGEST_MANIFEST_BYTES", 30_000), ("LARGEST_SAMPLES_BYTES", 500)):
        with monkeypatch.context() as lowered:
            lowered.setattr(limits, limit, value)
            with pytest.raises(RunFullError):
                store.save()
    assert len(load(run).manifest.cells) == 2
