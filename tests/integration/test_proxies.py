"""A server on loopback behind real proxies: nobody gets in by coming through one, and none can be lied to."""

from __future__ import annotations

import re
import ssl
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from prony.client.owner import find_owner_token
from prony.store.home import Home
from servers.certificates import Certificate, certificate
from servers.prony import Served, prony_serving
from servers.proxies import DOCUMENTED, HOST, documented_caddy, documented_nginx, plain_nginx

LIST = "/api/v1/experiments"
# Another address of this machine than the proxy has: what the proxy says of it can be told from what it is itself.
CLIENT = "127.0.0.2"
PAGE = Path(__file__).parents[2] / "docs" / "proxy.md"
Documented = Callable[[Path, str, Certificate], AbstractContextManager[int]]


# nginx that was told `proxy_pass` and nothing else


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Served, str]]:
    folder = tmp_path_factory.mktemp("plain")
    with prony_serving(folder / "home") as server, plain_nginx(folder / "nginx", server.url) as url:
        yield server, url


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Host": "127.0.0.1:7337"},
        {"Host": "localhost"},
        {"X-Forwarded-For": "127.0.0.1"},
        {"Forwarded": "for=127.0.0.1;host=localhost"},
        {"X-Real-IP": "127.0.0.1", "X-Forwarded-Host": "localhost"},
    ],
)
def test_behind_a_plain_nginx_nobody_is_let_in_without_a_token(
    plain: tuple[Served, str], headers: dict[str, str]
) -> None:
    server, url = plain
    document = server.client().get("/openapi.json").json()
    with httpx.Client(base_url=url, trust_env=False, timeout=30) as stranger:
        for path, operations in document["paths"].items():
            for method, operation in operations.items():
                answer = stranger.request(method, re.sub(r"{\w+}", "zzz", path), headers=headers)
                expected = 200 if operation["operationId"] == "health" else 401
                assert answer.status_code == expected, (method, path, answer.text)
        for path in ("/docs", "/openapi.json", "/metrics"):
            assert stranger.get(path, headers=headers).status_code == 401
        assert stranger.get("/", headers=headers).is_success  # the pages hold nothing, and say how to log in


def test_the_owner_s_token_is_not_sent_through_a_proxy(plain: tuple[Served, str]) -> None:
    server, url = plain
    home = Home(server.home)
    assert find_owner_token(server.url, home) == server.token
    assert find_owner_token(url, home) is None


def test_behind_a_proxy_that_nobody_named_headers_change_no_address(plain: tuple[Served, str]) -> None:
    server, url = plain
    answers = [
        httpx.get(url + LIST, headers=wrong(number) | forged(number), trust_env=False).status_code
        for number in range(20)
    ]
    assert answers[:11] == [401] * 11
    assert set(answers[11:]) == {429}
    with httpx.Client(base_url=url, headers=server.bearer, trust_env=False) as client:
        assert trailed(client, forged(7)) == "127.0.0.1"


# The files of the documents


@dataclass(frozen=True)
class Proxied:
    """A server, and the ways to it through its proxy."""

    server: Served
    port: int
    context: ssl.SSLContext

    @property
    def origin(self) -> str:
        return f"https://{HOST}:{self.port}"

    @contextmanager
    def client(self) -> Iterator[httpx.Client]:
        """As a browser of another machine: by the proxy's name, from another address."""
        transport = httpx.HTTPTransport(verify=self.context, local_address=CLIENT)
        headers = {"Host": f"{HOST}:{self.port}"}
        with httpx.Client(
            base_url=f"https://127.0.0.1:{self.port}", transport=transport, headers=headers, timeout=60
        ) as made:
            made.event_hooks = {"request": [named]}
            yield made


def named(request: httpx.Request) -> None:
    request.extensions = {**request.extensions, "sni_hostname": HOST}


@pytest.fixture(scope="module", params=[documented_nginx, documented_caddy], ids=["nginx", "caddy"])
def proxied(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxied]:
    start: Documented = request.param
    folder = tmp_path_factory.mktemp("proxied")
    made = certificate(folder / "tls", f"DNS:{HOST}")
    with (
        prony_serving(folder / "home", "--trusted-proxy", "127.0.0.1") as server,
        start(folder / "proxy", server.url, made) as port,
    ):
        yield Proxied(server, port, ssl.create_default_context(cafile=str(made.ca)))


def test_the_documented_proxy_lets_nobody_in_without_a_token(proxied: Proxied) -> None:
    with proxied.client() as client:
        assert client.get("/api/v1/health").json()["ok"] is True
        assert client.get(LIST).status_code == 401
        assert client.get(LIST, headers=proxied.server.bearer).is_success


def test_the_audit_trail_has_the_address_that_the_documented_proxy_saw(proxied: Proxied) -> None:
    with proxied.client() as client:
        client.headers.update(proxied.server.bearer)
        assert trailed(client, {}) == CLIENT
        assert trailed(client, forged(7)) == CLIENT


def test_a_browser_logs_in_through_the_documented_proxy_and_its_session_is_for_tls_alone(proxied: Proxied) -> None:
    own = {"Origin": proxied.origin}
    with proxied.client() as client:
        path = client.post("/api/v1/login-links", headers=proxied.server.bearer).json()["path"]
        cookie = client.get(path).headers["set-cookie"]
        assert cookie.startswith(f"__Host-prony_session_{proxied.port}=")
        assert {"Secure", "HttpOnly", "SameSite=Strict"} <= set(cookie.split("; "))
        kept = {"Cookie": cookie.partition(";")[0]}
        assert client.post("/api/v1/login-links", headers=own | kept).status_code == 201
        assert client.post("/api/v1/login-links", headers={"Origin": "https://evil.example"} | kept).status_code == 403
        assert client.post("/logout", headers=own | kept).status_code == 204
        assert client.get(LIST, headers=own | kept).status_code == 401


def test_events_come_through_the_documented_proxy_as_they_happen(proxied: Proxied) -> None:
    with proxied.client() as client, client.stream("GET", "/api/v1/events", headers=proxied.server.bearer) as stream:
        assert next(stream.iter_raw())  # a proxy that kept it back would send nothing: the stream has no end


def test_wrong_tokens_are_counted_by_the_address_that_the_documented_proxy_saw(proxied: Proxied) -> None:
    with proxied.client() as client:
        answers = [client.get(LIST, headers=wrong(number) | forged(number)).status_code for number in range(20)]
    assert answers[0] == 401
    assert set(answers[11:]) == {429}
    # The proxy's own neighbours are not those.
    direct = httpx.get(proxied.server.url + LIST, headers=wrong(99), trust_env=False)
    assert direct.status_code == 401


@pytest.mark.parametrize("name", ["nginx.conf", "Caddyfile"])
def test_the_page_shows_the_files_that_are_tested(name: str) -> None:
    assert (DOCUMENTED / name).read_text().rstrip() in PAGE.read_text()


def wrong(number: int) -> dict[str, str]:
    return {"Authorization": f"Bearer prony_wrong{number}"}


def forged(number: int) -> dict[str, str]:
    return {"X-Forwarded-For": f"203.0.113.{number}", "Forwarded": f"for=203.0.113.{number}"}


def trailed(client: httpx.Client, headers: dict[str, str]) -> str:
    """Change something and return the address under which it was recorded."""
    client.post("/api/v1/tokens", json={"name": "x", "role": "viewer"}, headers=headers).raise_for_status()
    entry = client.get("/api/v1/audit?limit=1").raise_for_status().json()["items"][0]
    assert entry["action"] == "add_token"
    return str(entry["address"])
