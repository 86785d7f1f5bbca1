"""Loads as a person asks for them, against a server of known timing and against a Redis that Prony starts."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import psutil
import pytest

from prony.load.mock.start import Mock, MockOptions, serve_mock
from prony.plugins.services.redis import Redis
from servers.commands import call_prony as prony
from servers.process import wait_all_gone

MS = 1_000_000


@pytest.fixture(scope="module")
def mock() -> Iterator[Mock]:
    with serve_mock(MockOptions(ttft_ns=20 * MS, itl_ns=5 * MS, tokens=16)) as found:
        yield found


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PRONY_HOME", str(tmp_path / "home"))
    (tmp_path / "scratch").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "scratch"))
    return tmp_path / "home"


def recipe(folder: Path, **sections: Any) -> Path:
    path = folder / "recipe.json"
    path.write_text(json.dumps({"name": "loaded"} | sections))
    return path


def chat(mock: Mock, **more: Any) -> dict[str, Any]:
    return {"kind": "service", "endpoint": mock.url, "driver": "openai-chat", "prompts": {"output_tokens": 16}} | more


def samples(home: Path) -> pl.DataFrame:
    (found,) = home.rglob("samples.parquet")
    return pl.read_parquet(found)


def test_an_address_is_loaded_and_everything_is_recorded(mock: Mock, home: Path) -> None:
    mock.forget()
    done = prony("load", f"{mock.url}/x", "-c", "4", "-n", "500", "--json", "--no-report")
    (job,) = json.loads(done.stdout)["jobs"]
    assert job["estimates"]["error_rate.mean"]["value"] == 0
    assert job["estimates"]["throughput_per_s.p50"]["value"] > 0
    rows = samples(home)
    assert rows.height == 500
    assert rows["index"].to_list() == list(range(500))
    assert set(rows["cause"].cast(pl.String)) == {"ok"}
    assert mock.truth()["requests"] >= 500
    listed = json.loads(prony("list", "--json").stdout)
    assert [one["name"] for one in listed] == ["load"]


def test_an_open_load_counts_from_when_each_request_was_due(mock: Mock, home: Path) -> None:
    prony("load", f"{mock.url}/x", "--rate", "200", "--arrivals", "constant", "-d", "1s", "--no-report")
    rows = samples(home)
    assert rows.height == 200
    assert (rows["begin_ns"] == rows["due_ns"]).all()
    gaps = set(rows["due_ns"].diff().drop_nulls())
    assert gaps <= {5 * MS - 1, 5 * MS, 5 * MS + 1}
    assert (rows["sent_ns"] >= rows["due_ns"]).all()


def test_a_stream_has_its_true_times_and_the_servers_own_counts(mock: Mock, home: Path, tmp_path: Path) -> None:
    load = {"closed": {"concurrency": 2}, "requests": 20, "repeats": 1, "slo": {"ttft_ms": 60_000}}
    done = prony("run", recipe(tmp_path, workload=chat(mock), load=load), "--json", "--no-report")
    (job,) = json.loads(done.stdout)["jobs"]
    # The bounds are wide because another test may hog the machine, so that the mock sends a token late and the next at
    # once; a wrong clock would be off by far more.
    assert 19 <= job["estimates"]["ttft_ms.p50"]["value"] <= 2000
    assert 0.1 <= job["estimates"]["tpot_ms.p50"]["value"] <= 2000
    assert job["estimates"]["goodput_share.p50"]["value"] == 1
    rows = samples(home)
    assert set(rows["output_tokens"]) == {16}
    assert all(len(stamps) == 16 for stamps in rows["token_ns"])


def test_every_failure_is_counted_by_its_cause_and_none_as_throughput(home: Path, tmp_path: Path) -> None:
    faults = MockOptions(ttft_ns=0, itl_ns=0, tokens=8, errors=0.2, truncate=0.2, garbage=0.2, seed=5)
    with serve_mock(faults) as bad:
        load = {"closed": {"concurrency": 4}, "requests": 200, "repeats": 1, "warmup": "none"}
        done = prony("run", recipe(tmp_path, workload=chat(bad), load=load), "--json", "--no-report", code=1)
        sent = bad.truth()["errors_sent"]
    (job,) = json.loads(done.stdout)["jobs"]
    rows = samples(home)
    causes = dict(rows.group_by(pl.col("cause").cast(pl.String)).len().iter_rows())
    assert sum(causes.values()) == 200
    assert causes["status"] == sent["errors"]
    assert causes["truncated"] == sent["truncate"]
    assert causes["malformed"] == sent["garbage"]
    assert job["verdict"]["grade"] != "valid"
    assert job["estimates"]["error_rate.mean"]["value"] == pytest.approx(1 - causes["ok"] / 200)


def _loaded_with_errors(folder: Path, share: float, **load: Any) -> tuple[int, str, dict[str, Any]]:
    """Load a mock that fails such a share; return the exit code, what was said and what the mock knows to be true."""
    with serve_mock(MockOptions(ttft_ns=0, itl_ns=0, tokens=2, errors=share, seed=5)) as bad:
        asked = {"closed": {"concurrency": 2}, "requests": 200, "repeats": 2, "warmup": "none"} | load
        done = prony("run", recipe(folder, workload=chat(bad), load=asked), "--no-report", code=None)
        return done.returncode, done.stderr, bad.truth()


@pytest.mark.slow
def test_a_load_with_many_failed_requests_fails_unless_the_recipe_allows_them(tmp_path: Path) -> None:
    code, said, truth = _loaded_with_errors(tmp_path, 0.3)
    failed = truth["errors_sent"]["errors"]
    assert code == 1
    assert f"{failed} of 400 requests failed" in said
    assert "the recipe allows 5 %: exit code 1" in said
    assert _loaded_with_errors(tmp_path, 0.3, errors="any")[0] == 0
    assert _loaded_with_errors(tmp_path, 0.3, errors="60%")[0] == 0
    assert _loaded_with_errors(tmp_path, 0.02)[0] == 0
    assert _loaded_with_errors(tmp_path, 0.02, errors="none")[0] == 1


@pytest.mark.slow
def test_a_candidate_of_which_all_requests_failed_fails_the_comparison(tmp_path: Path) -> None:
    assert _loaded_with_errors(tmp_path, 0.0, repeats=1)[0] == 0
    assert _loaded_with_errors(tmp_path, 1.0, repeats=1)[0] == 1
    candidate, baseline = (one["id"] for one in json.loads(prony("list", "--json").stdout))
    done = prony("compare", baseline, candidate, "--anyway", code=1)
    assert "all requests of the candidate failed" in done.stdout.replace("\n", " ")
    back = prony("compare", candidate, baseline, "--anyway")
    assert "regression" not in back.stdout


def test_a_server_that_is_not_there_is_a_failed_job_and_not_a_fast_one(home: Path) -> None:
    done = prony("load", "http://127.0.0.1:1/x", "-c", "2", "-d", "2s", "--json", "--no-report", code=1)
    (job,) = json.loads(done.stdout)["jobs"]
    assert job["result"]["failure"]["code"] == "all_failed"
    assert "no request succeeded, warm-up included: " in job["result"]["failure"]["message"]
    assert "refused" in job["result"]["failure"]["message"]
    assert "address and the port" in job["result"]["failure"]["hint"]
    assert (samples(home)["cause"].cast(pl.String) == "refused").all()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["load", "ftp://host/x"], "no driver for"),
        (["load", "http://127.0.0.1:1", "--option", "bdy=x"], "did you mean body?"),
        (["load", "http://127.0.0.1:1", "--driver", "opnai-chat"], "did you mean openai-chat?"),
        (["load", "http://127.0.0.1:1", "-d", "30"], "needs a unit"),
        (["load", "http://127.0.0.1:1", "--arrivals", "poisson"], "add --rate"),
        (["services", "rediss"], "did you mean redis?"),
    ],
)
def test_what_is_wrong_is_said_with_a_hint_before_anything_is_sent(arguments: list[str], said: str, home: Path) -> None:
    done = prony(*arguments, code=2)
    assert said in done.stderr
    assert list(home.rglob("samples.parquet")) == []


@pytest.mark.slow
def test_a_search_finds_where_the_limit_is(mock: Mock, tmp_path: Path) -> None:
    """Every answer takes 95 ms whatever the load, so all loads hold one limit, and none holds the other."""
    search = {"over": "concurrency", "low": 1, "high": 4, "probe": "2s"}
    for limit, found in ((60_000, 4), (10, None)):
        load = {"search": search, "slo": {"e2e_ms.p90": limit}}
        path = recipe(tmp_path, workload=chat(mock), load=load)
        (job,) = json.loads(prony("run", path, "--json", "--no-report").stdout)["jobs"]
        held = job["estimates"].get("highest_load.p50", {}).get("value")
        assert held == found


def test_ctrl_c_keeps_what_was_measured(mock: Mock, home: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "prony", "load", f"{mock.url}/x", "-c", "2", "-d", "10m", "--no-report"]
    running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
    deadline = time.monotonic() + 120
    while not any(path.stat().st_size > 100_000 for path in (tmp_path / "scratch").rglob("*.records")):
        assert running.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.05)
    children = psutil.Process(running.pid).children(recursive=True)
    os.killpg(running.pid, signal.SIGINT)
    running.communicate(timeout=120)
    assert running.returncode == 130
    assert wait_all_gone(children) == []
    assert samples(home).height > 0
    assert json.loads(prony("list", "--json").stdout)[0]["state"] == "partial"


needs_redis = pytest.mark.skipif(
    (lacks := Redis().available(Redis.Options())) is not None, reason=f"no Redis here: {lacks}"
)


@needs_redis
def test_a_sweep_starts_a_redis_loads_it_and_leaves_nothing(home: Path) -> None:
    recipes = Path(__file__).parents[2] / "recipes"
    before = _orphaned_redis()
    done = prony(
        "run", recipes / "redis.yaml", "--clients", "1,3", "--set", "load.duration=2s",
        "--set", "load.repeats=1", "--json",
    )  # fmt: skip
    jobs = json.loads(done.stdout)["jobs"]
    assert [job["cell"]["load.closed.concurrency"] for job in jobs] == [1, 3]
    for job in jobs:
        assert job["estimates"]["throughput_per_s.p50"]["value"] > 0
        assert job["estimates"]["error_rate.mean"]["value"] == 0
    assert _orphaned_redis() <= before
    report = Path(done.stderr.rpartition("report: ")[2].partition("\n")[0]).read_text()
    assert "Throughput against load" in report
    assert "the program was ready after" in report
    (log,) = {path.read_text() for path in home.rglob("service.log") if path.stat().st_size} or {""}
    assert "Ready to accept connections" in log
    prony("export", "last", "--format", "csv", "--to", home / "out")
    assert len(list((home / "out").glob("*.csv"))) == 2
    check_analysis(home)


def check_analysis(home: Path) -> None:
    """Look at what is said of a sweep of two levels, whatever else this machine does meanwhile."""
    (curve,) = json.loads(prony("sweep-report", "last", "--slo", "e2e_ms.p99=60000", "--json").stdout)["curves"]
    assert [level["load"] for level in curve["levels"]] == [1, 3]
    assert (curve["noun"], curve["knee"]["state"]) == ("users", "refused")
    used = []
    for level in curve["levels"]:
        assert level["checks"][0]["key"] == "e2e_ms.p99"
        clues = {clue["series"]: clue for clue in level["bottleneck"]["clues"]}
        used.append(clues["service_cores"]["value"])
        assert {"client_cpu_busiest", "cpu_busy"} <= set(clues)
    # Redis works in one thread, and a few beside it. The kernel counts in hundredths of a second: in a window that
    # begins late, on a busy machine, one level may have none.
    assert max(used) > 0
    assert all(0 <= cores < 3 for cores in used)
    page = home / "sweep.html"
    prony("sweep-report", "last", "--format", "html", "--out", page)
    assert "Throughput against load" in page.read_text()
    matrix = json.loads(prony("matrix", "last", "--rows", "concurrency", "--columns", "service", "--json").stdout)
    assert (matrix["rows"], matrix["columns"], matrix["metric"]) == (["1", "3"], ["redis"], "e2e_ms.p50")
    told = prony("gates", "last", "--gate", "e2e_m.p50 <= 3", code=2).stderr
    assert "did you mean e2e_ms?" in told
    gates = ["gates", "last", "--gate", "verdict == void", "--gate", "verdict != void", "--json"]
    found = json.loads(prony(*gates, code=1).stdout)
    assert sorted(one["state"] for one in found["outcomes"]) == ["failed", "failed", "passed", "passed"]


def _orphaned_redis() -> set[int]:
    """Return the Redis servers whose parent is gone, as one that was left behind; other tests have theirs meanwhile."""
    running = psutil.process_iter(["name", "ppid"])
    return {one.pid for one in running if "redis-server" in (one.info["name"] or "") and one.info["ppid"] == 1}
