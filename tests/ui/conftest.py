"""A real server in a process of its own and a real browser: what every test of the pages has."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import httpx
import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, Request, expect, sync_playwright
from playwright.sync_api import Error as PlaywrightError

from prony.server.web import SITE
from servers.needs import lack
from servers.process import DieWithParent

if TYPE_CHECKING:
    from .showcase import Showcase

_PATIENCE_MS = 90_000
# The first that is there. The shell is the same browser without the parts of a window, and costs a third.
_BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
# The home of every server that was started here, by its address.
_homes: dict[str, Path] = {}
# The windows that are open.
_windows: list[Page] = []


class Opened(Protocol):
    """Gives a fresh, empty window for a server's pages, whose browser has logged in unless the test is about that."""

    def __call__(self, url: str, *, logs_in: bool = True) -> Page: ...


@contextmanager
def prony_server(home: Path, *options: str) -> Iterator[str]:
    """Run a server on a home, in a process that ends with this one, while the block runs; give its address."""
    command = [sys.executable, "-m", "prony", "server", "--port", "0", "--log-level", "warning", *options]
    home.mkdir(parents=True, exist_ok=True)
    with (home / "server-output.log").open("wb") as log:
        process = subprocess.Popen(
            command, env=os.environ | {"PRONY_HOME": str(home)}, stdout=log, stderr=log, start_new_session=True,
            preexec_fn=DieWithParent(signal.SIGTERM),  # noqa: PLW1509 - it makes one system call
        )  # fmt: skip
    try:
        url = _address(process, home)
        _homes[url] = home
        yield url
    finally:
        process.terminate()
        process.wait(timeout=120)


def _address(process: subprocess.Popen[bytes], home: Path) -> str:
    deadline = time.monotonic() + 180
    while process.poll() is None and time.monotonic() < deadline:
        try:
            return str(json.loads((home / "server.json").read_text())["url"])
        except (FileNotFoundError, ValueError):  # not there yet, or not whole
            time.sleep(0.02)
    raise AssertionError(f"prony server did not start: {(home / 'server-output.log').read_text()[-2000:]}")


def owner_token(url: str) -> str:
    """Return the owner's token of a server that was started here."""
    return (_homes[url] / "owner-token").read_text().strip()


def api(url: str) -> httpx.Client:
    """Return a client of a server's API that asks as its owner."""
    return httpx.Client(base_url=f"{url}/api/v1", headers={"Authorization": f"Bearer {owner_token(url)}"}, timeout=30)


def login_link(url: str) -> str:
    """Return a link that logs a browser in, as `prony server link` prints it."""
    with api(url) as client:
        return url + str(client.post("/login-links").raise_for_status().json()["path"])


@pytest.fixture(scope="session")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Showcase]:
    """Recorded experiments of every kind on a server: for tests that only look at them."""
    from .showcase import open_showcase

    with open_showcase(tmp_path_factory.mktemp("shown")) as made:
        yield made


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """The system's Chromium, without a window.

    Not one for the whole session: while it is open an event loop runs in this thread, and asynchronous tests of other
    modules would find it.
    """
    if not (SITE / "index.html").is_file():
        lack("ui", "the web pages are not built: make ui")
    found = next(filter(None, map(shutil.which, _BROWSERS)), None)
    if found is None:
        lack("chromium", "no Chromium is on the PATH")
    expect.set_options(timeout=_PATIENCE_MS)
    with sync_playwright() as playwright:
        made = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield made
        made.close()


@pytest.fixture
def opened(browser: Browser) -> Iterator[Opened]:
    """Give a function that opens a server's pages in a fresh window, and fail where a page complained meanwhile."""
    with open_windows(browser) as open_window:
        yield open_window


@contextmanager
def open_windows(browser: Browser) -> Iterator[Opened]:
    """Give a function that opens windows, close them when the block ends, and fail where a page complained meanwhile.

    A complaint is an error in the console, a script that broke, or a request to anybody but the server.
    """
    complaints: list[str] = []
    made: list[Page] = []

    def open_window(url: str, *, logs_in: bool = True) -> Page:
        page = browser.new_context(viewport={"width": 1280, "height": 900}, base_url=url).new_page()
        page.set_default_timeout(_PATIENCE_MS)
        page.on("console", lambda message: complaints.extend(_complaint(message)))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: complaints.extend(_stranger(request, url)))
        made.append(page)
        _windows.append(page)
        if logs_in:  # without drawing the page that a link leads to: most tests want another
            answer = page.context.request.get(login_link(url), max_redirects=0)
            assert answer.status == 303, f"the link answered {answer.status}: {answer.text()}"
        return page

    yield open_window
    for page in made:
        _windows.remove(page)
        page.context.close()
    assert complaints == []


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Say with a failed test what stood in the windows that were open."""
    report = yield
    if report.failed and _windows:
        report.sections.append(("the windows", "\n\n".join(map(_show, _windows))))
    return report


def _show(page: Page) -> str:
    """Return where a window is and what stands there, as far as it still answers."""
    try:
        return f"{page.url}\n{page.locator('body').inner_text(timeout=5_000)}"
    except PlaywrightError as exc:
        return f"{page.url}: {exc}"


def _complaint(message: ConsoleMessage) -> list[str]:
    # A refusal is an answer that the page shows; that the browser writes it down too is no fault of the page.
    is_fault = message.type == "error" and "Failed to load resource" not in message.text
    return [message.text] if is_fault else []


def _stranger(request: Request, url: str) -> list[str]:
    return [] if request.url.startswith((url, "data:", "blob:")) else [f"asked a stranger: {request.url}"]


def tabbed(page: Page, name: str) -> None:
    """Press Tab until what is called so has the focus."""
    for _ in range(60):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.textContent.trim()") == name:
            return
    raise AssertionError(f"Tab does not lead to {name}")
