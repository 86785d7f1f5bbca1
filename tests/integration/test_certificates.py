"""Whoever answers by https must be vouched for, however the address is written: they would be told a token."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from prony.app.notify import Notification, send
from prony.errors import TransportError
from prony.model.alarm import Message, Severity
from prony.plugins.destinations.web_api import WebApi
from servers.certificates import certificate
from servers.commands import call_prony
from servers.web_server import WebServer, serving


@pytest.fixture(scope="module")
def context(tmp_path_factory: pytest.TempPathFactory) -> ssl.SSLContext:
    made = certificate(tmp_path_factory.mktemp("certificates"), "DNS:localhost,IP:127.0.0.1")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(made.certificate, made.key)
    return context


@pytest.fixture
def stranger(context: ssl.SSLContext) -> Iterator[WebServer]:
    """A server by https whose certificate comes from an authority that nobody knows."""
    with serving() as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        yield server


@pytest.fixture(params=["https", "HTTPS"])
def url(stranger: WebServer, request: pytest.FixtureRequest) -> str:
    return f"{request.param}://127.0.0.1:{stranger.server_address[1]}"


@pytest.mark.parametrize("words", [("list", "--server"), ("agent", "test", "--server"), ("agent", "test", "--sark")])
def test_a_command_says_nothing_to_a_stranger(stranger: WebServer, url: str, words: tuple[str, ...]) -> None:
    said = call_prony(*words, url, code=None)
    assert said.returncode != 0
    assert "certificate verify failed" in said.stdout + said.stderr
    assert stranger.log == []


def test_a_notification_is_not_sent_to_a_stranger(stranger: WebServer, url: str) -> None:
    message = Message(
        kind="firing", alarm="nightly", when="experiment failed", severity=Severity.CRITICAL, count=1,
        at=datetime(2025, 6, 1, tzinfo=UTC), text="it failed",
    )  # fmt: skip
    outcome = send(Notification("d1", message, f"webhook+{url}/hook", "made-up"))
    assert not outcome.ok
    assert "certificate verify failed" in outcome.said
    assert stranger.log == []


def test_a_destination_that_is_a_stranger_gets_nothing(stranger: WebServer, url: str) -> None:
    refused = pytest.raises(TransportError, match="certificate verify failed")
    with WebApi(url, "Elasticsearch", key_scheme="ApiKey") as api, refused:
        api.ask("GET", "any")
    assert stranger.log == []
