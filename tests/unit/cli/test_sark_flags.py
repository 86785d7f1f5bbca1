"""`prony server --sark`: what is refused before anything is served."""

from __future__ import annotations

import logging
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from prony.cli.main import main


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRONY_HOME", str(tmp_path))


@pytest.fixture(autouse=True)
def log() -> Iterator[None]:
    """A server sends what is logged to its standard error, which is closed when a test here has ended."""
    root = logging.getLogger()
    handlers, level = root.handlers, root.level
    yield
    root.handlers = handlers
    root.setLevel(level)


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    code = main(["server", "--port", "0", *words])
    return code, capsys.readouterr().err


@pytest.mark.parametrize("address", ["0.0.0.0", "::"])
def test_it_is_not_served_beyond_this_machine_unless_the_risk_is_named(
    capsys: pytest.CaptureFixture[str], address: str
) -> None:
    code, said = refused(capsys, "--sark", "--sark-port", "0", "--sark-redis-port", "0", "--sark-bind", address)
    assert code == 2
    assert "can be reached from outside of this machine: anyone could" in " ".join(said.split())
    assert "--sark-open-to-anyone" in said


@pytest.mark.parametrize(
    "words", [("--redis", "redis://127.0.0.1:6379/0"), ("--sark-open-to-anyone",)], ids=lambda words: words[0]
)
def test_a_flag_of_sark_without_sark_is_refused(capsys: pytest.CaptureFixture[str], words: tuple[str, ...]) -> None:
    code, said = refused(capsys, *words)
    assert (code, "needs --sark" in said) == (2, True)


@pytest.mark.parametrize("url", ["http://127.0.0.1:6379", "nonsense", "redis://127.0.0.1:port/0"])
def test_an_address_that_is_no_redis_is_refused(capsys: pytest.CaptureFixture[str], url: str) -> None:
    code, said = refused(capsys, "--sark", "--sark-port", "0", "--redis", url)
    assert (code, "is not the address of a Redis" in said) == (2, True)


@pytest.mark.parametrize("flag", ["--sark-port", "--sark-redis-port"])
def test_a_port_that_there_is_not_is_refused(capsys: pytest.CaptureFixture[str], flag: str) -> None:
    code, said = refused(capsys, "--sark", flag, "70000")
    assert (code, "70000 is not a port" in said) == (2, True)


def test_where_a_redis_may_listen_already_it_is_said_how_to_use_it(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        code, said = refused(capsys, "--sark", "--sark-port", "0", "--sark-redis-port", port)
    assert code == 3
    assert f"--redis redis://127.0.0.1:{port}/0" in said
