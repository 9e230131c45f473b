"""A page in the distribution's headless Chromium, opened from disk."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.wait import WebDriverWait

AXE = Path(__file__).with_name("axe") / "axe.min.js"
LAYOUT = Path(__file__).with_name("layout.js")
PHONE, DESK = (390, 844), (1280, 1000)
DRAWN = "return document.documentElement.dataset.drawn"


class Service(webdriver.ChromeService):
    """A chromedriver that may take longer to start than selenium waits, on a busy host."""

    def start(self) -> None:
        self._is_starting = True
        super().start()
        self._is_starting = False

    def is_connectable(self) -> bool:
        end = time.monotonic() + 120
        while not (found := super().is_connectable()) and self._is_starting:
            if self.process.poll() is not None or time.monotonic() > end:
                break
            time.sleep(0.1)
        return found


class Browser:
    """A page in headless Chromium, with all requests it made and all errors it logged."""

    def __init__(self, text: str, place: Path) -> None:
        options = webdriver.ChromeOptions()
        options.binary_location = "/usr/bin/chromium"
        for argument in ("--headless=new", "--no-sandbox", "--disable-gpu"):
            options.add_argument(argument)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        service = Service("/usr/bin/chromedriver")
        self.driver = webdriver.Chrome(options=options, service=service)
        self.driver.set_script_timeout(120)
        self.downloads = place / "downloads"
        self.downloads.mkdir()
        download = {"behavior": "allow", "downloadPath": str(self.downloads)}
        self._tell("Browser.setDownloadBehavior", **download)
        self.resize(*DESK)
        file = place / "page.html"
        file.write_bytes(text.encode("utf-8", "backslashreplace"))
        self.opened = file.as_uri()
        self.driver.get(self.opened)
        self.wait(lambda: self.driver.execute_script(DRAWN))

    def resize(self, width: int, height: int) -> None:
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self._tell("Emulation.setDeviceMetricsOverride", **metrics)

    def settle(self) -> None:
        """Wait until the charts have the size of the window: Vega draws them in later tasks."""
        self.driver.execute_async_script(
            "const done = arguments[0];"
            "const all = typeof views === 'undefined' ? [] : [...views.values()];"
            "requestAnimationFrame(() => Promise.all(all.map((view) => view.runAsync()))"
            ".then(() => requestAnimationFrame(() => done())))"
        )

    def _tell(self, command: str, **values: Any) -> None:
        self.driver.execute_cdp_cmd(command, values)

    def wait(self, until: Callable[[], Any]) -> Any:
        return WebDriverWait(self.driver, 120).until(lambda _: until())

    def find(self, selector: str) -> WebElement:
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def all(self, selector: str) -> list[WebElement]:
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def press(self, selector: str) -> None:
        """Focus an element and press it with the keyboard alone."""
        self.find(selector).send_keys("\n")

    def change_theme(self) -> None:
        """Press the button of the theme, and wait until all is drawn again."""
        self.driver.execute_script("delete document.documentElement.dataset.drawn")
        self.press("#theme")
        self.wait(lambda: self.driver.execute_script(DRAWN))

    def downloaded(self, ending: str) -> bytes:
        """Return the content of the next downloaded file with this ending."""

        def found() -> Path | None:
            return next(self.downloads.glob(f"*{ending}"), None)

        path = self.wait(found)
        content = path.read_bytes()
        path.unlink()
        return content

    def complaints(self) -> list[str]:
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def requests(self) -> list[str]:
        """Return the addresses that the page requested, except itself and objects it created."""
        events = [json.loads(entry["message"]) for entry in self.driver.get_log("performance")]
        urls = [
            event["message"]["params"]["request"]["url"]
            for event in events
            if event["message"]["method"] == "Network.requestWillBeSent"
        ]
        return [url for url in urls if not url.startswith(("data:", "blob:"))]


def check_layout(browser: Browser) -> None:
    """Check that nothing is cut off or covered, in all parts of the page."""
    browser.driver.execute_script(
        "for (const e of document.querySelectorAll('details')) e.open = true"
    )
    browser.settle()
    found = browser.driver.execute_async_script(LAYOUT.read_text())
    assert found == [], "\n".join(found)


def check_accessible(browser: Browser, width: int) -> None:
    found = browser.driver.execute_script("return document.documentElement.scrollWidth")
    assert found <= width, "nothing but tables may scroll sideways"
    browser.driver.execute_script(AXE.read_text())
    violations = browser.driver.execute_async_script(
        "const done = arguments[0]; axe.run().then((found) => done(found.violations.map("
        "(each) => `${each.id}: ${each.nodes.map((node) => node.html).slice(0, 3)}`)))"
    )
    assert violations == [], violations
