"""A service that starts quickly is started before each run of a load, with its data; the recipe may say otherwise."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from prony.app.runner import run_here
from prony.instruments.requests import read_requests
from prony.load.processes import ClientProcesses
from prony.model.event import Event
from prony.model.result import Result, ResultState
from prony.recipe import loads
from prony.store.folder import read_nouns
from prony.store.home import Home
from servers.binaries import AbsentError
from servers.needs import lack
from servers.redis import find_redis

Run = Callable[..., list[Result]]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Return what loads a real Redis with GETs, which fail where the keys were not set before."""
    try:
        program = str(find_redis())
    except AbsentError as exc:
        lack("redis", str(exc))

    def run_recipe(
        *,
        restart: str | None = None,
        settings: dict[str, Any] | None = None,
        matrix: dict[str, Any] | None = None,
        on_event: Callable[[Event], None] = lambda _: None,
        **load: Any,
    ) -> list[Result]:
        workload = {
            "kind": "service", "service": "redis", "settings": {"program": program, **(settings or {})},
            "options": {"operation": "get", "value_size": 10, "key_count": 50},
        }  # fmt: skip
        recipe = {
            "name": "restarted", "workload": workload | ({"restart": restart} if restart else {}),
            "load": {"requests": 60, "closed": {"concurrency": 2}, "repeats": 3, "warmup": "none"} | load,
            **({"matrix": matrix} if matrix else {}),
        }  # fmt: skip
        jobs = loads(json.dumps(recipe), "json", "the test").jobs("x1")
        home, out = Home(tmp_path / "home").create(), tmp_path / "out"
        with ClientProcesses(ahead=1) as clients:
            run_here(jobs, out, home, on_event=on_event, clients=clients)
        return [read_nouns(out if len(jobs) == 1 else out / job.id).result for job in jobs]

    return run_recipe


def servers_that_ran(folder: Path) -> list[str]:
    """Return which process each log is of, in the order of their names."""
    logs = sorted((folder / "logs").glob("service*.log"))
    return [log.read_text().partition("pid=")[2].partition(",")[0] for log in logs]


def all_answered(result: Result) -> bool:
    sides = [one.client for one in result.repetitions]
    return all(side is not None and side.causes == {"ok": 60} for side in sides)


def test_each_run_gets_a_new_server_that_holds_its_data(run: Run, tmp_path: Path) -> None:
    (result,) = run(restart="each-run")
    assert result.service is not None
    assert result.service.restart == "each-run"
    assert result.state is ResultState.COMPLETE
    assert all_answered(result)
    assert all(one.service_start_ms for one in result.repetitions)
    assert sorted(path.name for path in (tmp_path / "out/logs").glob("service*.log")) == [
        "service-2.log", "service-3.log", "service.log",
    ]  # fmt: skip
    assert len(set(servers_that_ran(tmp_path / "out"))) == 3
    assert "left behind" not in result.service.notes


def test_one_server_serves_all_runs_where_the_recipe_says_once(run: Run, tmp_path: Path) -> None:
    (result,) = run(restart="once", repeats=2)
    assert result.service is not None
    assert (result.service.restart, len(servers_that_ran(tmp_path / "out"))) == ("once", 1)
    first, second = result.repetitions
    assert first.service_start_ms
    assert second.service_start_ms is None


@pytest.mark.slow
def test_every_level_of_a_sweep_gets_new_servers(run: Run, tmp_path: Path) -> None:
    levels = run(restart="each-run", repeats=2, matrix={"load.closed.concurrency": [1, 2]})
    assert len(levels) == 2
    assert all(all_answered(one) for one in levels)
    assert len({pid for one in levels for pid in servers_that_ran(tmp_path / "out" / one.job_id)}) == 5


def test_a_start_that_fails_later_fails_its_runs_and_keeps_the_others(run: Run, tmp_path: Path) -> None:
    count = shlex.quote(str(tmp_path / "count"))
    third_fails = f"echo start >> {count}; test $(wc -l < {count}) -lt 3"
    (result,) = run(restart="each-run", repeats=5, settings={"before": [shlex.join(["sh", "-c", third_fails])]})
    # Two starts that failed in a row are enough.
    assert [one.state for one in result.repetitions] == ["ok", "ok", "failed", "failed"]
    assert result.state is ResultState.COMPLETE
    failure = result.repetitions[2].failure
    assert failure is not None
    assert (failure.phase, failure.code) == ("start", "service_failed")
    assert set(read_requests(tmp_path / "out")["repetition"]) == {0, 1}


def test_a_stop_while_the_service_starts_again_keeps_the_runs_before(run: Run, tmp_path: Path) -> None:
    def leave(event: Event) -> None:
        if event.kind == "repetition" and event.done == 1 and not event.state:
            raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        run(restart="each-run", on_event=leave)
    result = read_nouns(tmp_path / "out").result
    assert result.state is ResultState.PARTIAL
    assert [one.state for one in result.repetitions] == ["ok"]
    assert read_requests(tmp_path / "out").height == 60


def test_a_search_holds_all_probes_against_one_server(run: Run, tmp_path: Path) -> None:
    (result,) = run(
        requests=None, closed=None, repeats=1, slo={"e2e_ms.p50": 60_000},
        search={"low": 1, "high": 2, "probe": "200ms"},
    )  # fmt: skip
    assert result.service is not None
    assert result.service.restart == "once"
    assert len(result.repetitions) > 1
    assert len(servers_that_ran(tmp_path / "out")) == 1


def test_a_cache_that_is_to_be_warm_is_filled_for_every_new_server(tmp_path: Path) -> None:
    mock = [sys.executable, "-m", "prony", "mock", "--port", "{port}", "--ttft", "2ms", "--prefix-cache", "4"]
    recipe = {
        "name": "warm",
        "workload": {
            "kind": "service", "service": "command", "driver": "openai-chat", "restart": "each-run",
            "settings": {"command": mock}, "prompts": {"input_words": 40, "output_tokens": 2},
        },
        "load": {"requests": 4, "repeats": 2, "warmup": "none", "cache": "warm"},
    }  # fmt: skip
    jobs = loads(json.dumps(recipe), "json", "the test").jobs("x1")
    with ClientProcesses(ahead=1) as clients:
        run_here(jobs, tmp_path / "out", Home(tmp_path / "home").create(), on_event=lambda _: None, clients=clients)
    result = read_nouns(tmp_path / "out").result
    assert result.state is ResultState.COMPLETE
    shares = [one.cache.hit_share for one in result.repetitions if one.cache is not None]
    # A server that was started for this run has nothing in its cache but what was filled in.
    assert len(shares) == 2
    assert all(share is not None and share > 0.5 for share in shares)


def test_an_llm_keeps_one_server_where_the_recipe_says_nothing(tmp_path: Path) -> None:
    mock = [sys.executable, "-m", "prony", "mock", "--port", "{port}", "--ttft", "2ms"]
    recipe = {
        "name": "kept",
        "workload": {
            "kind": "service", "service": "command", "driver": "openai-chat",
            "settings": {"command": mock}, "prompts": {"output_tokens": 2},
        },
        "load": {"requests": 2, "repeats": 2, "warmup": "none"},
    }  # fmt: skip
    jobs = loads(json.dumps(recipe), "json", "the test").jobs("x1")
    with ClientProcesses(ahead=1) as clients:
        run_here(jobs, tmp_path / "out", Home(tmp_path / "home").create(), on_event=lambda _: None, clients=clients)
    result = read_nouns(tmp_path / "out").result
    assert result.service is not None
    assert result.service.restart == "once"
    assert [one.service_start_ms is None for one in result.repetitions] == [False, True]
