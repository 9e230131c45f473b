"""Wear and load on the page: of a named device, of the run's own --ssd, and of arrays."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from fscost import api, wear
from fscost.cli.app import command
from fscost.errors import InputError
from fscost.host import fscost_version
from fscost.report.figures import figures
from fscost.report.html import html_text
from fscost.results import METRICS, TOTAL, RunStore, SampleRow, load, to_table
from fscost.results.worn import NAND, ROAMING
from fscost.view.page import Page, page
from fscost.view.units import decimal_bytes

from .test_html import embedded

EXT4 = Path(__file__).parents[2] / "crates/explain/tests/data/ext/ext4.fscost"
CARD = "sd-card-32gb"
OLD = "first-generation-block-map-32gb"


@pytest.fixture
def recorded(made_run: Callable[..., Path]) -> Path:
    """A run of ext4 with a recording and xfs without one."""
    folder = made_run("ext4", "xfs")
    shutil.copy(EXT4, folder / "ext4.fscost")
    store = RunStore.reopen(folder)
    store.manifest.cells[0] = replace(store.manifest.cells[0], recording="ext4.fscost")
    store.save()
    return folder


def names(found: Page) -> list[str]:
    return [figure.name for figure in figures(found)]


def test_the_wear_map_shows_the_erases_of_every_block(recorded: Path) -> None:
    device = wear.find(CARD)
    [source] = wear.sources(EXT4, is_explained=False)
    expected = wear.measure(source, device)
    found = page(load(recorded), device=device)
    [row] = found.tables["wear"].data.to_pylist()
    assert (row["profile"], row["nand_write_bytes"]) == ("ext4", expected.nand_write_bytes)
    assert row["most_erases"] == expected.erases.max() > 0
    cells = found.modelled.wear_map.to_pylist()
    sizes = [cell["last_block"] - cell["first_block"] + 1 for cell in cells]
    assert sum(sizes) == len(expected.erases)
    erases = sum(cell["mean_erases"] * size for cell, size in zip(cells, sizes, strict=True))
    assert erases == pytest.approx(expected.erases.sum())
    assert found.tables["wear"].units["mean_erases"] == "count", "1,220, not > 999"
    assert "wear-map" in names(found)
    text = html_text(found)
    assert "Wear on sd-card-32gb" in text
    assert "fig-wear-map" in text
    assert embedded(text)["csv"]["wear"].count("\n") == 2
    assert expected.life.host_write_bytes
    assert f">{decimal_bytes(expected.life.host_write_bytes)}<" in text, "as `fscost wear` prints"


def test_members_of_an_array_carry_their_load(recorded: Path) -> None:
    shape = wear.parse_array("raid5,members=3,chunk=64K")
    found = page(load(recorded), device=wear.find(OLD), array=shape)
    loads = found.tables["loads"].data.to_pylist()
    assert [each["disk"] for each in loads] == ["m0", "m1", "m2"]
    for each in loads:
        assert each["write_bytes"] > each["redundant_write_bytes"] > 0
        assert 0 < each["utilisation"] <= 1
    assert [each["disk"] for each in found.tables["wear"].data.to_pylist()] == ["m0", "m1", "m2"]
    assert "Load of each member of raid5" in html_text(found)
    assert "loads" in names(found)


def test_a_device_without_times_has_no_utilisation(recorded: Path) -> None:
    shape = wear.parse_array("raid0,members=2,chunk=64K")
    found = page(load(recorded), device=wear.find(CARD), array=shape)
    assert [each["utilisation"] for each in found.tables["loads"].data.to_pylist()] == [None, None]


def test_a_run_compared_with_ssd_shows_that_device(recorded: Path) -> None:
    assert page(load(recorded)).modelled.is_empty
    assert 'id="wear"' not in html_text(page(load(recorded)))
    store = RunStore.reopen(recorded)
    store.manifest.request["ssd"] = CARD
    store.save()
    assert "wear-map" in names(page(load(recorded)))
    store.manifest.request["ssd"] = "gone.toml"
    store.save()
    text = html_text(page(load(recorded)))
    assert "Not shown" in text
    assert "gone.toml" in text


def test_what_the_run_computed_is_not_computed_again(recorded: Path) -> None:
    """The upper end of the amplification is the run's, if the run has replayed the same writes on
    the same device with this version."""
    card = "sd-card-a1-32gb"
    run = load(recorded)
    cell = run.manifest.cells[0]
    computed = wear.worn(EXT4, [], wear.find(card))
    other = computed[ROAMING] * 2

    def shown(nand: float, ssd: str = card, version: str = fscost_version()) -> float:
        rows = [
            SampleRow(
                *(cell.cell, cell.profile, cell.repetition, cell.seed, cell.order),
                *(TOTAL, True, "", metric, METRICS[metric].unit, value),
            )
            for metric, value in ((NAND, nand), (ROAMING, other))
        ]
        request = {**run.manifest.request, "ssd": ssd}
        changed = replace(
            run,
            manifest=replace(run.manifest, request=request, fscost_version=version),
            samples=pa.concat_tables([run.samples, to_table(rows)]),
        )
        [row] = page(changed, device=wear.find(card)).tables["wear"].data.to_pylist()
        return float(row["roaming_amplification"] * row["host_write_bytes"])

    assert shown(computed[NAND]) == pytest.approx(other)
    assert shown(computed[NAND] + 1) == pytest.approx(computed[ROAMING])
    assert shown(computed[NAND], ssd=CARD) == pytest.approx(computed[ROAMING])
    assert shown(computed[NAND], version="0.0.1") == pytest.approx(computed[ROAMING])


def test_an_array_without_a_device_is_refused(recorded: Path) -> None:
    with pytest.raises(InputError, match="--array needs a device"):
        command("report").main([str(recorded), "--array", "raid0,members=2"], standalone_mode=False)


def test_a_picture_and_a_script_take_a_device_too(recorded: Path, tmp_path: Path) -> None:
    def plot(*more: object) -> None:
        words = ["plot", recorded, "--chart", "wear-map", "-o", tmp_path / "map.svg", *more]
        command("plot").main([str(each) for each in words[1:]], standalone_mode=False)

    with pytest.raises(InputError, match="no chart 'wear-map'"):
        plot()
    plot("--ssd", CARD)
    assert "erases" in (tmp_path / "map.svg").read_text()
    with pytest.raises(InputError, match="--array needs a device"):
        plot("--array", "raid1,members=2")
    api.report(recorded, tmp_path / "page.html", ssd=CARD)
    assert "wear-map" in embedded((tmp_path / "page.html").read_text())["specs"]
