"""Count the server's metrics and render its Prometheus page."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sized
from typing import TYPE_CHECKING, get_args

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Info
from prometheus_client.exposition import generate_latest
from prometheus_client.gc_collector import GCCollector
from prometheus_client.process_collector import ProcessCollector

from prony import __version__
from prony.model.agent import AgentState
from prony.model.history import OPEN, ChangeKind
from prony.model.queue import JobState, Stats
from prony.model.result import ResultState
from prony.server.fleet_metrics import FleetCollector

if TYPE_CHECKING:
    from prony.app.fleet.fleet import Fleet

_FRESH_S = 1.0
_REQUEST_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
_JOB_S = (0.01, 0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200, 14400)


class Metrics:
    """Counts what passes, and asks the fleet for what is."""

    def __init__(self, fleet: Fleet, waits: Sized) -> None:
        self._fleet = fleet
        self._asking = asyncio.Lock()
        self._asked_at = -_FRESH_S
        self._answers: dict[tuple[str, int], tuple[Counter, Histogram]] = {}
        self._registry = registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        GCCollector(registry=registry)
        Info("prony", "1; the label `version` is the server's", registry=registry).info({"version": __version__})
        self._requests = Counter(
            "prony_http_requests", "requests that the server answered", ("operation", "status"), registry=registry
        )
        self._request_s = Histogram(
            "prony_http_request_duration_seconds",
            "time from a request's arrival to the end of its answer; of long polls with their wait",
            ("operation",),
            buckets=_REQUEST_S,
            registry=registry,
        )
        self._jobs = Gauge("prony_jobs", "jobs by state; `waiting` is the queue", ("state",), registry=registry)
        self._agents = Gauge("prony_agents", "agents by state", ("state",), registry=registry)
        self._experiments = Gauge("prony_experiments", "experiments stored", registry=registry)
        self._oldest = Gauge(
            "prony_oldest_waiting_seconds", "how long the oldest waiting job has waited", registry=registry
        )
        self._lease = Gauge(
            "prony_oldest_lease_seconds", "how long the oldest running job has been with its agent", registry=registry
        )
        self._backlog = Gauge("prony_writer_backlog", "writes that wait for the database", registry=registry)
        Gauge("prony_open_waits", "long polls and event streams that are open", registry=registry).set_function(
            lambda: len(waits)
        )
        self._results = Counter(
            "prony_results",
            "results that the server received; `code` is that of a failure",
            ("state", "code"),
            registry=registry,
        )
        self._job_s = Histogram(
            "prony_job_duration_seconds",
            "time from a job's lease to its result",
            ("state",),
            buckets=_JOB_S,
            registry=registry,
        )
        self._lost = Counter("prony_leases_lost", "leases lost because their agents sent nothing", registry=registry)
        self._changes = Gauge("prony_open_changes", "open changes in histories", ("kind", "state"), registry=registry)
        # A counter that appears with its first event has no rate then: those that will come begin at zero.
        for result_state in ResultState:
            self._job_s.labels(result_state.value)
        self._results.labels(ResultState.COMPLETE.value, "")
        self._devices_and_jobs = FleetCollector(fleet.state, fleet.context.now, time.time)
        registry.register(self._devices_and_jobs)
        fleet.context.hooks.append(self.count_event)

    def count_answer(self, operation: str, status: int, took_s: float) -> None:
        key = (operation, status)
        counters = self._answers.get(key)
        if counters is None:
            counters = (self._requests.labels(operation, str(status)), self._request_s.labels(operation))
            self._answers[key] = counters
        counters[0].inc()
        counters[1].observe(took_s)

    def count_event(self, what: str, facts: dict[str, object]) -> None:
        """Hear of something that a use case did."""
        if what == "lease_lost":
            self._lost.inc()
        if what == "finished":
            state = str(facts["state"])
            self._results.labels(state, str(facts["code"])).inc()
            self._job_s.labels(state).observe(float(str(facts["seconds"])))

    async def page(self) -> bytes:
        """Return the whole page, with figures of the fleet that are a second old at most."""
        async with self._asking:
            now = time.monotonic()
            if now - self._asked_at >= _FRESH_S:
                self._take(await self._fleet.queries.stats())
                self._take_changes(await self._fleet.histories.open_changes())
                self._devices_and_jobs.series = await self._fleet.latest_results.list_series()
                self._devices_and_jobs.series_left_out = self._fleet.latest_results.left_out
                self._asked_at = now
        self._backlog.set(self._fleet.context.writer.backlog)
        # A thousand devices and ten thousand series take most of a second, for which nobody else is to wait.
        return await asyncio.to_thread(generate_latest, self._registry)

    def _take_changes(self, counts: dict[tuple[str, str], int]) -> None:
        for kind in get_args(ChangeKind):
            for state in OPEN:
                self._changes.labels(kind, state.value).set(counts.get((kind, state.value), 0))

    def _take(self, stats: Stats) -> None:
        for state in JobState:
            self._jobs.labels(state.value).set(stats.jobs.get(state, 0))
        for agent_state in AgentState:
            self._agents.labels(agent_state.value).set(stats.agents.get(agent_state, 0))
        self._experiments.set(stats.experiments)
        self._oldest.set(stats.oldest_waiting_s or 0)
        self._lease.set(stats.oldest_lease_s or 0)
