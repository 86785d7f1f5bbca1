"""The metrics page shows devices, running jobs and the newest results, and says what it leaves out."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import generate_latest
from prometheus_client.parser import text_string_to_metric_families
from store.histories import fill, numbers

from prony.app.fleet.state import FleetState, HeldLease, KnownAgent
from prony.model.agent import MOST_READINGS, AgentState, Capabilities
from prony.model.estimate import Grade
from prony.model.event import Event, Live
from prony.model.history import Series
from prony.server import fleet_metrics
from prony.server.fleet_metrics import FleetCollector
from prony.store.home import Home
from prony.store.store import Store
from servers.waiting import wait_for

from .house import FACTS, House, served

Samples = dict[str, list[tuple[dict[str, str], float]]]
NOW_S = 1000.0


def read(text: str) -> Samples:
    found: Samples = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found.setdefault(sample.name, []).append((sample.labels, round(sample.value, 6)))
    return found


def page(state: FleetState, **more: object) -> Samples:
    registry = CollectorRegistry()
    registry.register(FleetCollector(state, lambda: NOW_S, lambda: 5e9, **more))  # type: ignore[arg-type]
    return read(generate_latest(registry).decode())


def agent(agent_id: str, state: AgentState = AgentState.ACTIVE) -> KnownAgent:
    return KnownAgent(agent_id, f"name of {agent_id}", state, f"key of {agent_id}", "i1", Capabilities())


def known(*agents: KnownAgent) -> FleetState:
    state = FleetState()
    for one in agents:
        state.keep(one)
    return state


def test_counters_of_probes_have_base_units_and_labels() -> None:
    state = known(agent("a"))
    readings = {
        "cpu_busy_s_total": 7.0, "memory_available_mib": 2.0, "pressure_cpu_us_total": 3e6, "energy_gpu0_uj_total": 5e6,
        "gpu1_held_thermal_ns_total": 4e9, "gpu1_sm_mhz": 1500.0, "a_counter_of_a_plug_in": 1.0,
    }  # fmt: skip
    state.live.note_readings("a", readings, NOW_S - 4)
    found = page(state)
    own = {"agent": "name of a", "agent_id": "a", "device": ""}
    assert found["prony_device_cpu_seconds_total"] == [(own | {"mode": "busy"}, 7.0)]
    assert found["prony_device_memory_available_bytes"] == [(own, 2.0 * 2**20)]
    assert found["prony_device_pressure_seconds_total"] == [(own | {"resource": "cpu"}, 3.0)]
    assert found["prony_device_energy_joules_total"] == [(own | {"domain": "gpu0"}, 5.0)]
    held = own | {"gpu": "1", "cause": "thermal"}
    assert found["prony_device_gpu_held_seconds_total"] == [(held, 4.0)]
    assert found["prony_device_gpu_clock_hertz"] == [(own | {"gpu": "1"}, 1.5e9)]
    assert found["prony_device_read_timestamp_seconds"] == [(own, 5e9 - 4)]
    assert not [name for name in found if "plug_in" in name]


def test_devices_of_lost_and_silent_agents_are_left_out() -> None:
    state = known(agent("lost", AgentState.LOST), agent("silent"))
    state.live.note_readings("lost", {"cpu_busy_s_total": 1.0}, NOW_S)
    state.live.note_readings("silent", {"cpu_busy_s_total": 1.0}, NOW_S - 91)
    state.live.note_readings("removed", {"cpu_busy_s_total": 1.0}, NOW_S)
    assert "prony_device_cpu_seconds_total" not in page(state)


def test_a_running_load_has_its_figures_until_its_lease_ends() -> None:
    state = known(agent("a"))
    state.hold(HeldLease("l", "j", "e", "a", "key of a", 1))
    live = Live(elapsed_s=3, sent=12, done=10, failed=1, in_flight=2, rate_per_s=4.0, p50_ms=20.0)
    state.live.note_event("l", Event(kind="repetition", job_id="j", done=1, total=3))
    state.live.note_event("l", Event(kind="load", job_id="j", live=live))
    found = page(state)
    own = {"agent": "name of a", "agent_id": "a", "experiment_id": "e", "job_id": "j"}
    assert found["prony_job_running"] == [(own, 1.0)]
    assert found["prony_job_repetitions_done"] == [(own, 1.0)]
    assert found["prony_job_repetitions"] == [(own, 3.0)]
    assert found["prony_job_requests_total"] == [
        (own | {"outcome": "answered"}, 10.0),
        (own | {"outcome": "failed"}, 1.0),
    ]
    assert found["prony_job_latency_seconds"] == [(own | {"quantile": "0.5"}, 0.02)]
    assert not {"prony_job_load_left_seconds", "prony_job_passes_total", "prony_job_tokens_per_second"} & set(found)
    state.release("l")
    assert "prony_job_running" not in page(state)
    assert state.live.progress == {}


def test_a_language_model_on_an_engine_has_passes_and_no_requests() -> None:
    state = known(agent("a"))
    state.hold(HeldLease("l", "j", "e", "a", "key of a", 1))
    live = Live(elapsed_s=3, sent=11, done=10, failed=0, in_flight=1, rate_per_s=4.0, tokens_per_s=250.0)
    state.live.note_event("l", Event(kind="load", job_id="j", live=live))
    found = page(state)
    own = {"agent": "name of a", "agent_id": "a", "experiment_id": "e", "job_id": "j"}
    assert found["prony_job_passes_total"] == [(own, 10.0)]
    assert found["prony_job_tokens_per_second"] == [(own, 250.0)]
    assert not [name for name in found if "request" in name or "load" in name]


def test_what_a_reconciled_server_no_longer_holds_is_forgotten() -> None:
    state = known(agent("a"))
    state.live.note_event("gone", Event(kind="repetition", job_id="j", done=1, total=3))
    state.see_leases([])
    assert state.live.progress == {}


def test_limits_are_kept_and_what_is_left_out_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fleet_metrics, "MOST_DEVICES", 2)
    monkeypatch.setattr(fleet_metrics, "MOST_JOBS", 1)
    state = known(*(agent(f"a{number}") for number in range(3)))
    for number in range(3):
        state.live.note_readings(f"a{number}", {"cpu_busy_s_total": 1.0}, NOW_S)
        state.hold(HeldLease(f"l{number}", f"j{number}", "e", f"a{number}", f"key of a{number}", 1))
    found = page(state, series_left_out=7)
    assert len(found["prony_device_cpu_seconds_total"]) == 2
    assert len(found["prony_job_running"]) == 1
    left_out = {labels["of"]: value for labels, value in found["prony_metrics_left_out"]}
    assert left_out == {"devices": 1, "jobs": 2, "results": 7}


def test_a_result_has_its_verdict_and_its_time() -> None:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    series = Series(
        id="s", name="r", title="t" * 500, machine="m", hardware_id="h", metric="x_ms", unit="ms", better="lower",
        last_at=at, last_value=1.5, last_grade=Grade.SUSPECT,
    )  # fmt: skip
    empty = series.model_copy(update={"id": "e", "last_at": None, "last_value": None})
    found = page(FleetState(), series=(series, empty))
    ((labels, value),) = found["prony_result"]
    assert (labels["series"], labels["verdict"], labels["title"], value) == ("s", "suspect", "t" * 120, 1.5)
    assert [value for _, value in found["prony_result_timestamp_seconds"]] == [at.timestamp()]


# Over HTTP


def test_an_agent_that_waits_tells_its_readings_with_its_question(house: House) -> None:
    agent_id = house.enrol("waiting")
    house.lease(agent_id, readings={"cpu_busy_s_total": 3.0})
    found = read(house.client.get("/metrics").text)["prony_device_cpu_seconds_total"]
    assert [value for labels, value in found if labels["agent_id"] == agent_id] == [3.0]


def test_an_agent_that_works_tells_its_readings_with_its_heartbeat(house: House) -> None:
    agent_id = house.enrol("working")
    beat = {"incarnation": "i1", "readings": {"gpu0_power_w": 90.0}}
    house.client.post(f"/api/v1/agents/{agent_id}/heartbeat", json=beat).raise_for_status()
    found = read(house.client.get("/metrics").text)["prony_device_gpu_power_watts"]
    assert [(labels["gpu"], value) for labels, value in found if labels["agent_id"] == agent_id] == [("0", 90.0)]


def test_more_readings_than_a_device_has_are_refused(house: House) -> None:
    agent_id = house.enrol("loud")
    readings = {f"counter_{number}": 1.0 for number in range(MOST_READINGS + 1)}
    assert house.lease(agent_id, readings=readings).status_code == 422


def test_service_discovery_lists_agents_that_serve_metrics(house: House) -> None:
    capabilities = {"facts": FACTS, "metrics_address": "10.0.0.7:9105"}
    agent_id = house.enrol("served", capabilities=capabilities)
    house.enrol("quiet")
    response = house.client.get("/metrics/targets")
    assert response.headers["content-type"] == "application/json"
    labels = {"agent": "served", "agent_id": agent_id, "device": ""}
    assert response.json() == [{"targets": ["10.0.0.7:9105"], "labels": labels}]


@pytest.fixture
def measured(tmp_path: Path) -> Iterator[House]:
    with Store.open(Home(tmp_path)) as store:
        fill(store, numbers(5))
    with served(tmp_path, sweep_s=0.05) as house:
        yield house


def test_the_newest_result_of_a_series_is_on_the_page_once_it_is_judged(measured: House) -> None:
    measured.client.get("/metrics")  # reads the series before they are judged, so that the note must bring it

    def results() -> list[tuple[dict[str, str], float]]:
        return read(measured.client.get("/metrics").text).get("prony_result", [])

    wait_for(lambda: len(results()) == 1, "the result")
    ((labels, value),) = results()
    (series,) = measured.client.get("/api/v1/series").json()["items"]
    assert (labels["series"], labels["recipe"], value) == (series["id"], "quick", round(series["last_value"], 6))
    assert labels["verdict"] == series["last_grade"]
