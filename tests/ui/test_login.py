"""A browser logs in by the link that the server prints and logs out; no other page can use its session."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, expect

from servers.waiting import wait_for

from .conftest import Opened, api, login_link, prony_server


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with prony_server(tmp_path_factory.mktemp("login")) as address:
        yield address


def is_logged_in(page: Page) -> None:
    expect(page.get_by_role("heading", name="Welcome to Prony")).to_be_visible()
    expect(page.get_by_text("live", exact=True)).to_be_visible()


def is_asked(page: Page) -> None:
    expect(page.get_by_text("prony server link")).to_be_visible()
    expect(page.get_by_label("Token")).to_be_visible()


def printed_link(log: Path) -> str:
    """Return the link that a server prints after it has begun to answer."""
    link = re.compile(r"(http://\S+/login\?code=\S+)\s")
    wait_for(lambda: link.search(log.read_text()) is not None, "no link is printed")
    return str(link.findall(log.read_text())[0])


def test_the_printed_link_logs_one_browser_in_once(tmp_path: Path, opened: Opened) -> None:
    home = tmp_path / "home"
    with prony_server(home) as url:
        printed = printed_link(home / "server-output.log")
        page, other = opened(url, logs_in=False), opened(url, logs_in=False)
        page.goto("/")
        is_asked(page)
        page.goto(printed)
        is_logged_in(page)
        expect(page).to_have_url(f"{url}/")  # the code is not left in the address
        (cookie,) = page.context.cookies()
        assert (cookie["httpOnly"], cookie["sameSite"], cookie["path"]) == (True, "Strict", "/")
        assert page.evaluate("document.cookie") == ""
        other.goto(printed)
        expect(other.get_by_role("heading", name="Not logged in")).to_be_visible()
        other.goto("/")
        is_asked(other)


def test_a_session_lasts_over_reloads_and_restarts_and_changes_things(tmp_path: Path, opened: Opened) -> None:
    home = tmp_path / "home"
    with prony_server(home) as url:
        page = opened(url)
        page.goto("/")
        is_logged_in(page)
    (home / "server.json").unlink(missing_ok=True)
    expect(page.get_by_text("not live")).to_be_visible()
    with prony_server(home, "--port", str(urlsplit(url).port)):
        expect(page.get_by_text("live", exact=True)).to_be_visible()
        page.reload()
        is_logged_in(page)
        page.goto("/settings")
        page.get_by_role("button", name="Make a token").first.click()
        dialog = page.get_by_role("dialog")
        dialog.get_by_label("Name").fill("ann")
        dialog.get_by_role("button", name="Make it").click()
        expect(dialog.get_by_role("heading", name="The token ann was made")).to_be_visible()


def test_logging_out_ends_the_session(url: str, opened: Opened) -> None:
    page = opened(url)
    page.goto("/")
    is_logged_in(page)
    kept = page.context.cookies()
    page.get_by_role("button", name="Log out").click()
    is_asked(page)
    page.reload()
    is_asked(page)
    assert page.context.cookies() == []
    page.context.add_cookies([{"name": one["name"], "value": one["value"], "url": url} for one in kept])
    page.reload()
    is_asked(page)


class _Evil(BaseHTTPRequestHandler):
    """A page of another port of the same host: of the same site, so that its requests bring the session's cookie."""

    server_url = ""

    def do_GET(self) -> None:
        text = f"""<!doctype html><title>evil</title>
<form id="f" method="post" action="{self.server_url}/logout"></form>
<script>
  const ask = (path, init) => fetch("{self.server_url}" + path, {{credentials: "include", mode: "no-cors", ...init}});
  const body = JSON.stringify({{name: "stolen", role: "admin"}});
  Promise.allSettled([
    ask("/api/v1/tokens", {{method: "POST", body}}),
    ask("/api/v1/login-links", {{method: "POST"}}),
    ask("/logout", {{method: "POST"}}),
    ask("/api/v1/tokens"),
  ]).then(() => document.title = "tried");
</script>""".encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *words: object) -> None:
        pass


@contextmanager
def evil_page(url: str) -> Iterator[str]:
    handler = type("Handler", (_Evil,), {"server_url": url})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as made:
        thread = threading.Thread(target=made.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{made.server_port}/"
        made.shutdown()
        thread.join(30)


def test_a_page_of_another_origin_does_nothing_in_the_name_of_who_is_logged_in(url: str, browser: Browser) -> None:
    context = browser.new_context(base_url=url)
    page = context.new_page()
    page.goto(login_link(url))
    is_logged_in(page)
    with api(url) as client, evil_page(url) as evil:
        before = trail(client.get("/audit?limit=500").json()["items"])
        other = context.new_page()
        sent: list[str] = []
        other.on("request", lambda request: sent.append(f"{request.method} {urlsplit(request.url).path}"))
        other.goto(evil)
        expect(other).to_have_title("tried")
        assert {"POST /api/v1/tokens", "POST /api/v1/login-links", "POST /logout"} <= set(sent)
        other.evaluate("document.getElementById('f').submit()")  # a form, which asks for no permission
        expect(other.get_by_text("foreign_origin")).to_be_visible()
        assert trail(client.get("/audit?limit=500").json()["items"]) == before
    page.reload()
    is_logged_in(page)
    context.close()


def trail(entries: list[dict[str, str]]) -> list[tuple[str, str]]:
    """Return what was done, by whom."""
    return [(one["action"], one["who"]) for one in entries]
