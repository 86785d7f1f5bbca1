"""The page of a device in a real browser: what it does now, part by part, and the way there and back."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from .agent import enrol_device
from .conftest import Opened, api, prony_server


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with prony_server(tmp_path_factory.mktemp("devices")) as address:
        with api(address) as client:
            enrol_device(client, "rack-7")
        yield address


def test_a_device_is_found_from_the_fleet_and_shows_its_readings(opened: Opened, url: str) -> None:
    page = opened(url)
    page.goto("/fleet")
    page.get_by_role("link", name="rack-7", exact=True).first.click()
    page.wait_for_url("**/fleet/rack-7")
    expect(page.get_by_role("heading", level=1)).to_contain_text("rack-7")
    now = page.get_by_role("list", name="rack-7 now")
    expect(now).to_contain_text("memory used")
    expect(now).to_contain_text("6140 MiB")
    page.get_by_label("Part").select_option(label="GPU 0: H200")
    expect(now).to_contain_text("655 W")
    expect(page.get_by_role("img", name="GPU 0: H200 of rack-7").locator("canvas").first).to_be_visible()
    page.get_by_role("link", name="All agents").click()
    expect(page.get_by_role("heading", name="Fleet")).to_be_visible()


def test_a_new_reading_appears_without_a_reload(opened: Opened, url: str) -> None:
    page = opened(url)
    page.goto("/fleet/rack-7?part=gpu0")
    now = page.get_by_role("list", name="rack-7 now")
    expect(now).to_contain_text("W")
    with api(url) as client:
        beat = {"incarnation": "i1", "readings": {"gpu0_power_w": 123.0}}
        client.post("/agents/rack-7/heartbeat", json=beat).raise_for_status()
    expect(now).to_contain_text("123 W")
