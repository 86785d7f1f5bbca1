"""The limit is said to be where measured series say it is, and nowhere where there is none."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from prony.analyse.bottleneck import bottleneck_of
from prony.instruments.samples import telemetry_frame
from prony.model.clients import ClientSide, ServiceFacts
from prony.model.device import Cpu
from prony.model.result import Noise, Phase
from prony.model.sweep import Bottleneck

from .made_sweeps import S, load_entry

RUNS = {"throughput_per_s.p50": [100.0, 101, 102], "e2e_ms.p50": [5.0, 5, 5]}
ELSEWHERE = ServiceFacts(endpoint="http://10.1.2.3:8000")


def telemetry(rates: Mapping[str, float], levels: Mapping[str, float] | None = None) -> pl.DataFrame:
    """Return three runs of ten readings: totals that grow so much a second, and levels that stay."""
    rows = []
    for run in range(3):
        for second in range(10):
            totals = {name: 100 + rate * second for name, rate in rates.items()}
            rows.append((run, second * S, "host", totals | dict(levels or {})))
    return telemetry_frame(rows)


def found(
    rates: Mapping[str, float], levels: Mapping[str, float] | None = None, *, side: ClientSide | None = None,
    noise: Noise | None = None, service: ServiceFacts | None = None,
) -> Bottleneck:  # fmt: skip
    return bottleneck_of([(load_entry(8, RUNS, side=side, noise=noise, service=service), telemetry(rates, levels))])


def test_a_server_that_fills_one_core_is_limited_by_it() -> None:
    one = found({"cpu_busy_s_total": 1.4, "service_cpu_s_total": 0.98})
    assert (one.where, one.what) == ("server", "cpu")
    assert "0.98 cores" in one.text


def test_a_server_that_fills_all_cores_is_limited_by_them() -> None:
    one = found({"cpu_busy_s_total": 3.9, "service_cpu_s_total": 3.7})
    assert (one.where, one.what) == ("server", "cpu")


def test_cores_that_client_and_server_share_are_nobodys_alone() -> None:
    one = found({"cpu_busy_s_total": 3.95, "service_cpu_s_total": 2.2})
    assert (one.where, one.what) == ("machine", "cpu")
    assert "server 2.20" in one.text


@pytest.mark.parametrize(
    "side",
    [
        ClientSide(cpu_shares=(0.97,)),
        ClientSide(cpu_shares=(0.3,), asked_concurrency=8, delivered_concurrency=5),
        ClientSide(cpu_shares=(0.3,), kernel_lag_p50_ms=4.0),
    ],
    ids=["a full core", "less than asked", "replies read late"],
)
def test_a_client_that_was_the_limit_is_said_to_be_it_whatever_the_server_did(side: ClientSide) -> None:
    one = found({"cpu_busy_s_total": 2.0, "service_cpu_s_total": 1.0}, side=side)
    assert one.where == "client"
    assert "the server's limit is unknown" in one.text


def test_other_processes_come_before_all() -> None:
    one = found({"cpu_busy_s_total": 3.99, "service_cpu_s_total": 1.0}, noise=Noise(foreign_cpu=0.5))
    assert one.where == "others"


def test_a_busy_gpu_and_a_full_cache_of_tokens_are_the_servers() -> None:
    assert found({"cpu_busy_s_total": 1.0}, {"gpu0_busy": 0.97}).what == "gpu"
    page = {'vllm:num_requests_waiting{m="x"}': 5.0, 'vllm:gpu_cache_usage_perc{m="x"}': 0.99}
    assert found({"cpu_busy_s_total": 1.0}, page).what == "gpu memory"


@pytest.mark.parametrize(
    ("shares", "what"),
    [
        ({"gpu0_dram_share": 0.8, "gpu0_tensor_share": 0.1}, "gpu bandwidth"),
        ({"gpu0_dram_share": 0.3, "gpu0_tensor_share": 0.7}, "gpu compute"),
        ({"gpu0_dram_share": 0.1, "gpu0_tensor_share": 0.1}, "gpu"),
    ],
)
def test_what_of_a_busy_gpu_was_full_is_told_where_its_driver_tells(shares: Mapping[str, float], what: str) -> None:
    assert found({"cpu_busy_s_total": 1.0}, {"gpu0_busy": 0.97, **shares}).what == what
    assert found({"cpu_busy_s_total": 1.0}, {"gpu0_busy": 0.5, **shares}).where == "none"


RECORDED = {
    "compute": ("server", "gpu compute"), "memory": ("server", "gpu bandwidth"), "queue": ("server", "queue"),
    "client": ("client", "cpu"),
}  # fmt: skip


def recorded_level(level: Mapping[str, Any], cores: int) -> Bottleneck:
    """Return what is said of one level of a load on a model that was served from an H200."""
    entry = load_entry(level["users"], level["numbers"])
    hardware = entry.environment.device.hardware.model_copy(
        update={"cpu": Cpu(architecture="x86_64", logical_cores=cores, allowed_cores=cores), "memory_mib": 131_072}
    )
    device = entry.environment.device.model_copy(update={"hardware": hardware})
    rows, runs = [], []
    for one, run in zip(entry.result.repetitions, level["runs"], strict=True):
        runs.append(one.model_copy(update={
            "phases": {"measure": Phase(begin_ns=0, end_ns=run["lasted_ms"] * 10**6, cpu_ns=1)},
            "noise": Noise(**run["noise"]), "client": ClientSide(**run["client"]),
        }))  # fmt: skip
        rows += [
            (one.index, int(at_ms * 10**6), "recorded", {counter: value})
            for counter, pairs in run["counters"].items()
            for at_ms, value in pairs
        ]
    entry = entry.model_copy(update={
        "result": entry.result.model_copy(update={"repetitions": tuple(runs)}),
        "environment": entry.environment.model_copy(update={"device": device}),
    })  # fmt: skip
    return bottleneck_of([(entry, telemetry_frame(rows))])


@pytest.mark.parametrize("mode", RECORDED)
def test_the_limit_of_models_served_from_an_h200_is_found(mode: str) -> None:
    """By what `benchmarks/gpu.py bottleneck` recorded: loads of 1, 4 and 16 users on four models of known limits."""
    recorded = json.loads(Path(__file__).with_name("bottleneck_h200.json").read_text())
    (sweep,) = (one for one in recorded if one["mode"] == mode)
    few, some, many = (recorded_level(level, sweep["cores"]) for level in sweep["levels"])
    assert (many.where, many.what) == (some.where, some.what) == RECORDED[mode]
    if mode == "queue":
        assert few.where == "none"  # one user never waits for another
        assert "15 at a time" in many.text
    elif mode == "client":
        assert "busiest client process: 100% of a core" in many.text
    else:
        assert "busy" in many.text


def test_a_queue_with_room_everywhere_is_the_servers_own_setting() -> None:
    one = found({"cpu_busy_s_total": 1.0}, {"llamacpp:requests_deferred": 6.0})
    assert (one.where, one.what) == ("server", "queue")


def test_memory_and_disk_are_told() -> None:
    assert found({"cpu_busy_s_total": 1.0}, {"memory_available_mib": 100.0}).what == "memory"
    assert found({"cpu_busy_s_total": 1.0}, noise=Noise(pressure_io=0.5)).what == "disk"


def test_room_everywhere_is_no_limit() -> None:
    one = found({"cpu_busy_s_total": 1.0, "service_cpu_s_total": 0.4}, {"memory_available_mib": 6000.0})
    assert one.where == "none"
    assert all(not clue.is_over for clue in one.clues)


def test_a_server_elsewhere_of_which_nothing_was_measured_is_unknown() -> None:
    one = found({"cpu_busy_s_total": 1.0}, service=ELSEWHERE)
    assert one.where == "unknown"
    assert "the client had room to spare" in one.text


@pytest.mark.parametrize(
    ("rates", "noise", "what"),
    [
        ({"cpu_busy_s_total": 3.95}, None, "cpu"),
        ({"cpu_busy_s_total": 1.0}, Noise(pressure_memory=0.4), "memory"),
        ({"cpu_busy_s_total": 1.0}, Noise(pressure_io=0.4), "disk"),
    ],
)
def test_a_full_machine_before_a_server_elsewhere_is_the_client(
    rates: Mapping[str, float], noise: Noise | None, what: str
) -> None:
    one = found(rates, noise=noise, service=ELSEWHERE)
    assert (one.where, one.what) == ("client", what)


def test_a_client_that_was_late_with_nothing_full_is_told_as_a_queue() -> None:
    assert found({"cpu_busy_s_total": 1.0}, side=ClientSide(cpu_shares=(0.3,), kernel_lag_p50_ms=4.0)).what == "queue"


@pytest.mark.parametrize("host", ["127.0.0.2", "[::1]", "LOCALHOST."])
def test_every_address_of_loopback_is_the_machine_itself(host: str) -> None:
    service = ServiceFacts(endpoint=f"http://{host}:8000")
    assert found({"cpu_busy_s_total": 3.95}, service=service).where == "machine"


def test_no_telemetry_at_all_is_unknown() -> None:
    entry = load_entry(8, RUNS, side=ClientSide(), noise=Noise())
    assert bottleneck_of([(entry, None)]).where == "unknown"
