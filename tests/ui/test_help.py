"""The documentation in a real browser: from a server under /help, and from the package's folder."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from prony.app import documentation
from servers.needs import lack

from .conftest import Opened, prony_server


@pytest.fixture(autouse=True)
def _site() -> None:
    if not documentation.is_built():
        lack("docs", "the documentation is not built: make docs")


def search_and_open(page: Page) -> None:
    page.get_by_role("searchbox").fill("canary")
    results = page.get_by_role("region", name="Search results")
    expect(results.get_by_role("link").first).to_be_visible()
    expect(results).to_contain_text("canary")
    results.get_by_role("link").first.click()
    expect(page.locator("main")).to_contain_text("canary")


def test_help_is_found_from_the_menu_and_its_search_finds_a_word(tmp_path: Path, opened: Opened) -> None:
    with prony_server(tmp_path / "server") as url:
        page = opened(url)
        page.goto("/")
        page.get_by_role("link", name="Help").click()
        page.wait_for_url("**/help/index.html")
        for part in ("Start here", "How to", "Reference", "Understanding"):
            expect(page.get_by_role("navigation", name="Pages").get_by_text(part, exact=True)).to_be_visible()
        search_and_open(page)


def test_the_search_works_without_a_server(browser: Browser) -> None:
    page = browser.new_context().new_page()
    page.goto(documentation.find_page("").as_uri())
    search_and_open(page)
    page.context.close()
