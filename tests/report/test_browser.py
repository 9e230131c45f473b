"""The page in the distribution's Chromium, opened from disk."""

import csv
import json
import shutil
from collections.abc import Callable, Iterator
from io import StringIO
from pathlib import Path
from threading import Thread
from typing import Any

import pyarrow.parquet as pq
import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.wait import WebDriverWait

from fscost.report.html import html_text
from fscost.report.site import Site
from fscost.results import SAMPLES, salvaged
from fscost.view.page import page

AXE = Path(__file__).with_name("axe") / "axe.min.js"
PHONE, DESK = (390, 844), (1440, 1000)
DRAWN = "return document.documentElement.dataset.drawn"

pytestmark = pytest.mark.browser


class Browser:
    """A page in headless Chromium, and all that it asked for and complained of."""

    def __init__(self, folder: Path, place: Path) -> None:
        options = webdriver.ChromeOptions()
        options.binary_location = "/usr/bin/chromium"
        for argument in ("--headless=new", "--no-sandbox", "--disable-gpu"):
            options.add_argument(argument)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        service = webdriver.ChromeService("/usr/bin/chromedriver")
        self.driver = webdriver.Chrome(options=options, service=service)
        self.driver.set_script_timeout(120)
        self.downloads = place / "downloads"
        self.downloads.mkdir()
        download = {"behavior": "allow", "downloadPath": str(self.downloads)}
        self._tell("Browser.setDownloadBehavior", **download)
        self.resize(*DESK)
        file = place / "page.html"
        file.write_bytes(html_text(page(*salvaged(folder))).encode("utf-8", "backslashreplace"))
        self.opened = file.as_uri()
        self.driver.get(self.opened)
        self.wait(lambda: self.driver.execute_script(DRAWN))

    def resize(self, width: int, height: int) -> None:
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self._tell("Emulation.setDeviceMetricsOverride", **metrics)

    def _tell(self, command: str, **values: Any) -> None:
        self.driver.execute_cdp_cmd(command, values)

    def wait(self, until: Callable[[], Any]) -> Any:
        return WebDriverWait(self.driver, 120).until(lambda _: until())

    def find(self, selector: str) -> WebElement:
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def all(self, selector: str) -> list[WebElement]:
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def press(self, selector: str) -> None:
        """By the keyboard alone."""
        self.find(selector).send_keys("\n")

    def downloaded(self, ending: str) -> bytes:
        """The next file with this ending."""

        def found() -> Path | None:
            return next(self.downloads.glob(f"*{ending}"), None)

        path = self.wait(found)
        content = path.read_bytes()
        path.unlink()
        return content

    def complaints(self) -> list[str]:
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def requests(self) -> list[str]:
        """Addresses that the page asked for, other than itself and what it made itself."""
        events = [json.loads(entry["message"]) for entry in self.driver.get_log("performance")]
        urls = [
            event["message"]["params"]["request"]["url"]
            for event in events
            if event["message"]["method"] == "Network.requestWillBeSent"
        ]
        return [url for url in urls if not url.startswith(("data:", "blob:"))]


def opened(folder: Path, place: Path) -> Iterator[Browser]:
    browser = Browser(folder, place)
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


def check_accessible(browser: Browser, width: int) -> None:
    found = browser.driver.execute_script("return document.documentElement.scrollWidth")
    assert found <= width, "nothing but tables may scroll sideways"
    browser.driver.execute_script(AXE.read_text())
    violations = browser.driver.execute_async_script(
        "const done = arguments[0]; axe.run().then((found) => done(found.violations.map("
        "(each) => `${each.id}: ${each.nodes.map((node) => node.html).slice(0, 3)}`)))"
    )
    assert violations == []


@pytest.mark.parametrize("size", [DESK, PHONE])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_no_violation(hostile: Browser, size: tuple[int, int], theme: str) -> None:
    hostile.resize(*size)
    if hostile.driver.execute_script("return document.documentElement.dataset.theme") != theme:
        hostile.press("#theme")
        hostile.wait(lambda: hostile.driver.execute_script(DRAWN))
    for details in hostile.all("details"):
        hostile.driver.execute_script("arguments[0].open = true", details)
    check_accessible(hostile, size[0])


def test_the_site_is_used_by_hand(hostile_run: Path, tmp_path: Path) -> None:
    for name in ("monday", "tuesday"):
        shutil.copytree(hostile_run, tmp_path / name)
    browser = Browser(hostile_run, tmp_path)
    with Site(tmp_path, 0, trust=False) as site:
        Thread(target=site.serve_forever, daemon=True).start()
        try:
            browser.driver.get(site.address)
            for size in (DESK, PHONE):
                browser.resize(*size)
                check_accessible(browser, size[0])
            browser.find("input[name=a][value=monday]").click()
            browser.find("input[name=b][value=tuesday]").click()
            browser.find("form[action='/compare'] button").click()
            browser.wait(lambda: "/compare" in browser.driver.current_url)
            check_accessible(browser, PHONE[0])
            assert "No difference" in browser.find("main").text
            browser.find("a[href='/run/monday/']").click()
            browser.wait(lambda: browser.driver.execute_script(DRAWN))
            elsewhere = [url for url in browser.requests() if not url.startswith(site.address)]
            assert elsewhere in ([], [browser.opened])
            assert browser.complaints() == []
        finally:
            browser.driver.quit()
            site.shutdown()
