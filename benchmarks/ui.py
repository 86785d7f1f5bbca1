"""The web pages' own cost, in headless Chromium against a real server: what is loaded first, when it is seen, lists.

Bounds: everything of the first load under 200 KB compressed; the largest contentful paint on loopback under 1 s; a page
of a listing of 10,000 experiments under 200 ms at the server, and the list sorted anew under 200 ms from the click to
the rows; no frame over 200 ms while one scrolls through the list; the renderer of a page that follows 50 running jobs
under 5 % of a core.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import httpx
from playwright.sync_api import Browser, Page, sync_playwright

from benchmarks.bench import scratch
from benchmarks.fleet_filled import JOBS_EACH, fill
from benchmarks.fleet_ground import prony_server, recipe, say_machine
from benchmarks.ui_live import JOBS, renderer_share, reporting_jobs

EXPERIMENTS = 10_000
ASKED = 20
OPENED = 5
SCREENS = 60
# What the page itself measures: its largest paint, and each gap between two frames while it scrolls.
_PAINT = """() => new Promise((resolve) => {
  new PerformanceObserver((list) => resolve(list.getEntries().at(-1).startTime))
    .observe({type: 'largest-contentful-paint', buffered: true});
})"""
_SCROLL = """async (screens) => {
  const frame = document.querySelector('main .scroll');
  const gaps = [];
  let last = await new Promise(requestAnimationFrame);
  for (let step = 0; step < screens; step++) {
    frame.scrollTop += frame.clientHeight;
    const now = await new Promise(requestAnimationFrame);
    gaps.push(now - last);
    last = now;
  }
  return gaps;
}"""
_SORT = """async () => {
  const first = () => document.querySelector('main .scroll tbody tr a')?.href;
  const before = first();
  const begun = performance.now();
  document.querySelector('main th[aria-sort=descending] button').click();
  while (first() === before || first() === undefined) await new Promise(requestAnimationFrame);
  return performance.now() - begun;
}"""
# The pages that show what runs.
FOLLOWED = {"its experiment": "/experiments/{}", "its jobs": "/experiments/{}?part=jobs", "the overview": "/",
            "the list": "/experiments", "the fleet": "/fleet", "the monitoring": "/monitoring"}  # fmt: skip


@dataclass(frozen=True)
class Figure:
    name: str
    value: float
    bound: float
    unit: str

    @property
    def is_held(self) -> bool:
        return self.value < self.bound

    def __str__(self) -> str:
        verdict = "held" if self.is_held else "MISSED"
        return f"{self.name:<58} {self.value:>9.1f} {self.unit:<3} {'< ' + format(self.bound, '.0f'):>8}  {verdict}"


def first_load_kb(browser: Browser, url: str) -> float:
    """Return how much comes over the wire before the first page is whole: page, scripts, styles, answers."""
    page = browser.new_context().new_page()
    got: list[int] = []
    page.on("requestfinished", lambda request: got.append(request.sizes()["responseBodySize"]))
    _open(page, url)
    page.context.close()
    return sum(got) / 1000


def paint_ms(browser: Browser, url: str) -> float:
    """Return the median of the largest contentful paint over fresh windows, each with an empty cache."""
    paints = []
    for _ in range(OPENED):
        page = browser.new_context(viewport={"width": 1280, "height": 900}).new_page()
        _open(page, url)
        paints.append(float(page.evaluate(_PAINT)))
        page.context.close()
    return median(paints)


def _open(page: Page, url: str) -> None:
    page.goto(url)
    page.locator("main h1").wait_for()
    page.locator("main .loading").first.wait_for(state="hidden")


def listing_ms(url: str, path: str) -> float:
    """Return the median time of one page of a list, over a connection that stays."""
    with httpx.Client(base_url=url) as client:
        client.get(path).raise_for_status()
        return median(_timed(lambda: client.get(path).raise_for_status()) for _ in range(ASKED)) * 1000


def _timed(work: Callable[[], Any]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def longest_frame_ms(browser: Browser, url: str) -> float:
    """Return the longest gap between two frames while somebody scrolls through the list."""
    page = browser.new_context(viewport={"width": 1280, "height": 900}).new_page()
    page.goto(f"{url}/experiments")
    page.locator("main .scroll tbody tr").nth(20).wait_for()
    gaps: list[float] = page.evaluate(_SCROLL, SCREENS)
    page.context.close()
    return max(gaps)


def sort_ms(browser: Browser, url: str) -> float:
    """Return the median time from a click on a heading of the list to the rows in their new order."""
    taken = []
    for _ in range(OPENED):
        page = browser.new_context(viewport={"width": 1280, "height": 900}).new_page()
        page.goto(f"{url}/experiments")
        page.locator("main .scroll tbody tr").nth(20).wait_for()
        taken.append(float(page.evaluate(_SORT)))
        page.context.close()
    return median(taken)


def measure_live(browser: Browser, folder: Path) -> Iterator[Figure]:
    """Follow jobs that report to a server of their own, so that nothing but them is in its queue."""
    with prony_server(folder / "live") as server, reporting_jobs(server.url, folder / "agents") as experiment_id:
        for name, path in FOLLOWED.items():
            share = renderer_share(browser, server.url + path.format(experiment_id))
            yield Figure(f"renderer that follows {JOBS} jobs: {name}", share, 5, "%")


def filled(home: Path, url: str, experiments: int) -> None:
    """Have the server's database hold so many experiments."""
    with httpx.Client(base_url=f"{url}/api/v1") as client:
        made = [client.post("/experiments", json=recipe(name, 2)).raise_for_status().json() for name in "ab"]
        ended, waiting = (one["experiment"]["id"] for one in made)
        client.post(f"/experiments/{ended}/cancel").raise_for_status()
    # It counts in jobs, of experiments that have more of them than these two.
    fill(home, "", ended, waiting, jobs=experiments * JOBS_EACH)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--experiments", type=int, default=EXPERIMENTS)
    asked = parser.parse_args()
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        sys.exit("no Chromium is on the PATH")
    say_machine()
    with scratch() as folder, prony_server(folder / "home") as server, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        figures = [
            Figure("the first load, compressed", first_load_kb(browser, server.url), 200, "KB"),
            Figure("largest contentful paint of an empty server", paint_ms(browser, server.url), 1000, "ms"),
        ]
        filled(folder / "home", server.url, asked.experiments)
        figures += [
            Figure(
                f"a page of {asked.experiments:,} experiments", listing_ms(server.url, "/api/v1/listing"), 200, "ms"
            ),
            Figure("the same sorted anew, click to rows", sort_ms(browser, server.url), 200, "ms"),
            Figure("largest contentful paint of a full one", paint_ms(browser, server.url), 1000, "ms"),
            Figure("longest frame while the list scrolls", longest_frame_ms(browser, server.url), 200, "ms"),
        ]
        figures += measure_live(browser, folder)
        browser.close()
    print(*figures, sep="\n")
    return 0 if all(figure.is_held for figure in figures) else 1


if __name__ == "__main__":
    sys.exit(main())
