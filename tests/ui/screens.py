"""Take the screenshots that the documentation shows: `make screenshots`; of every page, with `--all`.

The server, the agent and the browser are real. Most results are recorded ones with known numbers, so that there are
histories to show; what runs while the pictures are taken is measured here.
"""

from __future__ import annotations

import re
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal

import httpx
from playwright.sync_api import Browser, Page, expect, sync_playwright

from prony.app.local_experiments import LocalExperiments
from prony.cli.demo import open_demo_home
from prony.store.home import Home
from prony.store.store import Store

from . import recorded
from .agent import prony_agent
from .conftest import api as owner_api
from .conftest import login_link, prony_server
from .recorded import Kind, history_ms, record

Scheme = Literal["light", "dark"]
SCHEMES: tuple[Scheme, ...] = ("light", "dark")
_CHANGE = 27
_RUNNING = """name: warm-cache
workload: {kind: model, model: "zoo:tiny", engine: onnxruntime, threads: 1}
matrix: {workload.batch_size: [1, 2, 4, 8]}
measure: {runs: 2000, repeats: 50, isolation: fork}
labels: {team: platform}
"""
_SWEEP = """name: redis
workload: {kind: service, service: redis, options: {operation: mixed, value_size: 100}}
load: {duration: 2s, repeats: 3, slo: {e2e_ms.p99: 0.5}}
matrix: {load.closed.concurrency: [1, 2, 4, 8, 16, 32]}
"""
# What the same work takes on machines of three prices, with two versions of the engine.
_LAB = {"edge-1": (0.05, (9.1, 8.4)), "bench-1": (0.4, (2.5, 2.7)), "big-1": (2.1, (2.2, 1.9))}
_NIGHTLY = """name: nightly-yolo
workload: {kind: model, model: "zoo:tiny-yolov2", engine: onnxruntime}
schedule: {cron: "0 3 * * *"}
"""
# What is shown of each page.
PAGES: dict[str, str] = {
    "overview": "/",
    "run": "/run?example=batch-and-threads.yaml",
    "experiments": "/experiments",
    "experiment": "/experiments/batches040",
    "samples": "/experiments/nightly030?part=samples",
    "running": "/experiments/{running}",
    "compare": "/compare?of=nightly020,nightly030",
    "matrix": "/matrix?ids={lab}&rows=device&columns=version",
    "load": "/load?ids={sweep}",
    "history": "/history/{series}",
    "fleet": "/fleet",
    "schedules": "/schedules",
    "alarms": "/alarms",
    "reports": "/reports?of=batches040",
    "monitoring": "/monitoring",
    "settings": "/settings",
}
# The recorded experiments whose reports are shown, down to their results.
_REPORTS = {"report-models.png": "1rfc1fewx", "report-llm.png": "1rh84ean9k7j"}
_ROOT = Path(__file__).parents[2]
_SETTLED_MS = 1500
_PATIENCE_MS = 60_000


def main(folder: Path, *, is_all: bool = False) -> None:
    wanted = None if is_all else _shown_pictures()
    folder.mkdir(parents=True, exist_ok=True)
    expect.set_options(timeout=_PATIENCE_MS)
    with (
        tempfile.TemporaryDirectory() as name,
        prony_server(Path(name) / "empty") as first,
        _full(Path(name)) as (url, ids),
        sync_playwright() as playwright,
    ):
        found = shutil.which("chromium") or shutil.which("google-chrome")
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        for scheme in SCHEMES:
            pages = {key: path.format(**ids) for key, path in PAGES.items()}
            for address, shown in ((first, {"welcome": "/"}), (url, pages)):
                named = {f"ui-{key}-{scheme}.png": path for key, path in shown.items()}
                _take(
                    browser, scheme, address, {n: p for n, p in named.items() if wanted is None or n in wanted}, folder
                )
        if wanted is None or "ui-phone.png" in wanted:
            _take_phone(browser, url, folder)
        _take_reports(browser, folder)
        browser.close()


def _shown_pictures() -> set[str]:
    """Return the names of the pictures that README.md and the pages under docs/ show."""
    pages = [_ROOT / "README.md", *(_ROOT / "docs").glob("*.md")]
    return {name for page in pages for name in re.findall(r"images/(ui-[\w-]+\.png)", page.read_text())}


@contextmanager
def _full(folder: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """A server with histories, one of which got worse, an agent, a sweep of a Redis, and an experiment that runs."""
    home = folder / "home"
    recorded.BEGIN = datetime.now(UTC) - timedelta(days=42)  # so that the last results are a day old
    with Store.open(Home(home)) as store:
        for place, value in enumerate(history_ms(34, change=_CHANGE)):
            version = "1.20.0" if place < _CHANGE else "1.21.0"
            record(store, place, [value], Kind(engine_version=version, kernel="6.1.0" if place < 15 else "6.5.0"))
        record(store, 40, [2.5, 9.0, 30.0], Kind(name="batches", batches=(1, 4, 16)))
        record(store, 41, [2.7, 9.0, 29.0], Kind(name="batches", batches=(1, 4, 16), engine_version="1.21.0"))
        lab = [
            record(store, 35, [value], Kind(name=f"lab-{device}-{minor}", engine_version=f"1.{minor}.0",
                                            device=device, per_hour=per_hour))
            for device, (per_hour, values) in _LAB.items()
            for minor, value in zip((20, 21), values, strict=True)
        ]  # fmt: skip
    kinds = ("--kinds", "model,service")
    with prony_server(home) as url, prony_agent(folder / "agent", url, "--name", "bench-2", *kinds):
        api = owner_api(url)
        api.post("/schedules", json={"submission": {"text": _NIGHTLY}}).raise_for_status()
        api.post("/alarms", json={"name": "lab", "when": "agent lost"}).raise_for_status()
        while not api.get("/agents", params={"state": "active"}).raise_for_status().json()["items"]:
            time.sleep(0.2)
        sweep = _submitted(api, _SWEEP)
        while api.get(f"/experiments/{sweep}").raise_for_status().json()["experiment"]["ended_at"] is None:
            time.sleep(0.5)
        series = api.get("/series", params={"name": "nightly"}).raise_for_status().json()["items"][0]["id"]
        yield url, {"running": _submitted(api, _RUNNING), "series": series, "sweep": sweep, "lab": ",".join(lab)}


def _submitted(api: httpx.Client, recipe: str) -> str:
    return str(api.post("/experiments", json={"text": recipe}).raise_for_status().json()["experiment"]["id"])


def _take(browser: Browser, scheme: Scheme, url: str, pages: dict[str, str], folder: Path) -> None:
    if not pages:
        return
    context = browser.new_context(viewport={"width": 1280, "height": 860}, base_url=url, color_scheme=scheme)
    page = context.new_page()
    page.goto(login_link(url))
    for name, path in pages.items():
        _picture(page, path, folder / name)
    context.close()


def _take_phone(browser: Browser, url: str, folder: Path) -> None:
    context = browser.new_context(viewport={"width": 390, "height": 844}, base_url=url, device_scale_factor=2)
    page = context.new_page()
    page.goto(login_link(url))
    _picture(page, "/", folder / "ui-phone.png")
    context.close()


def _take_reports(browser: Browser, folder: Path) -> None:
    page = browser.new_page(viewport={"width": 1280, "height": 860})
    with open_demo_home(None) as home, Store.open(home) as store:
        for name, experiment in _REPORTS.items():
            page.set_content(LocalExperiments(store).report(experiment).decode())
            end = page.locator("#results").bounding_box()
            assert end is not None
            page.screenshot(
                path=folder / name, full_page=True,
                clip={"x": 0, "y": 0, "width": 1280, "height": end["y"] + end["height"] + 24},
            )  # fmt: skip
    page.close()


def _picture(page: Page, path: str, to: Path) -> None:
    page.goto(path)
    expect(page.locator("main h1")).to_be_visible()
    page.wait_for_timeout(_SETTLED_MS)  # what is typed in is checked after a pause, and that is no loading yet
    expect(page.locator(".loading")).to_have_count(0)
    for place in page.locator("figure.chart [role=img]").all():
        expect(place.locator("canvas").first).to_be_visible()
    if page.locator("iframe").count():
        expect(page.frame_locator("iframe").locator("h1").first).to_be_visible()
    page.wait_for_timeout(_SETTLED_MS)  # what is on a canvas nobody can ask
    page.screenshot(path=to)


if __name__ == "__main__":
    main(Path(sys.argv[1]), is_all="--all" in sys.argv)
