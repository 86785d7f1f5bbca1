"""A real Prometheus reads a real server and agent: alert rules hold, and every panel of every dashboard has data."""

from __future__ import annotations

import json
import math
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from store.histories import fill, numbers

from chaos.fleet import Fleet, answers, fleet
from prony.app import monitoring
from prony.client import Client
from prony.model.access import NewToken, Role
from prony.model.queue import JobState, Submission
from prony.store.home import Home
from prony.store.store import Store
from servers.needs import lack
from servers.ports import free_port
from servers.waiting import wait_for
from tools.dashboards import DASHBOARDS, FOLDER, Dashboard, render

ROOT = Path(__file__).parents[2]
# Prometheus reads once a second: who waits for it need not ask fifty times.
_LOOK_S = 0.3
SHORT = """
name: small
workload: {kind: model, model: "zoo:noop", engine: onnxruntime, threads: 1}
measure: {runs: 5, repeats: 2, warmup: 1, check: false, isolation: fork}
"""
LOAD = """
name: load
workload:
  kind: service
  endpoint: http://127.0.0.1:PORT
  driver: openai-chat
  task: synthetic
  prompts: {input_words: 10, output_tokens: 8}
load: {open: {rate: 5}, duration: 600s, repeats: 2}
"""
OVER_JOB = (JobState.COMPLETE, JobState.FAILED, JobState.PARTIAL)
# Counters that a machine without a GPU, sensors and energy counters lacks; the real probes read all others.
PROBE = """
import time

class PretendGpu:
    name = "pretend_gpu"
    def available(self): return None
    def watch(self, pids): pass
    def close(self): pass
    def read(self):
        now = time.monotonic()
        return {
            "frequency_mean_mhz": 3000.0, "temperature_max_c": 50.0, "energy_package_0_uj_total": now * 1e7,
            "pressure_cpu_us_total": now * 1e3, "network_received_bytes_total": now, "disk_read_bytes_total": now,
            "gpu0_busy": 0.5, "gpu0_memory_used_mib": 100.0, "gpu0_power_w": 90.0, "gpu0_temperature_c": 40.0,
            "gpu0_sm_mhz": 1500.0, "gpu0_held_power_ns_total": now * 1e6,
        }
"""


def program(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        lack("prometheus", f"{name} is not installed")
    return found


# Rules and configuration


def test_the_configuration_and_the_rules_are_what_prometheus_takes(tmp_path: Path) -> None:
    promtool = program("promtool")
    monitoring.write_files(tmp_path, "https://prony.example.org/below", "secret")
    for command in (["check", "config", str(tmp_path / monitoring.CONFIG)],
                    ["check", "rules", str(ROOT / "deploy" / "prometheus" / "rules.yml")]):  # fmt: skip
        done = subprocess.run([promtool, *command], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


def test_each_alert_is_raised_in_trouble_and_only_then() -> None:
    tests = ROOT / "deploy" / "prometheus" / "rules_test.yml"
    done = subprocess.run(
        [program("promtool"), "test", "rules", str(tests)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    alerts = {rule["alert"] for group in yaml.safe_load((tests.parent / "rules.yml").read_text())["groups"]
              for rule in group["rules"]}  # fmt: skip
    for case in yaml.safe_load(tests.read_text())["tests"]:
        assert {one["alertname"] for one in case["alert_rule_test"]} == alerts, case["name"]


# Dashboards


@dataclass
class Watched:
    """A fleet with a Prometheus that reads it."""

    fleet: Fleet
    client: Client
    prometheus: httpx.Client

    def ask(self, path: str, **words: Any) -> Any:
        found = self.prometheus.get(f"/api/v1/{path}", params=words).json()
        assert found["status"] == "success", (words, found)
        return found["data"]

    def has(self, expr: str) -> bool:
        time.sleep(_LOOK_S)
        return bool(self.query(expr))

    def query(self, expr: str) -> list[dict[str, Any]]:
        return list(self.ask("query", query=expr)["result"])


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    folder = tmp_path_factory.mktemp("watched")
    prometheus = program("prometheus")
    with ExitStack() as stack:
        made = stack.enter_context(fleet(folder))
        made.extra["FLEET_ENGINE"] = "onnxruntime"
        made.lease_ttl = "30s"
        with Store.open(Home(made.server_home).create()) as store:
            fill(store, numbers(5))  # what is measured on a busy machine is void, and no result to show
        made.add_server().start()
        made.wait_ready()
        made.extra["PYTHONPATH"] = install_probe(folder / "probe")
        made.add_agent(made.url, options=("--kinds", "model,service", "--metrics-port", "0")).start()
        del made.extra["PYTHONPATH"]  # the other commands are forked, which costs less
        plan = monitoring.MonitorPlan(prometheus, folder / "monitor", free_port())
        client = stack.enter_context(Client(made.url))
        token = client.tokens.add(NewToken(name="prometheus", role=Role.VIEWER)).secret
        monitoring.write_files(plan.folder, made.url, token)
        scrape_often(plan.folder / monitoring.CONFIG)
        stack.enter_context(monitoring.running_prometheus(plan, monitoring.is_prometheus_ready))
        yield Watched(made, client, stack.enter_context(httpx.Client(base_url=plan.url, timeout=60, trust_env=False)))


def install_probe(place: Path) -> str:
    """Write a package with one more probe; return the path on which it is found."""
    info = place / "pretend_gpu-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: pretend_gpu\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[prony.probes]\npretend_gpu = pretend_gpu:PretendGpu\n")
    (place / "pretend_gpu.py").write_text(PROBE)
    return str(place)


def scrape_often(config: Path) -> None:
    """Have Prometheus read every second, so that a test need not wait."""
    written = yaml.safe_load(config.read_text())
    written["global"]["scrape_interval"] = "1s"
    written["scrape_configs"][1]["http_sd_configs"][0]["refresh_interval"] = "1s"
    config.write_text(yaml.safe_dump(written))


@pytest.fixture(scope="module")
def loaded(watched: Watched) -> Iterator[Watched]:
    """The same with a result in a history, and with a load that runs."""
    wait_for(lambda: watched.has("count(up == 1) == 2"), "Prometheus to read the server and the agent")
    port = free_port()
    command = [sys.executable, "-m", "prony", "mock", "--port", str(port)]
    environment = watched.fleet.environment(watched.fleet.folder / "mock")
    mock = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        done = watched.client.experiments.submit(Submission(text=SHORT)).experiment.id
        wait_for(lambda: job_of(watched, done).state in OVER_JOB, "the short job")
        assert job_of(watched, done).state is JobState.COMPLETE, watched.fleet.agents[0].said()
        wait_for(lambda: watched.has("prony_result"), "its result")
        wait_for(lambda: answers(f"http://127.0.0.1:{port}/health"), "the mock")
        running = watched.client.experiments.submit(Submission(text=LOAD.replace("PORT", str(port)))).experiment.id
        wait_for(lambda: watched.has("prony_job_latency_seconds"), "figures of the load")
        wait_for(lambda: watched.has("prony_job_repetitions_done"), "its progress")
        yield watched
        watched.client.experiments.cancel(running)
    finally:
        mock.send_signal(signal.SIGTERM)
        mock.wait(60)


def job_of(watched: Watched, experiment_id: str) -> Any:
    (job,) = watched.client.jobs.page(experiment=experiment_id).items
    return job


@pytest.mark.slow
@pytest.mark.parametrize("dashboard", DASHBOARDS, ids=lambda one: one.uid)
def test_every_query_of_every_panel_finds_data(loaded: Watched, dashboard: Dashboard) -> None:
    chosen = {one.name: value_of(loaded, one.metric, one.name) for one in dashboard.choices}
    if "job_id" in chosen:
        chosen["job_id"] = value_of(loaded, "prony_job_latency_seconds", "job_id")
    lacking = [
        f"{panel['title']}: {target['expr']}"
        for panel in json.loads((FOLDER / f"{dashboard.uid}.json").read_text())["panels"]
        for target in panel["targets"]
        if not has_data(loaded, fill_variables(target["expr"], chosen))
    ]
    assert lacking == []


def value_of(watched: Watched, metric: str, label: str) -> str:
    """Return the newest value that the list at the top of a dashboard would have."""
    found = watched.query(f"count by ({label}) ({metric})")
    assert found, (metric, label)
    return str(found[-1]["metric"][label])


def fill_variables(expr: str, chosen: dict[str, str]) -> str:
    """Put values in place of variables, as Grafana does."""
    for name, value in {"__rate_interval": "20s", **chosen}.items():
        expr = expr.replace(f"${name}", value)
    assert "$" not in expr
    return expr


def has_data(watched: Watched, expr: str) -> bool:
    """Does a query find a number, now or once the slowest of its rates has two readings?"""
    begin = time.time() - 120

    def look() -> bool:
        found = watched.ask("query_range", query=expr, start=begin, end=time.time(), step=1)["result"]
        return any(math.isfinite(float(value)) for line in found for _, value in line["values"])

    try:
        wait_for(look, expr, 40)
    except AssertionError:
        return False
    return True


@pytest.mark.slow
def test_http_sd_follows_the_agents(loaded: Watched) -> None:
    (target,) = httpx.get(f"{loaded.fleet.url}/metrics/targets", timeout=60, trust_env=False).json()
    page = httpx.get(f"http://{target['targets'][0]}/metrics", timeout=60, trust_env=False).text
    assert "prony_agent_connected 1" in page
    assert set(target["labels"]) == {"agent", "agent_id", "device"}


def test_monitor_up_starts_prometheus_and_says_where_to_look(watched: Watched, tmp_path: Path) -> None:
    port = free_port()
    command = [sys.executable, "-m", "prony", "monitor", "up", "--server", watched.fleet.url, "--port", str(port)]
    environment = watched.fleet.environment(tmp_path)
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        said = ""
        while "Ctrl-C" not in said:
            line = process.stdout.readline()
            assert line, said
            said += line
        assert f"http://127.0.0.1:{port}/alerts" in said
        assert monitoring.is_prometheus_ready(f"http://127.0.0.1:{port}")
        assert (tmp_path / "monitor" / monitoring.TOKEN).read_text().startswith("prony_")
    finally:
        process.send_signal(signal.SIGINT)
        code = process.wait(60)
        process.stdout.close()
    assert code == 0
    assert not monitoring.is_prometheus_ready(f"http://127.0.0.1:{port}")


@pytest.mark.parametrize("dashboard", DASHBOARDS, ids=lambda one: one.uid)
def test_the_dashboards_are_those_that_the_queries_make(dashboard: Dashboard) -> None:
    assert (FOLDER / f"{dashboard.uid}.json").read_text() == render(dashboard), "run python -m tools.dashboards"
