"""A browser logs in by a link: what the link is good for, what its session may do, and who may not use it."""

from __future__ import annotations

import re
from collections.abc import Iterator

import httpx
import pytest

from prony.app.login import LINK_S, Logins
from prony.errors import AccessError
from prony.model.access import NewToken, Role
from prony.ports.clock import SystemClock

from .house import House, served

LIST = "/api/v1/experiments"
OWN = {"Sec-Fetch-Site": "same-origin"}


@pytest.fixture(scope="module")
def closed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    with served(tmp_path_factory.mktemp("login"), is_open=False) as found:
        yield found


def admin(house: House) -> dict[str, str]:
    made = house.fleet.access.add_token(NewToken(name="ann", role=Role.ADMIN))
    return {"Authorization": f"Bearer {made.secret}"}


def link(house: House) -> str:
    made = house.client.post("/api/v1/login-links", headers=admin(house))
    assert made.status_code == 201, made.text
    return str(made.json()["path"])


@pytest.fixture
def browser(closed: House) -> Iterator[httpx.Client]:
    """A client that keeps the cookie of its session, as a browser does."""
    with httpx.Client(base_url=closed.url, trust_env=False, timeout=30) as client:
        assert client.get(link(closed)).status_code == 303
        yield client


def test_a_link_turns_into_a_session_that_only_this_server_s_pages_can_use(closed: House) -> None:
    answer = httpx.get(closed.url + link(closed), trust_env=False)
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    cookie = answer.headers["set-cookie"]
    port = closed.url.rpartition(":")[2]
    assert re.match(rf"prony_session_{port}=prony_[\w-]{{43}}; ", cookie)
    assert {"HttpOnly", "SameSite=Strict", "Path=/", "Max-Age=2592000"} <= set(cookie.split("; "))
    assert "Secure" not in cookie


def test_a_session_is_an_admin_under_the_name_of_who_made_the_link(closed: House, browser: httpx.Client) -> None:
    about = browser.get("/api/v1/about", headers=OWN).json()
    assert (about["name"], about["role"]) == ("ann-browser", "admin")
    trail = closed.client.get("/api/v1/audit?limit=3", headers=admin(closed)).json()["items"]
    assert ("ann-browser", "log_in", "127.0.0.1") in {(one["who"], one["action"], one["address"]) for one in trail}


def test_a_link_works_once(closed: House) -> None:
    path = link(closed)
    assert closed.client.head(path, headers={"Accept": "text/html"}).status_code == 200  # a preview uses nothing up
    assert httpx.get(closed.url + path, trust_env=False).status_code == 303
    again = httpx.get(closed.url + path, trust_env=False)
    assert again.status_code == 403
    assert "set-cookie" not in again.headers
    assert "prony server link" in again.text
    assert again.headers["content-security-policy"].startswith("default-src 'none'")


@pytest.mark.parametrize("code", ["wrong", "x" * 5000, "%00", "<script>"])
def test_a_code_that_nobody_made_opens_nothing(closed: House, code: str) -> None:
    answer = httpx.get(f"{closed.url}/login?code={code}", trust_env=False)
    assert answer.status_code == 403
    assert "set-cookie" not in answer.headers
    assert "<script>" not in answer.text


def test_without_a_code_one_is_sent_to_the_pages(closed: House) -> None:
    answer = httpx.get(f"{closed.url}/login", trust_env=False)
    assert (answer.status_code, answer.headers["location"]) == (303, "/")


class LateClock(SystemClock):
    passed_ns = 0

    def monotonic_ns(self) -> int:
        return super().monotonic_ns() + self.passed_ns


def test_a_link_is_good_for_a_short_time(closed: House) -> None:
    clock = LateClock()
    logins = Logins(closed.fleet.access, clock)
    code = logins.make_link("ann").path.partition("code=")[2]
    clock.passed_ns = LINK_S * 10**9
    with pytest.raises(AccessError, match="has expired"):
        logins.redeem(code)


@pytest.mark.parametrize("role", [Role.VIEWER, Role.SUBMITTER, Role.AGENT])
def test_only_an_admin_gets_a_link(closed: House, role: Role) -> None:
    made = closed.fleet.access.add_token(NewToken(name="x", role=role))
    asked = closed.client.post("/api/v1/login-links", headers={"Authorization": f"Bearer {made.secret}"})
    assert asked.status_code == 403
    assert closed.client.post("/api/v1/login-links").status_code == 401


@pytest.mark.parametrize(
    "headers",
    [
        {"Sec-Fetch-Site": "cross-site", "Origin": "http://evil.example"},
        {"Sec-Fetch-Site": "same-site", "Origin": "http://127.0.0.1:9"},
        {"Origin": "http://evil.example"},
        {"Origin": "http://127.0.0.1:9"},
        {"Origin": "null"},
        {},
    ],
)
def test_a_page_of_another_origin_changes_nothing_in_the_name_of_a_session(
    closed: House, browser: httpx.Client, headers: dict[str, str]
) -> None:
    for method, path in (("POST", "/api/v1/login-links"), ("POST", LIST), ("POST", "/logout")):
        answer = browser.request(method, path, headers=headers)
        assert (answer.status_code, answer.json()["code"]) == (403, "foreign_origin"), (path, answer.text)
    assert browser.get("/api/v1/about", headers=OWN).is_success  # and it was not logged out by that


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_a_page_of_another_origin_reads_nothing_in_the_name_of_a_session(browser: httpx.Client, site: str) -> None:
    assert browser.get(LIST, headers={"Sec-Fetch-Site": site}).status_code == 403


def test_the_server_s_own_pages_change_what_an_admin_may(closed: House, browser: httpx.Client) -> None:
    for headers in (OWN, {"Origin": closed.url}):
        assert browser.post("/api/v1/login-links", headers=headers).status_code == 201


def test_logging_out_ends_the_session_for_good(closed: House, browser: httpx.Client) -> None:
    kept = dict(browser.cookies)
    answer = browser.post("/logout", headers=OWN)
    assert answer.status_code == 204
    assert "Max-Age=0" in answer.headers["set-cookie"]
    assert browser.get(LIST, headers=OWN).status_code == 401
    cookie = "; ".join(f"{name}={value}" for name, value in kept.items())
    for _ in range(2):  # a cookie that somebody kept opens nothing, and can be logged out again
        assert closed.client.get(LIST, headers=OWN | {"Cookie": cookie}).status_code == 401
        assert closed.client.post("/logout", headers=OWN | {"Cookie": cookie}).status_code == 204


def test_logging_out_leaves_a_token_that_is_sent_beside_the_session_alone(closed: House, browser: httpx.Client) -> None:
    headers = admin(closed)
    assert browser.post("/logout", headers=OWN | headers).status_code == 204
    assert closed.client.get(LIST, headers=headers).is_success


def test_a_token_counts_more_than_the_session(closed: House, browser: httpx.Client) -> None:
    viewer = closed.fleet.access.add_token(NewToken(name="v", role=Role.VIEWER))
    asked = browser.get("/api/v1/about", headers=OWN | {"Authorization": f"Bearer {viewer.secret}"})
    assert asked.json()["role"] == "viewer"


def test_a_session_can_be_revoked_like_any_token(closed: House, browser: httpx.Client) -> None:
    tokens = closed.client.get("/api/v1/tokens", headers=admin(closed)).json()["items"]
    newest = next(one for one in tokens if one["name"] == "ann-browser")
    assert closed.client.delete(f"/api/v1/tokens/{newest['id']}", headers=admin(closed)).status_code == 204
    assert browser.get(LIST, headers=OWN).status_code == 401


def test_old_cookies_do_not_keep_a_new_login_out(tmp_path_factory: pytest.TempPathFactory) -> None:
    with served(tmp_path_factory.mktemp("old"), is_open=False) as house:
        name = f"prony_session_{house.url.rpartition(':')[2]}"
        for number in range(20):
            house.client.get(LIST, headers=OWN | {"Cookie": f"{name}=prony_old{number}"})
        assert house.client.get(LIST, headers=OWN | {"Cookie": f"{name}=prony_old"}).status_code == 429
        with httpx.Client(base_url=house.url, trust_env=False) as browser:
            assert browser.get(house.app.state.logins.make_link("owner").path).status_code == 303
            assert browser.get(LIST, headers=OWN).is_success


def test_where_nobody_is_asked_a_strange_cookie_does_no_harm(house: House) -> None:
    name = f"prony_session_{house.url.rpartition(':')[2]}"
    assert house.client.get(LIST, headers={"Cookie": f"{name}=prony_x"}).is_success
