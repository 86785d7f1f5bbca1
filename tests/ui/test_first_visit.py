"""A newcomer: from an empty server to a finished report, by the keyboard alone."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, Route, expect

from .agent import prony_agent
from .conftest import prony_server, tabbed

# The demo as it is but shorter: what is asked here is the way to the report, not the numbers in it.
_SHORTER = ["measure.runs=5", "measure.repeats=1", "measure.warmup=0"]
_PATIENCE_MS = 180_000


@pytest.mark.slow
def test_a_newcomer_runs_the_demo_from_the_empty_page_to_a_finished_report(
    tmp_path: Path, opened: Callable[[str], Page]
) -> None:
    with prony_server(tmp_path / "server") as url:
        page = opened(url)
        page.goto("/")
        expect(page.get_by_text("prony agent start --server")).to_be_visible()
        with prony_agent(tmp_path / "server", url, is_at_home=True):
            expect(page.get_by_text("One agent is connected and can work.")).to_be_visible(timeout=_PATIENCE_MS)
            page.route("**/api/v1/experiments", _shortened)
            tabbed(page, "Run the demo")
            page.keyboard.press("Enter")
            page.wait_for_url("**/experiments/*")
            expect(page.get_by_role("heading", name="quickstart")).to_be_visible()
            numbers = page.get_by_role("region", name="Numbers of every job")
            expect(numbers.get_by_role("row")).to_have_count(5, timeout=_PATIENCE_MS)
            expect(page.get_by_text("complete", exact=True).first).to_be_visible(timeout=_PATIENCE_MS)
        expect(numbers.get_by_text(re.compile("mobilenet")).first).to_be_visible()
        tabbed(page, "Report")
        page.keyboard.press("Enter")
        page.wait_for_url("**/reports*")
        shown = page.frame_locator("iframe").get_by_text(re.compile("quickstart")).first
        expect(shown).to_be_visible(timeout=_PATIENCE_MS)


def _shortened(route: Route) -> None:
    request = route.request
    if request.method != "POST":
        route.continue_()
        return
    body = json.loads(request.post_data or "{}") | {"overrides": _SHORTER}
    route.continue_(post_data=json.dumps(body))
