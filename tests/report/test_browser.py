"""The page in the distribution's Chromium, opened from disk."""

import csv
import shutil
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from threading import Thread

import pyarrow.parquet as pq
import pytest

from fscost.report.html import html_text
from fscost.report.site import Site
from fscost.results import SAMPLES, salvaged
from fscost.view.page import page

from .browser import DESK, DRAWN, PHONE, Browser, check_accessible, check_layout

pytestmark = pytest.mark.browser


def opened(folder: Path, place: Path) -> Iterator[Browser]:
    browser = Browser(html_text(page(*salvaged(folder))), place)
    yield browser
    browser.driver.quit()


@pytest.fixture(scope="module")
def real(real_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    yield from opened(real_run, tmp_path_factory.mktemp("real"))


@pytest.fixture(scope="module")
def hostile(hostile_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    yield from opened(hostile_run, tmp_path_factory.mktemp("hostile"))


@pytest.mark.root
@pytest.mark.slow
def test_a_real_run_opens_offline(real: Browser) -> None:
    assert len(real.all("#written figure svg")) == 3
    assert real.find("#fig-block-map-ext4-0 canvas").size["width"] > 600
    files = real.find("#fig-files-ext4-0").text
    assert "onerror" in files, "a hostile name is text in the chart"
    assert real.requests() == [real.driver.current_url]
    assert real.complaints() == []


@pytest.mark.root
@pytest.mark.slow
def test_samples_as_csv_are_the_parquet_file(real: Browser, real_run: Path) -> None:
    real.press("button[data-raw]")
    rows = list(csv.DictReader(StringIO(real.downloaded(".csv").decode())))
    table = pq.read_table(real_run / SAMPLES).to_pylist()
    assert len(rows) == len(table) > 100
    for row, expected in zip(rows, table, strict=True):
        assert {**row, "value": float(row["value"])} == {
            name: value if name == "value" else str(value) for name, value in expected.items()
        }


@pytest.mark.root
@pytest.mark.slow
@pytest.mark.parametrize("size", [DESK, PHONE])
def test_nothing_of_a_real_run_is_cut_off_or_covered(real: Browser, size: tuple[int, int]) -> None:
    real.resize(*size)
    check_layout(real)
    real.resize(*DESK)


@pytest.mark.root
@pytest.mark.slow
def test_the_totals_show_what_decides_without_scrolling(real: Browser) -> None:
    """The table has more columns than fit; the verdict and the costs come first."""
    real.resize(*DESK)
    real.settle()
    ends = real.driver.execute_script(
        "const table = document.querySelector('#table-summary');"
        "const room = table.closest('.scroll').getBoundingClientRect().right;"
        "return Object.fromEntries([...table.querySelectorAll('thead th')].map((th) =>"
        " [th.innerText.split('\u00a0')[0].trim(), room - th.getBoundingClientRect().right]))"
    )
    decisive = ("written", "ratio", "verdict", "time", "CPU", "requests", "flushes", "fsync p99")
    assert {name: ends[name] >= 0 for name in decisive} == dict.fromkeys(decisive, True)


def test_hostile_names_do_nothing(hostile: Browser) -> None:
    assert hostile.driver.title.startswith("run </script>"), "the run's own name, as text"
    assert hostile.all("img") == []
    assert hostile.complaints() == []


def test_a_table_sorts_by_value_and_says_how(hostile: Browser) -> None:
    header = "#table-summary th:nth-child(2)"
    for direction, reverse in (("ascending", False), ("descending", True)):
        hostile.press(f"{header} button")
        assert hostile.find(header).get_attribute("aria-sort") == direction
        cells = hostile.all("#table-summary tbody td:nth-child(2)")
        keys = [float(cell.get_attribute("data-key") or "nan") for cell in cells]
        assert len(keys) == 3
        assert keys == sorted(keys, reverse=reverse)


def test_the_theme_toggles_and_charts_follow(hostile: Browser) -> None:
    def colours() -> tuple[str, str | None]:
        label = hostile.find("#fig-causes svg .role-axis-label text")
        body = hostile.find("body").value_of_css_property("background-color")
        return body, label.get_attribute("fill")

    before = colours()
    hostile.press("#theme")
    hostile.wait(lambda: all(old != new for old, new in zip(before, colours(), strict=True)))
    assert hostile.find("#theme").get_attribute("aria-pressed") == "true"


def test_pictures_carry_their_origin(hostile: Browser) -> None:
    hostile.press("#fig-causes button[data-form=png]")
    png = hostile.downloaded(".png")
    assert png[37:48] == b"iTXtfscost\0"
    hostile.press("#fig-causes button[data-form=svg]")
    svg = hostile.downloaded(".svg").decode()
    assert "<metadata" in svg
    assert '"seed":1' in svg


@pytest.mark.parametrize("size", [DESK, PHONE])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_no_violation(hostile: Browser, size: tuple[int, int], theme: str) -> None:
    hostile.resize(*size)
    if hostile.driver.execute_script("return document.documentElement.dataset.theme") != theme:
        hostile.change_theme()
    for details in hostile.all("details"):
        hostile.driver.execute_script("arguments[0].open = true", details)
    check_accessible(hostile, size[0])
    check_layout(hostile)


def test_the_site_is_used_by_hand(hostile_run: Path, tmp_path: Path) -> None:
    for name in ("monday", "tuesday"):
        shutil.copytree(hostile_run, tmp_path / name)
    browser = Browser(html_text(page(*salvaged(hostile_run))), tmp_path)
    with Site(tmp_path, 0, trust=False) as site:
        Thread(target=site.serve_forever, daemon=True).start()
        try:
            home = site.address.partition("?")[0]
            browser.driver.get(site.address)
            for size in (DESK, PHONE):
                browser.resize(*size)
                check_accessible(browser, size[0])
                check_layout(browser)
            browser.find("input[name=a][value=monday]").click()
            browser.find("input[name=b][value=tuesday]").click()
            browser.find("form[action='/compare'] button").click()
            browser.wait(lambda: "/compare" in browser.driver.current_url)
            check_accessible(browser, PHONE[0])
            check_layout(browser)
            assert "No difference" in browser.find("main").text
            browser.find("a[href='/run/monday/']").click()
            browser.wait(lambda: browser.driver.execute_script(DRAWN))
            elsewhere = [url for url in browser.requests() if not url.startswith(home)]
            assert elsewhere in ([], [browser.opened])
            assert browser.complaints() == []
        finally:
            browser.driver.quit()
            site.shutdown()


PICTURES = Path(__file__).parents[2] / "docs"
COLOURS = """
const [picture, scheme, done] = arguments;
const frame = document.createElement("iframe");
frame.style.colorScheme = scheme;
frame.srcdoc = picture;
frame.onload = () => {
    const fill = (each) => frame.contentWindow.getComputedStyle(each).fill;
    const all = frame.contentDocument.querySelectorAll('svg > rect, text[fill="#000"]');
    const found = new Set([...all].map(fill));
    frame.remove();
    done([...found]);
};
document.body.append(frame);
"""


@pytest.mark.parametrize(
    ("scheme", "paper", "ink"),
    [
        ("light", "rgb(255, 255, 255)", "rgb(0, 0, 0)"),
        ("dark", "rgb(30, 33, 41)", "rgb(221, 221, 221)"),
    ],
)
def test_pictures_of_the_documents_follow_the_page(
    hostile: Browser, scheme: str, paper: str, ink: str
) -> None:
    texts = {path: path.read_text() for path in PICTURES.glob("*/*.svg")}
    drawn = {path: text for path, text in texts.items() if "<metadata>" in text}
    assert len(drawn) > 20
    for path, text in drawn.items():
        found = hostile.driver.execute_async_script(COLOURS, text, scheme)
        assert found == [paper, ink], path
