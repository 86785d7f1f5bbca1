"""A URL is an endpoint, or an error that says what is wrong with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from prony.errors import InputError, TransportError
from prony.load.endpoint import parse_endpoint, resolve_endpoint
from prony.ports.driver import Endpoint


@pytest.mark.parametrize(
    ("url", "endpoint"),
    [
        ("http://host", Endpoint(host="host", port=80)),
        ("http://host:8000/v1", Endpoint(host="host", port=8000, base="/v1")),
        ("http://host:8000/v1/", Endpoint(host="host", port=8000, base="/v1/")),
        ("http://host?x=1&verify=no&y=%20", Endpoint(host="host", port=80, verify=False, query="x=1&y=%20")),
        ("https://host?verify=no", Endpoint(host="host", port=443, tls=True, verify=False)),
        ("http://[::1]:81", Endpoint(host="::1", port=81)),
        ("redis://:secret@host/3", Endpoint(host="host", port=6379, password="secret", database="3")),
        ("rediss://host", Endpoint(host="host", port=6379, tls=True)),
        ("postgresql://me:p%40ss@host/db", Endpoint(host="host", port=5432, user="me", password="p@ss", database="db")),
        ("postgresql://host/db?sslmode=disable", Endpoint(host="host", port=5432, database="db")),
        (
            "postgresql://host?sslmode=require",
            Endpoint(host="host", port=5432, tls=True, verify=False, check_name=False),
        ),
        ("postgresql://host?sslmode=verify-ca", Endpoint(host="host", port=5432, tls=True, check_name=False)),
        ("postgresql://host?sslmode=verify-full", Endpoint(host="host", port=5432, tls=True)),
        ("unix:///run/a.sock?base=/v1", Endpoint(path="/run/a.sock", base="/v1")),
    ],
)
def test_a_url_names_an_endpoint(url: str, endpoint: Endpoint) -> None:
    assert parse_endpoint(url) == endpoint


@pytest.mark.parametrize("url", ["host:80", "ftp://host", "http://", "http://host:port", "unix://run/a.sock", ""])
def test_what_is_no_endpoint_is_refused_with_a_hint(url: str) -> None:
    with pytest.raises(InputError, match="is not an endpoint") as caught:
        parse_endpoint(url)
    assert "http://host:port" in caught.value.hint


def test_who_vouches_for_a_certificate_is_a_file_beside_the_recipe(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").touch()
    ca = str(tmp_path / "ca.pem")
    assert parse_endpoint("rediss://host?ca=ca.pem", tmp_path) == Endpoint(host="host", port=6379, tls=True, ca=ca)
    # As PostgreSQL's own clients have it: who names an authority wants it asked.
    found = parse_endpoint("postgresql://host?sslmode=require&sslrootcert=ca.pem", tmp_path)
    assert found == Endpoint(host="host", port=5432, tls=True, check_name=False, ca=ca)
    with pytest.raises(InputError, match="certificate file not found"):
        parse_endpoint("https://host?ca=other.pem", tmp_path)


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("postgresql://host?sslmode=prefer", "is not supported"),
        ("postgresql://host?options=-c", "unknown endpoint parameters"),
        ("redis://host?timeout=3", "unknown endpoint parameters"),
    ],
)
def test_a_wish_that_cannot_be_honoured_is_refused(url: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        parse_endpoint(url)


def test_a_host_that_nobody_knows_is_told() -> None:
    with pytest.raises(TransportError, match=r"host not found: nobody\.invalid"):
        resolve_endpoint(Endpoint(host="nobody.invalid", port=80))


def test_a_unix_socket_is_its_path(tmp_path: Path) -> None:
    path = str(tmp_path / "s")[-100:]
    assert resolve_endpoint(Endpoint(path=path))[1] == path
    with pytest.raises(InputError, match="at most 103 bytes"):
        resolve_endpoint(Endpoint(path="/" + "x" * 103))
