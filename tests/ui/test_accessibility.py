"""Every page, light and dark, as axe sees it: nothing that keeps a person out."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from lanes import THOROUGH, only_slowly
from prony.store.home import Home
from prony.store.store import Store
from servers.needs import lack

from .agent import enrol_device
from .conftest import Opened, api, open_windows, prony_server
from .recorded import Kind, history_ms, record

UI = Path(__file__).parents[2] / "ui"
# What each address of the application is visited as.
PAGES = {
    "/": "/",
    "/experiments": "/experiments",
    "/experiments/$experimentId": "/experiments/batches040",
    "/import": "/import",
    "/run": "/run?example=quickstart",
    "/load": "/load",
    "/fleet": "/fleet",
    "/fleet/$agentId": "/fleet/rack-7",
    "/monitoring": "/monitoring",
    "/compare": "/compare?of=batches040,batches041",
    "/matrix": "/matrix?ids=batches040,batches041&rows=batch&columns=version",
    "/history": "/history",
    "/history/$seriesId": "/history/{series}",
    "/schedules": "/schedules",
    "/schedules/$scheduleId": "/schedules/nightly",
    "/alarms": "/alarms",
    "/alarms/$alarmId": "/alarms/ops",
    "/reports": "/reports?of=batches040",
    "/settings": "/settings",
}
# The other tabs of the pages that have some.
PARTS = [
    f"{page}?part={part}"
    for page, parts in {
        "/experiments/batches040": "jobs load samples details telemetry logs files environment recipe",
        "/fleet": "abilities queue jobs failures targets",
        "/settings": "trail store look about",
    }.items()
    for part in parts.split()
]
# The short form looks at these in the dark: between them they have every part that pages are made of.
_ALSO_DARK = ("/", "/experiments/$experimentId", "/run", "/fleet", "/compare", "/history/$seriesId")
_WITH_TABS = {one.partition("?")[0] for one in PARTS}
_RECIPE = 'name: nightly\nworkload: {kind: model, model: "zoo:tiny", engine: onnxruntime}\n'


@cache
def axe() -> str:
    place = UI / "node_modules" / "axe-core" / "axe.min.js"
    if not place.is_file():
        lack("chromium", "axe is not installed: make ui")
    return place.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server that has something to show on every page."""
    home = tmp_path_factory.mktemp("shown")
    with Store.open(Home(home)) as store:
        for place, value in enumerate(history_ms(24, change=18)):
            record(store, place, [value])
        for place in (40, 41):
            record(
                store, place, [2.5, 9.0, 30.0], Kind(name="batches", batches=(1, 4, 16), engine_version=f"1.{place}.0")
            )
    with prony_server(home) as address, api(address) as client:
        for path, body in (
            ("/schedules", {"submission": {"text": _RECIPE}, "cron": "0 3 * * *"}),
            ("/alarms", {"name": "ops", "when": "experiment failed"}),
            ("/tokens", {"name": "ann", "role": "viewer"}),
        ):
            client.post(path, json=body).raise_for_status()
        enrol_device(client, "rack-7")
        yield address


def visited(page: Page, address: str, url: str) -> None:
    """Go there and wait until it shows what it has."""
    if "{series}" in address:
        with api(url) as client:
            series = client.get("/series", params={"name": "nightly"}).json()["items"][0]["id"]
        address = address.format(series=series)
    page.goto(address)
    expect(page.locator("main h1")).to_be_visible()
    expect(page.locator("main .loading")).to_have_count(0, timeout=60_000)


def faults(page: Page, *rules: str) -> list[str]:
    """Return what axe calls serious or worse, each with where it is."""
    only = {"runOnly": {"type": "rule", "values": list(rules)}} if rules else {}
    if not page.evaluate("'axe' in window"):
        page.evaluate(axe())
    found: list[dict[str, Any]] = page.evaluate(
        "async (only) => (await axe.run(document, {resultTypes: ['violations'], iframes: false, ...only})).violations",
        only,
    )
    return [
        f"{one['id']}: {node['html'][:160]}"
        for one in found
        if one["impact"] in ("serious", "critical")
        for node in one["nodes"]
    ]


@dataclass
class Visits:
    """What was found: by the pages' addresses, and which of them are too wide for a phone."""

    faults: dict[str, list[str]] = field(default_factory=dict)
    too_wide: list[str] = field(default_factory=list)


@pytest.fixture(scope="module")
def visits(browser: Browser, url: str) -> Visits:
    """Go to every page once, in one window: on a phone, then on a desk, light and dark."""
    found = Visits()
    with open_windows(browser) as open_window:
        page = open_window(url)
        for path, address in (PAGES | {one: one for one in PARTS if THOROUGH}).items():
            page.emulate_media(color_scheme="light")
            page.set_viewport_size({"width": 390, "height": 844})
            visited(page, address, url)
            if page.evaluate("document.documentElement.scrollWidth > innerWidth"):
                found.too_wide.append(path)
            page.set_viewport_size({"width": 1280, "height": 900})
            expect(page.locator("main .loading")).to_have_count(0)
            found.faults[path] = faults(page)
            if THOROUGH or path in _ALSO_DARK:
                page.emulate_media(color_scheme="dark")
                found.faults[path] += faults(page, "color-contrast")
    return found


@pytest.mark.parametrize("path", [*PAGES, *only_slowly(*PARTS)])
def test_axe_finds_nothing_serious(path: str, visits: Visits) -> None:
    assert visits.faults[path] == []


@pytest.mark.parametrize(
    "address", [*sorted(_WITH_TABS), *only_slowly(*(one for one in PAGES.values() if one not in _WITH_TABS))]
)
def test_a_page_opens_though_its_address_names_a_part_that_there_is_not(opened: Opened, url: str, address: str) -> None:
    page = opened(url)
    visited(page, f"{address}{'&' if '?' in address else '?'}part=nonsense", url)
    expect(page.get_by_role("tab", selected=True)).to_have_count(1 if page.get_by_role("tab").count() else 0)


def test_every_tab_is_visited() -> None:
    for feature, page in (("experiment", "/experiments/batches040"), ("fleet", "/fleet"), ("settings", "/settings")):
        text = (UI / "src" / "features" / feature / "search.ts").read_text(encoding="utf-8")
        (parts,) = re.findall(r"PARTS = \[([^\]]*)\]", text)
        first, *others = re.findall(r'"(\w+)"', parts)
        assert {f"{page}?part={one}" for one in others} == {one for one in PARTS if one.startswith(f"{page}?")}, first


def test_every_page_is_visited() -> None:
    routes = (UI / "src" / "app" / "routes.tsx").read_text(encoding="utf-8")
    assert set(re.findall(r'path: "(/[^"]*)"', routes)) == set(PAGES)


@pytest.mark.parametrize("path", [*PAGES, *only_slowly(*PARTS)])
def test_a_phone_shows_every_page_without_scrolling_sideways(path: str, visits: Visits) -> None:
    assert path not in visits.too_wide
