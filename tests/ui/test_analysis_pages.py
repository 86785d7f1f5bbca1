"""Pages that compare, and tell histories: a person follows a regression to its cause, and sends the view on."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from prony.store.home import Home
from prony.store.store import Store

from .conftest import prony_server
from .recorded import Kind, history_ms, record

Opened = Callable[[str], Page]
_CHANGE = 27


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server with a benchmark that got slower, and one with three batch sizes that was measured twice."""
    home = tmp_path_factory.mktemp("analysed")
    with Store.open(Home(home)) as store:
        for place, value in enumerate(history_ms(34, change=_CHANGE)):
            version = "1.20.0" if place < _CHANGE else "1.21.0"
            record(store, place, [value], Kind(engine_version=version, kernel="6.1.0" if place < 15 else "6.5.0"))
        batches = Kind(name="batches", batches=(1, 4, 16))
        record(store, 40, [2.5, 9.0, 30.0], batches)
        record(store, 41, [2.7, 9.0, 24.0], Kind(name="batches", batches=(1, 4, 16), engine_version="1.21.0"))
    with prony_server(home) as address:
        yield address


def test_two_results_are_chosen_compared_and_their_difference_explained(opened: Opened, url: str) -> None:
    page = opened(url)
    page.goto("/compare")
    expect(page.get_by_role("heading", name="Choose two experiments")).to_be_visible()
    for name in ("nightly020", "nightly030"):
        page.get_by_label("Experiments or jobs").fill(name)
        page.get_by_label("Experiments or jobs").press("Enter")
        expect(page.get_by_role("button", name=f"Remove {name}")).to_be_visible()
    line = page.get_by_role("row", name=re.compile("^Inference p50"))
    expect(line).to_contain_text("regression")
    expect(line).to_contain_text(re.compile(r"\+\d+\.\d %\s*\[\+\d+\.\d %, \+\d+\.\d %\]"))
    differing = page.get_by_role("region", name="What differs between the two")
    expect(differing).to_contain_text("1.20.0")
    expect(differing).to_contain_text("1.21.0")
    expect(page.get_by_role("img", name=re.compile("Distribution of Inference"))).to_be_visible()


def test_an_address_brings_back_the_whole_view(opened: Opened, url: str) -> None:
    page = opened(url)
    page.goto("/compare?of=batches040,batches041")
    page.get_by_label(re.compile("pairs of jobs")).select_option(label="improvement · batch_size=16")
    page.get_by_label("Shown as").select_option("ecdf")
    page.get_by_label("Smallest change that matters").fill("20%")
    page.get_by_label("Smallest change that matters").press("Enter")
    expect(page.get_by_role("heading", name="batch_size=16")).to_be_visible()
    page.wait_for_url(re.compile("threshold"))
    again = opened(url)
    again.goto(page.url)
    expect(again.get_by_role("heading", name="batch_size=16")).to_be_visible()
    expect(again.get_by_label("Shown as")).to_have_value("ecdf")
    expect(again.get_by_label("Smallest change that matters")).to_have_value("20%")


def test_what_cannot_be_compared_is_said_with_what_to_do(opened: Opened, url: str) -> None:
    page = opened(url)
    page.goto("/compare?of=nightly020,batches040")
    expect(page.get_by_role("alert")).to_be_visible()


def test_a_regression_appears_on_the_overview_and_leads_to_its_history(opened: Opened, url: str) -> None:
    page = opened(url)
    page.goto("/")
    told = page.get_by_text(re.compile(r"Inference p50 \+8.*on bench-1"))
    expect(told).to_be_visible(timeout=60_000)
    page.locator("main").get_by_role("link", name="nightly", exact=True).first.click()
    expect(page.get_by_role("img", name="History of nightly on bench-1")).to_be_visible()


def test_a_regression_is_followed_acknowledged_and_its_baseline_pinned(opened: Opened, url: str) -> None:
    page = opened(url)
    page.goto("/history")
    change = page.get_by_role("listitem").filter(has_text="got worse")
    expect(change).to_contain_text("from onnxruntime 1.20.0 to onnxruntime 1.21.0", timeout=60_000)
    change.get_by_role("link", name=re.compile("nightly")).click()
    expect(page.get_by_role("img", name="History of nightly on bench-1")).to_be_visible()
    page.get_by_role("button", name="Show as a table").click()
    expect(page.get_by_role("row", name=re.compile("regression, found"))).to_contain_text(f"nightly{_CHANGE:03d}-001")
    page.get_by_role("button", name="Pin a result").click()
    page.get_by_label("Reason").fill("release")
    page.get_by_role("button", name="Pin it").click()
    expect(page.get_by_text("release")).to_be_visible()
    page.get_by_role("button", name="Acknowledge").click()
    page.get_by_label("Reason").fill("the new tokenizer")
    page.get_by_role("button", name="Acknowledge it").click()
    expect(page.get_by_text("the new tokenizer")).to_be_visible()
    page.goto("/history")
    expect(page.get_by_role("heading", name="No open changes")).to_be_visible()


def test_configurations_stand_in_rows_and_columns_of_ones_choosing(opened: Opened, url: str) -> None:
    page = opened(url)
    page.goto("/matrix?ids=batches040,batches041")
    page.get_by_label("Rows").fill("batch")
    page.get_by_label("Rows").press("Enter")
    page.get_by_label("Columns").fill("version")
    page.get_by_label("Columns").press("Enter")
    table = page.get_by_role("region", name="Inference p50 by batch and version")
    expect(table.get_by_role("row")).to_have_count(4)
    expect(table.get_by_role("row").nth(3)).to_contain_text("ms")


def test_a_report_is_read_in_a_frame_and_taken_away(opened: Opened, url: str, tmp_path: Path) -> None:
    page = opened(url)
    page.goto("/reports?of=batches040")
    expect(page.frame_locator("iframe").get_by_role("heading", name="batches", exact=True)).to_be_visible(
        timeout=60_000
    )
    with page.expect_download() as download:
        page.get_by_role("button", name="CSV").click()
    download.value.save_as(tmp_path / "report.csv")
    assert "inference_ms" in (tmp_path / "report.csv").read_text()
