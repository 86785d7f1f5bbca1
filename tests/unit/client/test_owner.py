"""Who is sent the owner's token: the server that wrote it, and nobody who merely answers in its place."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import pytest

from prony.client.owner import find_owner_token
from prony.errors import TransportError
from prony.store.home import Home
from prony.store.owner_token import CHALLENGE, PROOF, prove, write_owner_token
from servers.canned import Canned, document
from servers.prony import Served, prony_serving


@pytest.fixture(scope="module")
def owned(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with prony_serving(tmp_path_factory.mktemp("owned") / "home") as found:
        yield found


class _Relay(BaseHTTPRequestHandler):
    """Passes every question on to the real server and its answer back, and notes what it was sent."""

    behind = ""
    seen: list[dict[str, str]]

    def do_GET(self) -> None:
        headers = dict(self.headers.items())
        self.seen.append(headers)
        answer = httpx.get(self.behind + self.path, headers=headers, trust_env=False)
        self.send_response(answer.status_code)
        for name in ("Content-Type", PROOF):
            if name in answer.headers:
                self.send_header(name, answer.headers[name])
        self.send_header("Content-Length", str(len(answer.content)))
        self.end_headers()
        self.wfile.write(answer.content)

    def log_message(self, *words: object) -> None:
        pass


@contextmanager
def relay(behind: str) -> Iterator[tuple[str, list[dict[str, str]]]]:
    seen: list[dict[str, str]] = []
    handler = type("Handler", (_Relay,), {"behind": behind, "seen": seen})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as made:
        thread = threading.Thread(target=made.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{made.server_port}", seen
        made.shutdown()
        thread.join(30)


def test_the_server_that_wrote_it_is_known(owned: Served) -> None:
    assert find_owner_token(owned.url, Home(owned.home)) == owned.token
    by_name = owned.url.replace("127.0.0.1", "localhost")
    assert find_owner_token(by_name, Home(owned.home)) == owned.token


def test_a_server_of_another_home_gets_nothing(owned: Served, tmp_path: Path) -> None:
    other = Home(tmp_path).create()
    write_owner_token(other, "prony_another")
    assert find_owner_token(owned.url, other) is None


def test_who_passes_the_question_on_to_the_server_gets_nothing(owned: Served) -> None:
    with relay(owned.url) as (url, seen):
        assert find_owner_token(url, Home(owned.home)) is None
    assert len(seen) == 1
    assert CHALLENGE in seen[0]
    assert owned.token not in str(seen)


def test_a_stranger_who_took_the_port_gets_nothing(server: Canned, tmp_path: Path) -> None:
    home = Home(tmp_path).create()
    write_owner_token(home, "prony_secret")
    server.says(document("{}"))
    assert find_owner_token(server.url, home) is None
    assert "prony_secret" not in str(server.requests)


@pytest.mark.parametrize("url", ["http://192.0.2.1:7337", "https://prony.example.org"])
def test_a_server_elsewhere_is_not_even_asked(url: str, tmp_path: Path) -> None:
    home = Home(tmp_path).create()
    write_owner_token(home, "prony_secret")
    assert find_owner_token(url, home) is None


def test_where_nobody_answers_that_is_said(tmp_path: Path) -> None:
    home = Home(tmp_path).create()
    write_owner_token(home, "prony_secret")
    with pytest.raises(TransportError, match="cannot reach"):
        find_owner_token("http://127.0.0.1:9", home, attempts=1)


def test_a_home_without_one_asks_nobody(tmp_path: Path) -> None:
    assert find_owner_token("http://127.0.0.1:9", Home(tmp_path)) is None


def test_a_proof_is_for_one_question_and_one_address() -> None:
    one = prove("s", "n", "127.0.0.1", 7337)
    assert one == prove("s", "n", "::ffff:127.0.0.1", 7337)
    others = [("t", "n", "127.0.0.1", 7337), ("s", "m", "127.0.0.1", 7337), ("s", "n", "::1", 7337)]
    assert one not in {prove(*other) for other in [*others, ("s", "n", "127.0.0.1", 7338)]}
