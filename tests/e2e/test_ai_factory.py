"""AI Factory recipes as a person runs them here, on real servers, and their results out and in again."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from prony.app.bench import Bench
from prony.model.estimate import Grade
from prony.plugins.services.postgres import Postgres, PostgresOptions
from prony.plugins.services.redis import Redis, RedisOptions
from prony.store.home import Home
from servers.ai_factory import sweep
from servers.commands import call_prony as prony
from servers.ports import free_port


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PRONY_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def recipe(folder: Path, **sections: Any) -> Path:
    path = folder / "recipe.yaml"
    target = {"configuration": {"target": "meluxina"}}
    path.write_text(json.dumps(target | sections))  # JSON is YAML too
    return path


def samples(home: Path) -> pl.DataFrame:
    (found,) = home.rglob("samples.parquet")
    return pl.read_parquet(found)


def users_of(job: dict[str, Any]) -> int:
    return int(job["cell"]["load.closed.concurrency"])


def rows_of(job: dict[str, Any]) -> int:
    """Return how many requests the only run of a job sent."""
    (run,) = job["result"]["repetitions"]
    return int(run["phases"]["measure"]["count"])


def needs(lacks: str | None) -> None:
    if lacks is not None:
        pytest.skip(lacks)


def redis(folder: Path, requests: int = 200) -> Path:
    needs(Redis().available(RedisOptions()))
    return recipe(
        folder,
        service={"type": "redis", "name": "redis-stress", "partition": "cpu", "settings": {"maxmemory": "64mb"}},
        client={
            "type": "redis_stress",
            "time_limit": "00:10:00",
            "settings": {"num_requests": requests, "value_size_bytes": 64},
        },
        benchmarks={"num_clients": 2},
    )


def test_its_redis_recipe_runs_here_and_nothing_of_it_is_lost(tmp_path: Path, home: Path) -> None:
    done = prony("run", redis(tmp_path), "--on", "local", "--json", "--no-report", "--set", "load.repeats=1")
    (job,) = json.loads(done.stdout)["jobs"]
    assert job["result"]["service"]["settings"]["maxmemory"] == str(64 * 2**20)
    rows = samples(home)
    assert rows.height == 2 * 2 * 200
    assert dict(rows["operation"].cast(pl.String).value_counts().iter_rows()) == {"get": 400, "set": 400}
    assert "partition: is passed to the target's queue" in done.stderr
    logs = prony("logs", "last")
    assert re.search(r"^\S+ service\.log .*Ready to accept connections", logs.stdout, re.MULTILINE)
    # Connections that stay, and no process for each request.
    assert [run["client"]["connections_opened"] for run in job["result"]["repetitions"]] == [2]


@pytest.mark.slow
def test_three_recipes_of_a_sweep_are_its_levels_on_one_curve(tmp_path: Path) -> None:
    needs(Redis().available(RedisOptions()))
    ids = []
    for clients, text in sweep("redis").items():
        path = tmp_path / f"{clients}.yaml"
        path.write_text(text)
        once = ("--json", "--no-report", "--set", "load.repeats=1")
        told = json.loads(prony("run", path, "--on", "local", *once).stdout)
        ids.append(told["experiment"]["id"])
        assert {one["phases"]["measure"]["count"] for one in told["jobs"][0]["result"]["repetitions"]} == {
            clients * 1000
        }
    (curve,) = json.loads(prony("sweep-report", *ids, "--json").stdout)["curves"]
    assert [level["load"] for level in curve["levels"]] == [1, 2, 4]
    assert "Throughput against load" in prony("sweep-report", *ids).stdout
    same = prony("sweep-report", ids[0], ids[0], code=2)
    assert "only one job with a level of load" in same.stderr


def test_each_of_so_many_clients_sends_what_the_recipe_says(tmp_path: Path) -> None:
    options = ("--clients", "1,2,4,8", "--on", "local", "--json", "--no-report", "--set", "load.repeats=1")
    told = json.loads(prony("run", redis(tmp_path, requests=500), *options).stdout)
    assert {users_of(job): rows_of(job) for job in told["jobs"]} == {1: 1000, 2: 2000, 4: 4000, 8: 8000}
    (curve,) = json.loads(prony("sweep-report", "last", "--json").stdout)["curves"]
    assert [level["load"] for level in curve["levels"]] == [1, 2, 4, 8]


def test_clients_of_several_requests_at_once_stay_clients(tmp_path: Path) -> None:
    port = free_port()
    served = {"command": f"{sys.executable} -m prony mock --port {port} --ttft 1ms --itl 0 --tokens 2", "port": port}
    client = {"type": "vllm_stress", "settings": {"model": "m", "num_requests": 20, "concurrent_requests": 2}}
    path = recipe(tmp_path, service=served, client=client, benchmarks={"num_clients": 1})
    options = ("--clients", "1,3", "--on", "local", "--json", "--no-report", "--set", "load.repeats=1")
    jobs = json.loads(prony("run", path, *options).stdout)["jobs"]
    assert [(users_of(job), rows_of(job)) for job in jobs] == [(2, 20), (6, 60)]


def test_a_load_that_its_time_limit_cuts_says_so_everywhere(tmp_path: Path) -> None:
    needs(Redis().available(RedisOptions()))
    client = {"type": "redis_stress", "time_limit": "00:00:01", "settings": {"num_requests": 10_000_000}}
    path = recipe(tmp_path, service={"type": "redis"}, client=client, benchmarks={"num_clients": 2})
    done = prony("run", path, "--on", "local", "--no-report", "--set", "load.repeats=1")
    assert ", cut" in done.stdout
    assert "of 40,000,000 requests were sent" in " ".join(done.stdout.split())
    (job,) = json.loads(prony("show", "last", "--json").stdout)["jobs"]
    assert job["result"]["repetitions"][0]["stopped_by"] == "time"
    assert "cut_by_time" in {reason["code"] for reason in job["verdict"]["reasons"]}
    assert job["estimates"]["throughput_per_s.p50"]["value"] > 0


def test_clients_that_write_no_request_have_no_numbers(tmp_path: Path) -> None:
    port = free_port()
    service = {"name": "files", "command": f"{sys.executable} -m http.server {port} --bind 127.0.0.1", "port": port}
    client = {"command": "curl -s $SERVICE_URL > page.html; echo Benchmark complete"}
    path = recipe(tmp_path, service=service, client=client, benchmarks={"num_clients": 2})
    done = prony("run", path, "--on", "local", "--json", "--no-report", "--set", "load.repeats=1")
    (job,) = json.loads(done.stdout)["jobs"]
    assert job["estimates"] == {}
    assert job["verdict"]["grade"] == "void"
    assert job["verdict"]["reasons"][0]["code"] == "no_requests"
    assert "None of 2 clients recorded a request" in " ".join(prony("show", "last").stdout.split())


def test_a_load_that_its_user_stops_shows_the_numbers_of_its_rows(tmp_path: Path) -> None:
    path = redis(tmp_path, requests=10_000_000)
    command = [sys.executable, "-m", "prony", "run", str(path), "--on", "local", "--no-report"]
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
        env={**os.environ, "TMPDIR": str(scratch)},
    ) as running:  # fmt: skip
        deadline = time.monotonic() + 120
        while not any(path.stat().st_size > 500_000 for path in scratch.rglob("*.records")):
            assert running.poll() is None, running.communicate()
            assert time.monotonic() < deadline, "no requests were recorded"
            time.sleep(0.05)
        os.killpg(running.pid, signal.SIGINT)
        out, err = running.communicate(timeout=120)
    assert running.returncode == 130, out + err
    assert ", stopped" in out
    (job,) = json.loads(prony("show", "last", "--json").stdout)["jobs"]
    assert job["result"]["repetitions"][0]["state"] == "cancelled"
    assert job["estimates"]["throughput_per_s.p50"]["value"] > 0
    assert "stopped" in {reason["code"] for reason in job["verdict"]["reasons"]}
    assert ", stopped" in prony("show", "last").stdout


def test_a_target_that_does_not_exist_is_refused_before_anything_starts(tmp_path: Path, home: Path) -> None:
    done = prony("run", redis(tmp_path), "--json", code=2)
    assert json.loads(done.stdout)["error"]["code"] == "unknown_target"
    assert not list(home.rglob("samples.parquet"))


def test_its_postgres_recipes_run_here(tmp_path: Path, home: Path) -> None:
    needs(Postgres().available(PostgresOptions()))
    service = {"type": "postgres", "name": "pg", "settings": {"tuning": {"shared_buffers": "32MB"}}}
    client = {"type": "postgres_stress", "settings": {"num_inserts": 100, "num_selects": 80}}
    path = recipe(tmp_path, service=service, client=client, benchmarks={"num_clients": 2})
    done = prony("run", path, "--on", "local", "--json", "--no-report", "--set", "load.repeats=1")
    (job,) = json.loads(done.stdout)["jobs"]
    assert job["result"]["service"]["settings"]["shared_buffers"] == "32MB"
    counts = dict(samples(home)["operation"].cast(pl.String).value_counts().iter_rows())
    assert counts == {"insert": 200, "point_lookup": 40, "range_scan": 40, "like_scan": 40, "aggregation": 40}
    assert set(samples(home)["cause"].cast(pl.String)) == {"ok"}


def test_pgbench_runs_here(tmp_path: Path, home: Path) -> None:
    needs(Postgres().available(PostgresOptions()))
    client = {"type": "pgbench", "settings": {"transactions": 20, "threads": 1}}
    path = recipe(tmp_path, service={"type": "postgres"}, client=client, benchmarks={"num_clients": 4})
    prony("run", path, "--on", "local", "--json", "--no-report", "--set", "load.repeats=1")
    assert samples(home).height == 80
    assert set(samples(home)["operation"].cast(pl.String)) == {"tpcb"}


def test_an_llm_recipe_streams_so_that_the_first_token_is_measured(tmp_path: Path, home: Path) -> None:
    port = free_port()
    service = {
        "name": "llm",
        "command": f"{sys.executable} -m prony mock --port {port} --ttft 20ms --itl 2ms --tokens 8",
        "port": port,
    }
    client = {
        "type": "vllm_stress",
        "settings": {"model": "m", "prompt": "what's this?", "num_requests": 10, "max_tokens": 8},
    }
    path = recipe(tmp_path, service=service, client=client, benchmarks={"num_clients": 2})
    done = prony("run", path, "--on", "local", "--json", "--no-report", "--set", "load.repeats=1")
    (job,) = json.loads(done.stdout)["jobs"]
    # A wrong clock or unit would be off by a thousand; a busy machine by less.
    assert 19 <= job["estimates"]["ttft_ms.p50"]["value"] <= 10_000
    rows = samples(home)
    assert rows.height == 20
    assert set(rows["output_tokens"]) == {8}
    assert set(rows["input_tokens"]) != {5}


def test_a_dead_server_is_no_success(tmp_path: Path) -> None:
    port = free_port()
    faults = f"{sys.executable} -m prony mock --port {port} --errors 1"
    client = {"type": "vllm_smoke", "settings": {"model": "m"}}
    path = recipe(tmp_path, service={"command": faults, "port": port}, client=client, benchmarks={"num_clients": 1})
    done = prony("run", path, "--on", "local", "--json", "--no-report", "--set", "load.repeats=1", code=1)
    (job,) = json.loads(done.stdout)["jobs"]
    assert job["result"]["failure"]["code"] in ("all_failed", "service_timeout", "service_failed")
    assert "throughput_per_s.p50" not in job["estimates"]


def test_raw_commands_on_both_sides_run_with_their_variables(tmp_path: Path, home: Path) -> None:
    port = free_port()
    row = '{"request_id": %d, "timestamp_start": %s, "timestamp_end": %s, "latency_s": 0.001, "success": true}\\n'
    command = (
        'test -n "$SERVICE_URL" || exit 9\n'
        "to=$BENCHMARK_OUTPUT_DIR/requests.jsonl\n"
        f"for i in 1 2 3; do now=$(date +%s.%N); printf '{row}' $i $now $now >> $to; done\n"
        "echo $CLIENT_NAME of $SERVICE_NAME on $SERVICE_PORT\n"
    )
    service = {"name": "files", "command": f"{sys.executable} -m http.server {port} --bind 127.0.0.1", "port": port}
    path = recipe(tmp_path, service=service, client={"command": command}, benchmarks={"num_clients": 2})
    prony("run", path, "--on", "local", "--json", "--no-report", "--set", "load.repeats=1")
    assert samples(home).height == 6
    words = sorted(one.read_text() for one in home.rglob("client-files-*.log"))
    assert words == [f"client-files-{number} of files on {port}\n" for number in (1, 2)]


def test_another_server_on_the_port_of_a_command_is_never_loaded(tmp_path: Path, home: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as stranger:
        port = stranger.getsockname()[1]
        service = {"name": "files", "command": f"{sys.executable} -m http.server {port} --bind 127.0.0.1", "port": port}
        path = recipe(tmp_path, service=service, client={"command": "true"}, benchmarks={"num_clients": 1})
        done = prony("run", path, "--on", "local", "--json", "--no-report", code=1)
    (job,) = json.loads(done.stdout)["jobs"]
    assert job["result"]["failure"]["code"] == "service_failed"
    assert job["result"]["repetitions"] == []


def test_a_word_of_another_program_leads_to_ours() -> None:
    assert "did you mean prony cancel?" in prony("stop", "last", code=2).stderr
    assert "did you mean prony menu?" in prony("ui", code=2).stderr


BOTTLENECKS = {
    "cpu-bound", "gpu-bound", "memory-bound", "network-bound", "disk-bound", "queueing", "healthy", "disturbed",
    "unknown",
}  # fmt: skip


def check_written(run: dict[str, Any], written: dict[str, Any]) -> None:
    """See that `run.json` has the recipe as it was written, and what it says of service and clients."""
    recipe = run["recipe"]
    assert recipe["raw_data"] == written
    assert {name: recipe[name] for name in written} == written
    assert (run["service"]["type"], run["service"]["partition"]) == ("redis", "cpu")
    assert [client["time_limit"] for client in run["clients"]] == ["00:10:00"] * 2
    assert recipe["client"]["settings"]["num_requests"] == 200


@pytest.mark.slow
def test_what_goes_out_comes_in_again_with_the_same_numbers(tmp_path: Path, home: Path) -> None:
    prony("run", redis(tmp_path), "--on", "local", "--json", "--no-report", "--set", "load.repeats=2")
    prony("export", "last", "--format", "ai-factory", "--to", tmp_path / "out")
    folders = sorted((tmp_path / "out" / "results").iterdir())
    assert len(folders) == 2
    runs = [json.loads((folder / "run.json").read_text()) for folder in folders]
    assert all(run["ended_at"] > run["created_at"] for run in runs)
    check_written(runs[0], json.loads((tmp_path / "recipe.yaml").read_text()))
    for folder in folders:
        lines = [json.loads(line) for line in (folder / "requests.jsonl").read_text().splitlines()[1:]]
        assert {line["operation"] for line in lines} == {line["operation_type"] for line in lines} == {"GET", "SET"}
        assert set(json.loads((folder / "summary.json").read_text())["operations"]) == {"GET", "SET"}
        report = json.loads((tmp_path / "out" / "reports" / folder.name / "report.json").read_text())
        assert report["bottleneck"]["clues"], report["bottleneck"]
        assert report["bottleneck"]["classification"] in BOTTLENECKS
        assert 'operation="GET"' in (tmp_path / "out" / "reports" / folder.name / "metrics.txt").read_text()
        assert "## Bottleneck" in (tmp_path / "out" / "reports" / folder.name / "report.md").read_text()
    assert len({run["recipe_hash"] for run in runs}) == 1
    told = json.loads(prony("import", tmp_path / "out", "--json").stdout)
    # Both are found, and both are of one load.
    both = prony("sweep-report", ",".join(one["id"] for one in told), "--json", code=2)
    assert json.loads(both.stdout)["error"]["code"] == "no_sweep"
    with Bench.open(Home(home)) as bench:
        for folder, one in zip(folders, told, strict=True):
            summary = json.loads((folder / "summary.json").read_text())
            (entry,) = bench.experiments.results(one["id"]).entries
            value = {key: found.value for key, found in entry.summary.estimates.items()}
            assert value["e2e_ms.p50"] == pytest.approx(summary["latency_s"]["p50"] * 1000, rel=1e-6)
            assert value["throughput_per_s.p50"] == pytest.approx(summary["requests_per_second"], rel=1e-3)
            assert entry.summary.verdict.grade is Grade.SUSPECT
        bench.experiments.export_requests(told[0]["id"], "ai-factory", tmp_path / "again")
    first, again = (to / "results" / folders[0].name / "summary.json" for to in (tmp_path / "out", tmp_path / "again"))
    assert json.loads(again.read_text()) == json.loads(first.read_text())
