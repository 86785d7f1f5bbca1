"""Real runs of every kind as their pages show them: what answers first, what is void, and the way on from a list."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from .conftest import Opened
from .showcase import Showcase, go, open_showcase


def test_a_language_model_opens_with_prefill_and_decode_over_batch(opened: Opened, shown: Showcase) -> None:
    page = opened(shown.url)
    go(page, shown, "/experiments/{llm}")
    answer = page.get_by_role("region", name="Answer")
    for name in ("Decode over batch", "Prefill over batch"):
        expect(answer.get_by_role("img", name=name).locator("canvas").first).to_be_visible()


def test_void_numbers_are_grey_below_one_banner(opened: Opened, shown: Showcase) -> None:
    page = opened(shown.url)
    go(page, shown, "/experiments/{hardware}")
    expect(page.get_by_role("status").filter(has_text="Void: 3 of 3 jobs")).to_have_count(1)
    numbers = page.get_by_role("region", name="Numbers of every job")
    expect(numbers.locator(".greyed .quantity")).to_have_count(3)
    grey = numbers.locator(".greyed .quantity b").first.evaluate("one => getComputedStyle(one).color")
    assert grey == numbers.get_by_role("columnheader").first.evaluate("one => getComputedStyle(one).color")


def test_a_duet_opens_with_what_each_headline_came_to(opened: Opened, shown: Showcase) -> None:
    page = opened(shown.url)
    go(page, shown, "/experiments/{duet}")
    came_to = page.get_by_role("list", name="What each headline came to").get_by_role("listitem")
    expect(came_to).to_have_count(3)
    expect(came_to.first).to_contain_text(re.compile(r"^inconclusiveInference p50 is inconclusive, \+10\.0 % "))
    sides, answer = page.get_by_role("heading", name="The two sides"), page.get_by_role("region", name="Answer")
    (first, second) = (one.bounding_box() for one in (sides, answer))
    assert first is not None
    assert second is not None
    assert first["y"] < second["y"]


def test_an_experiment_that_failed_stands_on_the_overview_with_its_reason(opened: Opened, shown: Showcase) -> None:
    page = opened(shown.url)
    go(page, shown, "/")
    trouble = page.get_by_role("listitem").filter(has_text="nightly-index")
    expect(trouble).to_contain_text("no space left on the device")


@pytest.mark.slow
def test_ticked_rows_are_compared_put_in_a_matrix_and_deleted(opened: Opened, tmp_path: Path) -> None:
    with open_showcase(tmp_path / "own") as own:
        tick_rows(opened(own.url), own)


def tick_rows(page: Page, shown: Showcase) -> None:
    for way, address in (("Compare", r"/compare\?of=\w+%2C\w+$"), ("Matrix", r"/matrix\?ids=\w+%2C\w+$")):
        go(page, shown, "/experiments")
        for place in range(2):
            page.get_by_label("Choose nightly").nth(place).check()
        page.locator("main").get_by_role("link", name=way, exact=True).click()
        expect(page).to_have_url(re.compile(address))
    go(page, shown, "/experiments")
    page.get_by_label("Choose chat-load").check()
    page.locator("main").get_by_role("button", name="Delete", exact=True).click()
    page.get_by_role("dialog").get_by_role("button", name="Delete it").click()
    expect(page.get_by_role("link", name="chat-load")).to_have_count(0)


def test_compare_begins_with_the_previous_run_of_the_same_recipe(opened: Opened, shown: Showcase) -> None:
    page = opened(shown.url)
    go(page, shown, "/experiments/nightly020")
    page.locator("main").get_by_role("link", name="Compare", exact=True).click()
    expect(page).to_have_url(re.compile(r"/compare\?of=nightly019%2Cnightly020$"))
    change = page.get_by_role("columnheader", name="Change")
    expect(change).to_have_attribute("title", re.compile("every candidate run by every baseline run"))
