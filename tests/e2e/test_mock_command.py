"""`prony mock` as a person or a program starts it."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

WITHIN_S = 180


def started(*arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "prony", "mock", *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def line(mock: subprocess.Popen[str]) -> str:
    assert mock.stdout is not None
    return mock.stdout.readline()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_it_says_where_it_is_in_one_line_and_ends_as_the_server_does(number: int, code: int) -> None:
    with started("--json", "--ttft", "1ms", "--itl", "0", "--tokens", "3", "--errors", "0%") as mock:
        said = json.loads(line(mock))
        assert said["pid"] == mock.pid
        answer = httpx.post(f"{said['url']}/v1/completions", json={"prompt": "x"}, trust_env=False, timeout=WITHIN_S)
        assert answer.json()["usage"]["completion_tokens"] == 3
        assert httpx.get(f"{said['url']}/truth", trust_env=False, timeout=WITHIN_S).json()["requests"] == 1
        mock.send_signal(number)
        rest, errors = mock.communicate(timeout=WITHIN_S)
    assert mock.returncode == code
    assert (rest, errors) == ("", "")


def test_it_ends_while_streams_are_on_their_way() -> None:
    with started("--json", "--tokens", "100000") as mock:
        url = json.loads(line(mock))["url"]
        with httpx.stream("POST", f"{url}/api/generate", json={}, trust_env=False, timeout=WITHIN_S) as answer:
            next(answer.iter_raw())
            mock.send_signal(signal.SIGTERM)
            mock.wait(WITHIN_S)
    assert mock.returncode == 0


def test_a_person_is_told_where_it_is() -> None:
    with started() as mock:
        assert line(mock).startswith("mock at http://127.0.0.1:")
        assert line(mock).strip().endswith("/truth")
        mock.send_signal(signal.SIGTERM)
        mock.wait(WITHIN_S)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--ttft", "50"], "--ttft: '50' is not a duration"),
        (["--errors", "1"], "--errors: '1' is not a percentage"),
        (["--tokens", "0"], "cannot send 0 tokens"),
        (["--host", "no.such.host.invalid"], "not an address"),
    ],
)
def test_options_that_are_wrong_are_the_callers_fault(arguments: list[str], told: str) -> None:
    with started(*arguments) as mock:
        _, errors = mock.communicate(timeout=WITHIN_S)
    assert mock.returncode == 2
    assert told in errors


def test_a_place_that_is_taken_is_not(tmp_path: Path) -> None:
    path = tmp_path / "taken"
    path.write_text("")
    with started("--json", "--unix", str(path)) as mock:
        out, _ = mock.communicate(timeout=WITHIN_S)
    assert mock.returncode == 3
    assert json.loads(out)["error"]["code"] == "address_unavailable"


def test_refuse_alone_refuses_every_connection() -> None:
    with started("--json", "--refuse") as mock:
        url = json.loads(line(mock))["url"]
        with pytest.raises(httpx.HTTPError):
            httpx.get(url, trust_env=False, timeout=WITHIN_S)
        mock.send_signal(signal.SIGTERM)
        mock.wait(WITHIN_S)
