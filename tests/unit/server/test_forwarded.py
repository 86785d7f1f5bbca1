"""Where a request comes from: the peer's address, unless the peer is a proxy that was named."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from prony.errors import InputError
from prony.model.access import NewToken, Role
from prony.server.forwarded import Proxies, read_network

from .house import House, served

LIST = "/api/v1/experiments"
NAMED = ("10.0.0.0/8", "192.168.7.1", "fd00::/16")


def seen(peer: str, *forwarded: str, proto: str = "", named: tuple[str, ...] = NAMED) -> tuple[str, str]:
    headers = [(b"x-forwarded-for", ", ".join(forwarded).encode())] if forwarded else []
    headers += [(b"x-forwarded-proto", proto.encode())] if proto else []
    scope = {"type": "http", "client": (peer, 1), "scheme": "http", "headers": headers}
    Proxies(tuple(map(read_network, named))).resolve(scope)
    client, scheme = scope["client"], scope["scheme"]
    assert isinstance(client, tuple)
    assert isinstance(scheme, str)
    return str(client[0]), scheme


@pytest.mark.parametrize(
    ("peer", "forwarded", "address"),
    [
        ("203.0.113.9", ("1.1.1.1",), "203.0.113.9"),  # nobody's proxy
        ("127.0.0.1", ("1.1.1.1",), "127.0.0.1"),  # loopback is not trusted by itself
        ("10.1.2.3", ("1.1.1.1",), "1.1.1.1"),
        ("::ffff:10.1.2.3", ("1.1.1.1",), "1.1.1.1"),
        ("10.1.2.3", ("9.9.9.9", "1.1.1.1"), "1.1.1.1"),  # what a client wrote itself stands before
        ("10.1.2.3", ("9.9.9.9", "1.1.1.1", "192.168.7.1"), "1.1.1.1"),  # two proxies in a row
        ("10.1.2.3", ("10.0.0.9",), "10.0.0.9"),
        ("10.1.2.3", ("1.1.1.1", "nonsense"), "10.1.2.3"),
        ("10.1.2.3", ("nonsense", "10.0.0.9"), "10.0.0.9"),
        ("10.1.2.3", (), "10.1.2.3"),
        ("10.1.2.3", ("",), "10.1.2.3"),
        ("fd00::1", ("2001:db8::7",), "2001:db8::7"),
        ("10.1.2.3", ("1.1.1.1," * 5000 + "2.2.2.2",), "2.2.2.2"),
    ],
)
def test_the_address_is_the_last_that_no_named_proxy_has(peer: str, forwarded: tuple[str, ...], address: str) -> None:
    assert seen(peer, *forwarded)[0] == address


def test_the_scheme_is_believed_from_a_named_proxy_alone() -> None:
    assert seen("10.1.2.3", "1.1.1.1", proto="https") == ("1.1.1.1", "https")
    assert seen("10.1.2.3", "1.1.1.1", proto="gopher") == ("1.1.1.1", "http")
    assert seen("127.0.0.1", "1.1.1.1", proto="https") == ("127.0.0.1", "http")


@pytest.mark.parametrize("text", ["", "proxy", "10.0.0.0/99", "300.1.1.1"])
def test_what_is_no_address_cannot_be_trusted(text: str) -> None:
    with pytest.raises(InputError, match="--trusted-proxy"):
        read_network(text)


# Over real HTTP


@pytest.fixture
def unnamed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    with served(tmp_path_factory.mktemp("unnamed"), is_open=False) as found:
        yield found


@pytest.fixture
def named(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    with served(tmp_path_factory.mktemp("named"), is_open=False, proxies=[read_network("127.0.0.1")]) as found:
        yield found


def wrong(house: House, number: int, forwarded: str) -> int:
    headers = {"Authorization": f"Bearer prony_wrong{number}", "X-Forwarded-For": forwarded, "Forwarded": "for=1.2.3.4"}
    return house.client.get(LIST, headers=headers).status_code


def test_another_address_in_a_header_does_not_evade_the_limit_on_wrong_tokens(unnamed: House) -> None:
    answers = [wrong(unnamed, number, f"203.0.113.{number}") for number in range(20)]
    assert answers[:11] == [401] * 11
    assert set(answers[11:]) == {429}


def test_behind_a_named_proxy_the_limit_is_each_client_s_own(named: House) -> None:
    assert {wrong(named, number, "198.51.100.1, 203.0.113.7") for number in range(20)} == {401, 429}
    assert wrong(named, 99, "203.0.113.8") == 401
    # What a client writes before what the proxy wrote changes nothing.
    assert wrong(named, 100, "198.51.100.2, 203.0.113.7") == 429


def last_entry(house: House, headers: dict[str, str]) -> dict[str, str]:
    house.client.post("/api/v1/tokens", json={"name": "x", "role": "viewer"}, headers=headers).raise_for_status()
    found: dict[str, str] = house.client.get("/api/v1/audit?limit=1", headers=headers).json()["items"][0]
    return found


def test_the_audit_trail_has_the_peer_s_address_or_what_a_named_proxy_says(unnamed: House, named: House) -> None:
    for house, address in ((unnamed, "127.0.0.1"), (named, "203.0.113.7")):
        made = house.fleet.access.add_token(NewToken(name="ann", role=Role.ADMIN))
        headers = {"Authorization": f"Bearer {made.secret}", "X-Forwarded-For": "203.0.113.7"}
        assert last_entry(house, headers)["address"] == address


def test_behind_a_named_proxy_with_tls_a_session_is_for_tls_alone(named: House) -> None:
    through = {"X-Forwarded-For": "203.0.113.7", "X-Forwarded-Proto": "https", "Host": "prony.example.org"}
    path = named.app.state.logins.make_link("owner").path
    answer = httpx.get(named.url + path, headers=through, trust_env=False)
    cookie = answer.headers["set-cookie"]
    assert cookie.startswith("__Host-prony_session=prony_")
    assert "Secure" in cookie.split("; ")
    kept = {"Cookie": cookie.partition(";")[0]}
    own = {"Origin": "https://prony.example.org"}
    assert named.client.post("/api/v1/login-links", headers=through | kept | own).status_code == 201
    plain = {"Origin": "http://prony.example.org"}
    assert named.client.post("/api/v1/login-links", headers=through | kept | plain).status_code == 403
