"""CPU and GPU of a job in percent, of numbers that are known."""

from __future__ import annotations

from typing import Any

import pytest

from prony.analyse.machine_use import own_cores, service_cores, use_estimates
from prony.model.clients import ClientSide
from prony.model.metric import METRICS
from prony.model.result import MachineUse, Phase, Repetition

from .jobs import repetition

S = 10**9


def run(index: int, cpu_s: float, wall_s: float = 2.0, **changes: Any) -> Repetition:
    phase = Phase(begin_ns=S, end_ns=S + int(wall_s * S), cpu_ns=int(cpu_s * S))
    return repetition(index, phases={"measure": phase}, **changes)


@pytest.mark.parametrize(("cpu_s", "percent"), [(2.0, 100.0), (0.0, 0.0), (7.0, 350.0)])
def test_one_thread_that_spins_is_a_hundred_percent(cpu_s: float, percent: float) -> None:
    found = use_estimates([run(index, cpu_s) for index in range(6)], own_cores)
    estimate = found.estimates["cpu_percent.p50"]
    assert (estimate.value, estimate.low, estimate.high, estimate.unit) == (percent, percent, percent, "%")


def test_what_the_system_does_not_tell_is_absent() -> None:
    assert not use_estimates([repetition(0)], own_cores).estimates
    assert set(use_estimates([run(0, 1.0)], own_cores).estimates) == {"cpu_percent.p50"}


def test_of_a_load_the_service_the_clients_and_the_machine_are_told_apart() -> None:
    use = MachineUse(service_cores=1.5, machine_cpu=0.9, gpu=0.4, gpu_memory=0.1)
    runs = [run(index, 0.5, use=use, client=ClientSide(cpu_shares=(0.2, 0.3))) for index in range(2)]
    values = {key: one.value for key, one in use_estimates(runs, service_cores).estimates.items()}
    assert values == {
        "cpu_percent.p50": 150.0, "client_cpu_percent.p50": 50.0, "machine_cpu_percent.p50": 90.0,
        "gpu_percent.p50": 40.0, "gpu_memory_percent.p50": 10.0,
    }  # fmt: skip
    assert all(METRICS[key.partition(".")[0]].unit == "%" for key in values)


def test_a_name_that_a_script_tells_itself_is_the_scripts() -> None:
    assert not use_estimates([run(0, 1.0)], own_cores, without={"cpu_percent"}).estimates
