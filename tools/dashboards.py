"""Write the Grafana dashboards of deploy/grafana/dashboards from the queries below.

`python -m tools.dashboards` writes them; a test compares the files, and asks a real Prometheus every query.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[1] / "deploy" / "grafana" / "dashboards"
_COLUMNS = 24
_DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}
_RATE = "$__rate_interval"


@dataclass(frozen=True)
class Panel:
    """One picture: its queries, each with the name of its lines. `unit` is one of Grafana's."""

    title: str
    queries: Sequence[tuple[str, str]]
    unit: str = "short"
    kind: str = "timeseries"
    width: int = 8
    height: int = 8
    about: str = ""


@dataclass(frozen=True)
class Choice:
    """A list at the top of a dashboard: the values that a label of a metric has."""

    name: str
    title: str
    metric: str

    @property
    def query(self) -> str:
        return f"label_values({self.metric}, {self.name})"


@dataclass(frozen=True)
class Dashboard:
    uid: str
    title: str
    about: str
    panels: Sequence[Panel]
    choices: Sequence[Choice] = ()


def _stat(title: str, query: str, unit: str = "short", about: str = "") -> Panel:
    return Panel(title, ((query, ""),), unit, "stat", width=6, height=4, about=about)


_ONE_AGENT = 'agent_id="$agent_id"'
_ONE_JOB = 'job_id="$job_id"'
_ONE_SERIES = 'series="$series"'

FLEET = Dashboard(
    "prony-fleet", "Prony: fleet", "What waits, who works and whether the server keeps up.",
    (
        _stat("Jobs waiting", 'max(prony_jobs{state="waiting"})'),
        _stat("Oldest waiting job", "max(prony_oldest_waiting_seconds)", "s"),
        _stat("Agents that take jobs", 'max(sum by (instance) (prony_agents{state=~"active|busy|cleanup"}))'),
        _stat("Open regressions", 'max(sum by (instance) (prony_open_changes{kind="regression"}))',
              about="Suspected and found ones; prony watch-regressions lists them."),
        Panel("Jobs by state", (("max by (state) (prony_jobs)", "{{state}}"),)),
        Panel("Agents by state", (("max by (state) (prony_agents)", "{{state}}"),)),
        Panel("Results a minute", ((f"60 * sum by (state) (rate(prony_results_total[{_RATE}]))", "{{state}}"),)),
        Panel(
            "Duration of jobs",
            tuple(
                (f"histogram_quantile({q}, sum by (le) (rate(prony_job_duration_seconds_bucket[{_RATE}])))", f"p{n}")
                for q, n in ((0.5, 50), (0.95, 95))
            ),
            "s",
            about="From lease to result, of the jobs that ended in this interval.",
        ),
        Panel("Leases lost a minute", ((f"60 * sum(rate(prony_leases_lost_total[{_RATE}]))", "lost"),)),
        Panel("CPU use of devices", ((
            f'sum by (device, agent_id) (rate(prony_device_cpu_seconds_total{{mode="busy"}}[{_RATE}]))'
            " / on (device, agent_id) max by (device, agent_id) (prony_device_cpus)", "{{device}}"),), "percentunit"),
        Panel("Running jobs", (("max by (agent, experiment_id, job_id) (prony_job_running)", "{{agent}}: {{job_id}}"),),
              kind="table"),
        Panel("Server: requests a second",
              ((f"sum by (operation) (rate(prony_http_requests_total[{_RATE}]))", "{{operation}}"),), "reqps"),
        Panel("Server: duration of requests, p99",
              ((f"histogram_quantile(0.99, sum by (le, operation) (rate(prony_http_request_duration_seconds_bucket"
                f'{{operation!~"lease|watch|events|finish"}}[{_RATE}])))', "{{operation}}"),), "s",
              about="Without those that wait on purpose."),
        Panel("Server: writes that wait", (("prony_writer_backlog", "{{instance}}"),)),
        Panel("Server: memory", (('process_resident_memory_bytes{job="prony-server"}', "{{instance}}"),), "bytes"),
    ),
)  # fmt: skip

DEVICE = Dashboard(
    "prony-device", "Prony: device", "One agent's device, as its probes read it.",
    (
        Panel("CPU use", ((
            f"sum by (mode) (rate(prony_device_cpu_seconds_total{{{_ONE_AGENT}}}[{_RATE}]))"
            f" / scalar(max(prony_device_cpus{{{_ONE_AGENT}}}))", "{{mode}}"),),
            "percentunit"),
        Panel("CPU clock", ((f"prony_device_cpu_clock_hertz{{{_ONE_AGENT}}}", "mean"),), "hertz"),
        Panel("CPU temperature", ((f"prony_device_temperature_celsius{{{_ONE_AGENT}}}", "hottest"),), "celsius"),
        Panel("Memory", ((
            f"prony_device_memory_bytes{{{_ONE_AGENT}}} - prony_device_memory_available_bytes{{{_ONE_AGENT}}}", "used"),
            (f"prony_device_memory_bytes{{{_ONE_AGENT}}}", "installed")), "bytes"),
        Panel("Pressure", ((f"rate(prony_device_pressure_seconds_total{{{_ONE_AGENT}}}[{_RATE}])", "{{resource}}"),),
              "percentunit", about="Share of the time in which some task waited for the resource."),
        Panel("Network",
              ((f"rate(prony_device_network_bytes_total{{{_ONE_AGENT}}}[{_RATE}])", "{{direction}}"),), "Bps"),
        Panel("Disks", ((f"rate(prony_device_disk_bytes_total{{{_ONE_AGENT}}}[{_RATE}])", "{{direction}}"),), "Bps"),
        Panel("Power by domain",
              ((f"rate(prony_device_energy_joules_total{{{_ONE_AGENT}}}[{_RATE}])", "{{domain}}"),), "watt"),
        Panel("GPU use", ((f"prony_device_gpu_busy_ratio{{{_ONE_AGENT}}}", "GPU {{gpu}}"),), "percentunit"),
        Panel("GPU memory", ((f"prony_device_gpu_memory_used_bytes{{{_ONE_AGENT}}}", "GPU {{gpu}}"),), "bytes"),
        Panel("GPU power", ((f"prony_device_gpu_power_watts{{{_ONE_AGENT}}}", "GPU {{gpu}}"),), "watt"),
        Panel("GPU clock", ((f"prony_device_gpu_clock_hertz{{{_ONE_AGENT}}}", "GPU {{gpu}}"),), "hertz"),
        Panel("GPU temperature",
              ((f"prony_device_gpu_temperature_celsius{{{_ONE_AGENT}}}", "GPU {{gpu}}"),), "celsius"),
        Panel("GPU clock held down",
              ((f"rate(prony_device_gpu_held_seconds_total{{{_ONE_AGENT}}}[{_RATE}])", "GPU {{gpu}}: {{cause}}"),),
              "percentunit", about="Share of the time, by cause."),
        Panel("Agent: results not sent yet", ((f"prony_agent_spool_results{{{_ONE_AGENT}}}", "results"),),
              about="Of agents that were started with --metrics-port."),
        Panel("Agent: age of its job", ((f"prony_agent_job_running_seconds{{{_ONE_AGENT}}}", "job"),), "s",
              about="Of agents that were started with --metrics-port."),
    ),
    (Choice("agent_id", "Agent", "prony_device_read_timestamp_seconds"),),
)  # fmt: skip

JOB = Dashboard(
    "prony-job", "Prony: one job live", "A job while it runs. Its result is what Prony stores, not these figures.",
    (
        Panel("Progress", ((
            f"prony_job_repetitions_done{{{_ONE_JOB}}} / prony_job_repetitions{{{_ONE_JOB}}}", "{{agent}}"),),
            "percentunit"),
        Panel("Requests a second", ((f"prony_job_requests_per_second{{{_ONE_JOB}}}", "{{agent}}"),), "reqps"),
        Panel("Latency", ((f"prony_job_latency_seconds{{{_ONE_JOB}}}", "{{agent}} {{quantile}}"),), "s"),
        Panel("Requests in flight", ((f"prony_job_requests_in_flight{{{_ONE_JOB}}}", "{{agent}}"),)),
        Panel("Requests by outcome", ((f"prony_job_requests_total{{{_ONE_JOB}}}", "{{agent}} {{outcome}}"),)),
        Panel("Time of the load", ((f"prony_job_load_elapsed_seconds{{{_ONE_JOB}}}", "{{agent}} so far"),
                                   (f"prony_job_load_left_seconds{{{_ONE_JOB}}}", "{{agent}} left")), "s"),
        Panel("CPU use of its device", ((
            f'sum by (agent_id) (rate(prony_device_cpu_seconds_total{{mode="busy"}}[{_RATE}]))'
            f" * on (agent_id) group_left (agent) max by (agent_id, agent) (prony_job_running{{{_ONE_JOB}}})"
            " / on (agent_id) group_left max by (agent_id) (prony_device_cpus)", "{{agent}}"),), "percentunit"),
    ),
    (Choice("job_id", "Job", "prony_job_running"),),
)  # fmt: skip

HISTORY = Dashboard(
    "prony-history", "Prony: history of a series",
    "The newest quotable result of a series at each time. All results are in Prony: prony history, or its web pages.",
    (
        Panel("Newest result", ((f"max by (metric, unit, machine) (prony_result{{{_ONE_SERIES}}})",
                                 "{{metric}} ({{unit}}) on {{machine}}"),), width=24),
        _stat("Age of the newest result", f"time() - max(prony_result_timestamp_seconds{{{_ONE_SERIES}}})", "s"),
        _stat("Share of a day ago",
              f"max(prony_result{{{_ONE_SERIES}}}) / (max(prony_result{{{_ONE_SERIES}}} offset 1d)"
              f" or max(prony_result{{{_ONE_SERIES}}}))", "percentunit",
              about="1 where there was no result a day ago."),
        _stat("Open changes of all series", "max(sum by (instance) (prony_open_changes))"),
        _stat("Series with results", "max(count by (instance) (prony_result_timestamp_seconds))"),
        Panel("Verdict and value", ((f"prony_result{{{_ONE_SERIES}}}", ""),), kind="table", width=24),
    ),
    (Choice("series", "Series", "prony_result"),),
)  # fmt: skip

DASHBOARDS = (FLEET, DEVICE, JOB, HISTORY)


def render(dashboard: Dashboard) -> str:
    """Return the JSON that Grafana imports or is provisioned with."""
    document = {
        "uid": dashboard.uid, "title": dashboard.title, "description": dashboard.about, "tags": ["prony"],
        "schemaVersion": 39, "version": 1, "editable": True, "timezone": "browser", "refresh": "10s",
        "time": {"from": "now-1h", "to": "now"},
        "templating": {"list": [_datasource_choice(), *map(_choice, dashboard.choices)]},
        "annotations": {"list": []},
        "panels": _lay_out(dashboard.panels),
    }  # fmt: skip
    return json.dumps(document, indent=1) + "\n"


def _datasource_choice() -> dict[str, Any]:
    return {"name": "datasource", "label": "Prometheus", "type": "datasource", "query": "prometheus"}


def _choice(choice: Choice) -> dict[str, Any]:
    return {
        "name": choice.name, "label": choice.title, "type": "query", "datasource": _DATASOURCE,
        "definition": choice.query, "query": {"query": choice.query, "refId": choice.name}, "refresh": 2, "sort": 1,
    }  # fmt: skip


def _lay_out(panels: Sequence[Panel]) -> list[dict[str, Any]]:
    """Put panels in rows from left to right."""
    found: list[dict[str, Any]] = []
    x = y = row_height = 0
    for number, panel in enumerate(panels, 1):
        if x + panel.width > _COLUMNS:
            x, y, row_height = 0, y + row_height, 0
        found.append(_panel(panel, number, {"x": x, "y": y, "w": panel.width, "h": panel.height}))
        x, row_height = x + panel.width, max(row_height, panel.height)
    return found


def _panel(panel: Panel, number: int, place: dict[str, int]) -> dict[str, Any]:
    is_table = panel.kind == "table"
    targets = [
        {
            "refId": chr(ord("A") + index), "datasource": _DATASOURCE, "expr": expr, "legendFormat": legend,
            "instant": is_table, "range": not is_table, "format": "table" if is_table else "time_series",
        }
        for index, (expr, legend) in enumerate(panel.queries)
    ]  # fmt: skip
    return {
        "id": number, "type": panel.kind, "title": panel.title, "description": panel.about, "gridPos": place,
        "datasource": _DATASOURCE, "targets": targets,
        "fieldConfig": {"defaults": {"unit": panel.unit}, "overrides": []},
    }  # fmt: skip


def main() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    for dashboard in DASHBOARDS:
        (FOLDER / f"{dashboard.uid}.json").write_text(render(dashboard))


if __name__ == "__main__":
    main()
