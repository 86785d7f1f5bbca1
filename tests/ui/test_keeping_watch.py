"""What happens by itself, and who may do what: schedules, alarms and tokens are made, used and undone by clicks."""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Callable, Iterator

import httpx
import pytest
from playwright.sync_api import Page, Route, expect

from servers.receiver import receiver

from .conftest import api, prony_server

Opened = Callable[[str], Page]
_RECIPE = (
    'name: nightly\nworkload: {kind: model, model: "zoo:noop", engine: "null"}\n'
    "measure: {runs: 5, repeats: 1, isolation: fork}\n"
)


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with prony_server(tmp_path_factory.mktemp("watch")) as address:
        yield address


def test_a_schedule_is_added_paused_resumed_run_at_once_and_removed(opened: Opened, url: str) -> None:
    page = opened(url)
    page.goto("/schedules")
    page.get_by_role("button", name="Add a schedule").first.click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Recipe", exact=True).fill(_RECIPE)
    dialog.get_by_label("When").fill("99 3 * * *")
    dialog.get_by_role("button", name="Add it").click()
    expect(dialog.get_by_role("alert")).to_contain_text("99")
    dialog.get_by_label("When").fill("0 3 * * *")
    dialog.get_by_role("button", name="Add it").click()
    expect(dialog).to_have_count(0)
    line = page.get_by_role("row", name=re.compile("nightly"))
    expect(line).to_contain_text("active")
    line.get_by_role("button", name="Pause").click()
    expect(line).to_contain_text("paused")
    line.get_by_role("button", name="Resume").click()
    expect(line).to_contain_text("active")
    line.get_by_role("link", name="nightly").click()
    expect(page.get_by_role("heading", name="It has not run yet")).to_be_visible()
    page.get_by_role("button", name="Run now").click()
    fires = page.get_by_role("region", name="Runs of this schedule")
    expect(fires.get_by_text("now", exact=True)).to_be_visible()
    fires.get_by_role("link").click()
    expect(page.get_by_text("0 of 1 jobs ended")).to_be_visible()
    page.go_back()
    page.get_by_role("button", name="Remove").click()
    page.get_by_role("button", name="Remove it").click()
    expect(page.get_by_role("heading", name="No schedule yet")).to_be_visible()
    with api(url) as client:
        assert client.get("/experiments").json()["items"][0]["experiment"]["name"] == "nightly"


def test_an_alarm_is_added_tells_a_webhook_by_a_test_and_is_removed(opened: Opened, url: str) -> None:
    page = opened(url)
    with receiver() as hook:
        page.goto("/alarms")
        page.get_by_role("button", name="Add an alarm").first.click()
        dialog = page.get_by_role("dialog")
        dialog.get_by_label("Name").fill("ops")
        dialog.get_by_label("When").select_option("a metric crosses a limit")
        dialog.get_by_label("Limit").fill("inference_ms.p99 >")
        dialog.get_by_label("Addresses to notify").fill(hook.url())
        dialog.get_by_role("button", name="Add it").click()
        expect(dialog.get_by_role("alert")).to_be_visible()
        dialog.get_by_label("Limit").fill("inference_ms.p99 > 20")
        dialog.get_by_role("button", name="Add it").click()
        expect(dialog.get_by_role("heading", name="The alarm ops was added")).to_be_visible()
        secret = dialog.locator("pre").inner_text()
        dialog.get_by_role("button", name="I have saved it").click()
        line = page.get_by_role("row", name=re.compile("ops"))
        expect(line).to_contain_text("nothing open")
        expect(line).not_to_contain_text("sEcReT")
        line.get_by_role("link", name="ops").click()
        page.get_by_role("button", name="Send a test").click()
        (told,) = hook.wait()
        assert told.json["kind"] == "test"
        signed = hmac.new(secret.encode(), told.headers["prony-timestamp"].encode() + b"." + told.body, hashlib.sha256)
        assert told.headers["prony-signature"] == f"v1={signed.hexdigest()}"
        sent = page.get_by_role("region", name="Messages")
        expect(sent.get_by_role("row").nth(1)).to_contain_text("delivered")
        hook.statuses.append(410)
        page.get_by_role("button", name="Send a test").click()
        expect(sent).to_contain_text("410")
        page.get_by_role("button", name="Remove").click()
        page.get_by_role("button", name="Remove it").click()
        expect(page.get_by_role("heading", name="No alarm yet")).to_be_visible()


def test_a_token_is_shown_once_opens_what_its_role_may_and_nothing_when_it_is_revoked(opened: Opened, url: str) -> None:
    page = opened(url)
    page.goto("/settings")
    page.get_by_role("button", name="Make a token").first.click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name").fill("ann")
    dialog.get_by_label("Valid").select_option("one day")
    dialog.get_by_role("button", name="Make it").click()
    expect(dialog.get_by_role("heading", name="The token ann was made")).to_be_visible()
    secret = dialog.locator("pre").inner_text()
    dialog.get_by_role("button", name="I have saved it").click()
    brought = {"Authorization": f"Bearer {secret}"}
    assert httpx.get(f"{url}/api/v1/experiments", headers=brought).status_code == 200
    assert httpx.post(f"{url}/api/v1/experiments", headers=brought, json={"text": _RECIPE}).status_code == 403
    page.reload()
    line = page.get_by_role("row", name=re.compile("ann"))
    expect(line).to_contain_text("viewer")
    assert secret not in page.content()
    line.get_by_role("button", name="Revoke").click()
    page.get_by_role("button", name="Revoke it").click()
    expect(line).to_contain_text("revoked")
    page.get_by_role("tab", name="Audit trail").click()
    expect(page.get_by_role("region", name="Audit trail")).to_contain_text("revoke_token")


@pytest.mark.parametrize(
    ("path", "opens", "asks", "sends"),
    [
        ("/settings", "Make a token", "Name", "Make it"),
        ("/fleet", "Enrol an agent", "What is the token for?", "Make a token and show the command"),
    ],
)
def test_a_secret_on_its_way_is_shown_though_escape_is_pressed_and_the_button_clicked_again(
    opened: Opened, url: str, path: str, opens: str, asks: str, sends: str
) -> None:
    page = opened(url)
    held: list[Route] = []
    page.route(
        "**/api/v1/tokens", lambda route: held.append(route) if route.request.method == "POST" else route.fallback()
    )
    page.goto(path)
    page.get_by_role("button", name=opens).first.click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label(asks).fill("held")
    dialog.get_by_role("button", name=sends).dblclick(force=True)
    expect(dialog).to_have_attribute("aria-busy", "true")
    expect(dialog.get_by_role("button", name=sends)).to_be_disabled()
    expect(dialog.get_by_role("button", name="Close")).to_be_disabled()
    for _ in range(3):
        page.keyboard.press("Escape")
    expect(dialog).to_be_visible()
    (only,) = held
    only.continue_()
    expect(dialog.locator("pre")).to_contain_text("prony_")
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)


def test_a_secret_is_copied_though_plain_http_from_another_machine_has_no_clipboard(opened: Opened, url: str) -> None:
    page = opened(url)
    page.add_init_script("Object.defineProperty(Navigator.prototype, 'clipboard', {value: undefined})")
    page.goto("/settings")
    dialog = page.get_by_role("dialog")
    name = dialog.get_by_label("Name")
    page.get_by_role("button", name="Make a token").first.click()
    name.fill("copied")
    dialog.get_by_role("button", name="Make it").click()
    secret = dialog.locator("pre").inner_text()
    dialog.get_by_role("button", name="Copy").click()
    expect(dialog.get_by_role("button", name="Copied")).to_be_focused()
    dialog.get_by_role("button", name="I have saved it").click()
    page.get_by_role("button", name="Make a token").first.click()
    name.focus()
    page.keyboard.press("Control+v")
    expect(name).to_have_value(secret)


def test_the_theme_is_kept_after_a_reload_and_follows_the_system_where_it_is_told_to(opened: Opened, url: str) -> None:
    page = opened(url)
    page.goto("/settings?part=look")
    light = ground(page)
    page.get_by_label("Dark").check()
    everything = page.locator("html")
    expect(everything).not_to_have_css("background-color", light)
    dark = ground(page)
    page.reload()
    expect(page.get_by_label("Dark")).to_be_checked()
    expect(everything).to_have_css("background-color", dark)
    page.get_by_label("Same as the system").check()
    expect(everything).to_have_css("background-color", light)
    page.emulate_media(color_scheme="dark")
    expect(everything).to_have_css("background-color", dark)


def ground(page: Page) -> str:
    """Return the colour that everything stands on."""
    return str(page.evaluate("getComputedStyle(document.documentElement).backgroundColor"))
