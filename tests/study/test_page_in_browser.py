"""The page of a study in the distribution's Chromium."""

from pathlib import Path

import pytest
from tests.report.browser import DESK, PHONE, Browser, check_accessible, check_layout

from fscost.report.html import html_text
from fscost.view.page import page

from .test_page import Reported, doubled

pytestmark = pytest.mark.browser


def test_claims_are_accessible_and_drawn(reported: Reported, tmp_path: Path) -> None:
    text = html_text(page(reported("journal-tax", doubled).results))
    browser = Browser(text, tmp_path)
    try:
        assert browser.all("#fig-claim-1 svg")
        for size in (DESK, PHONE):
            browser.resize(*size)
            for details in browser.all("details"):
                browser.driver.execute_script("arguments[0].open = true", details)
            check_accessible(browser, size[0])
            check_layout(browser)
        # The browser still has a phone's width: what was measured needs no scrolling.
        hidden = browser.driver.execute_script(
            "return [...document.querySelectorAll('#study .texts th')].filter((th) =>"
            " th.innerText === 'measured' && th.getBoundingClientRect().right >"
            " th.closest('.scroll').getBoundingClientRect().right).length"
        )
        assert hidden == 0
        assert browser.requests() == [browser.driver.current_url]
        assert browser.complaints() == []
    finally:
        browser.driver.quit()
