"""A load that goes wrong on the side of those who send: what was recorded until then is kept, and the run failed."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest

from prony.app.results import summary_of
from prony.app.runner import run_here
from prony.instruments.requests import read_requests
from prony.load.mock.start import MockOptions, serve_mock
from prony.load.processes import ClientProcesses
from prony.model.event import Event
from prony.model.job import Job
from prony.model.result import Result, ResultState
from prony.recipe import loads
from prony.store.folder import read_nouns
from prony.store.home import Home
from servers.process import commands

MS = 10**6


def job(url: str, **load: Any) -> Job:
    workload = {"kind": "service", "endpoint": url, "driver": "openai-chat", "prompts": {"output_tokens": 4}}
    text = json.dumps({"name": "loaded", "workload": workload, "load": {"repeats": 1, "warmup": "none"} | load})
    return loads(text, "json", "the test").jobs("x1")[0]


def clients() -> list[psutil.Process]:
    """Return the client processes below this one."""
    return [one for one, command in commands(psutil.Process().children()) if "prony.load.client" in command]


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL")
def test_a_client_that_is_killed_fails_the_run_and_what_all_recorded_is_kept(tmp_path: Path) -> None:
    killed: list[int] = []
    out = tmp_path / "result"

    def hurt(event: Event) -> None:
        # So many that both have had their turn.
        if event.live is not None and event.live.done > 400 and not killed:
            killed.append(clients()[0].pid)
            os.kill(killed[0], signal.SIGKILL)

    with serve_mock(MockOptions(ttft_ns=2 * MS, itl_ns=MS, tokens=4)) as mock, ClientProcesses(ahead=2) as ahead:
        asked = job(mock.url, closed={"concurrency": 4}, clients={"processes": 2}, duration="5m")
        run_here([asked], out, Home(tmp_path / "home").create(), on_event=hurt, clients=ahead)
    result: Result = read_nouns(out).result
    (repetition,) = result.repetitions
    rows = read_requests(out)
    assert killed
    assert (result.state, repetition.state) == (ResultState.FAILED, "failed")
    assert repetition.failure is not None
    assert "exit code -9" in repetition.failure.message
    assert set(rows["client"]) == {0, 1}
    assert repetition.client is not None
    assert sum(repetition.client.causes.values()) == rows.height > 0
    assert summary_of(out).used == ()
    assert not clients()


def test_whoever_shows_a_load_and_goes_stops_it_and_its_rows_are_kept(tmp_path: Path) -> None:
    out = tmp_path / "result"

    def gone(event: Event) -> None:
        if event.live is not None and event.live.done:
            raise BrokenPipeError

    with serve_mock(MockOptions(ttft_ns=2 * MS, itl_ns=MS, tokens=4)) as mock, ClientProcesses(ahead=1) as ahead:
        asked = job(mock.url, closed={"concurrency": 2}, duration="5m")
        with pytest.raises(BrokenPipeError):
            run_here([asked], out, Home(tmp_path / "home").create(), on_event=gone, clients=ahead)
    assert read_nouns(out).result.state is ResultState.PARTIAL
    assert read_requests(out).height > 0
    assert not clients()


def test_a_client_that_nobody_took_ends_with_the_block() -> None:
    with ClientProcesses(ahead=1) as ahead:
        waiting = clients()
        taken = ahead.take()
        assert [one.pid for one in waiting] == [taken.pid]
        taken.end()
        ClientProcesses(ahead=2).__exit__()
    assert not clients()


def test_a_service_that_says_no_to_everything_is_named_with_its_status(tmp_path: Path) -> None:
    out = tmp_path / "result"
    with serve_mock(MockOptions(errors=1.0)) as mock, ClientProcesses(ahead=1) as ahead:
        run_here(
            [job(mock.url, requests=20)], out, Home(tmp_path / "home").create(), on_event=lambda _: None, clients=ahead
        )
    failure = read_nouns(out).result.repetitions[0].failure
    assert failure is not None
    assert failure.message == "no request succeeded, warm-up included: 20 status 500"
    assert "the path, the method" in failure.hint
