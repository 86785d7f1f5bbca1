"""The NVIDIA probe on a driver that answers as drivers do: in bytes, not at all, or for cards in another order."""

from __future__ import annotations

import os
from types import SimpleNamespace
from typing import Any

import pynvml
import pytest

from prony.instruments.device.nvidia import hash_serial
from prony.plugins.probes import nvidia
from prony.plugins.probes.nvidia import NvidiaProbe

IDS: list[bytes | str] = [b"GPU-first", "GPU-second"]


def field(number: int, value: int, *, is_known: bool = True) -> SimpleNamespace:
    kind = pynvml.NVML_VALUE_TYPE_UNSIGNED_INT if value < 2**31 else pynvml.NVML_VALUE_TYPE_UNSIGNED_LONG_LONG
    return SimpleNamespace(
        fieldId=number, nvmlReturn=pynvml.NVML_SUCCESS if is_known else pynvml.NVML_ERROR_NOT_SUPPORTED, valueType=kind,
        value=SimpleNamespace(uiVal=value if value < 2**31 else -1, ullVal=value),
    )  # fmt: skip


class Driver:
    """As much of NVML as the probe asks for; a question that it does not know is one that the card does not offer."""

    def __init__(self, *, has_energy: bool = True) -> None:
        self.has_energy = has_energy
        self.samples: list[SimpleNamespace] = []
        self.clients: list[int] = []
        self.has_pipes = False
        self.pipe_samples = 0

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("nvml") or name.endswith("_v2"):
            return getattr(pynvml, name)
        return self._refuse

    def _refuse(self, *_: Any) -> Any:
        raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)

    def nvmlDeviceGetUUID(self, handle: int) -> bytes | str:  # noqa: N802
        return IDS[handle]

    def nvmlDeviceGetTotalEnergyConsumption(self, handle: int) -> int:  # noqa: N802
        return 1000 * (handle + 1) if self.has_energy else int(self._refuse())

    def nvmlDeviceGetPowerUsage(self, handle: int) -> int:  # noqa: N802
        return 111_000 + handle

    def nvmlDeviceGetTotalEccErrors(self, handle: int, kind: int, lasts: int) -> int:  # noqa: N802
        is_asked = (kind, lasts) == (pynvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, pynvml.NVML_VOLATILE_ECC)
        return 3 * handle if is_asked else int(self._refuse())

    def nvmlDeviceGetCurrPcieLinkWidth(self, handle: int) -> int:  # noqa: N802
        return 16 // (handle + 1)

    def nvmlDeviceGetFieldValues(self, handle: int, numbers: list[int]) -> list[SimpleNamespace]:  # noqa: N802
        values = {
            pynvml.NVML_FI_DEV_POWER_INSTANT: 500_000 + 1000 * handle,
            pynvml.NVML_FI_DEV_PERF_POLICY_POWER: 5 * 10**9,
        }
        return [field(number, values.get(number, 0), is_known=number in values) for number in numbers]

    def nvmlGpmQueryDeviceSupport(self, handle: int) -> SimpleNamespace:  # noqa: N802
        return SimpleNamespace(isSupportedDevice=int(self.has_pipes and handle == 1))

    def nvmlGpmSampleAlloc(self) -> Any:  # noqa: N802
        self.pipe_samples += 1
        return pynvml.c_nvmlGpmSample_t()

    def nvmlGpmSampleFree(self, sample: Any) -> None:  # noqa: N802
        del sample
        self.pipe_samples -= 1

    def nvmlGpmSampleGet(self, handle: int, sample: Any) -> Any:  # noqa: N802
        del handle
        return sample

    def nvmlGpmMetricsGet(self, question: Any) -> Any:  # noqa: N802
        known = {pynvml.NVML_GPM_METRIC_ANY_TENSOR_UTIL: 70.0, pynvml.NVML_GPM_METRIC_DRAM_BW_UTIL: 25.0}
        for one in question.metrics[: question.numMetrics]:
            one.nvmlReturn = pynvml.NVML_SUCCESS if one.metricId in known else pynvml.NVML_ERROR_NOT_SUPPORTED
            one.value = known.get(one.metricId, 0.0)
        return question

    def nvmlDeviceGetProcessUtilization(self, handle: int, since_us: int) -> list[SimpleNamespace]:  # noqa: N802
        del handle, since_us
        return self.samples

    def nvmlDeviceGetMPSComputeRunningProcesses(self, handle: int) -> list[SimpleNamespace]:  # noqa: N802
        del handle
        return [SimpleNamespace(pid=pid) for pid in self.clients]


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Driver:
    made = Driver()
    monkeypatch.setattr(nvidia, "management", lambda: made)
    monkeypatch.setattr(nvidia, "handles", lambda: [0, 1])
    monkeypatch.setattr(nvidia, "sees_real_pids", lambda: True)
    return made


@pytest.mark.usefixtures("driver")
def test_a_card_is_found_by_its_uuid_and_by_nothing_else() -> None:
    probe = NvidiaProbe()
    assert [probe.find_card(one) for one in ("GPU-first", "GPU-second", "GPU-third", "")] == [
        "gpu0",
        "gpu1",
        None,
        None,
    ]
    assert probe.card_digest("gpu1") == hash_serial("GPU-second")


def test_energy_is_that_of_one_card_or_none(driver: Driver) -> None:
    probe = NvidiaProbe()
    assert probe.read_energy_uj("gpu1") == 2_000_000
    driver.has_energy = False
    assert probe.read_energy_uj("gpu1") is None


@pytest.mark.usefixtures("driver")
def test_power_is_of_the_instant_where_the_driver_tells_it() -> None:
    found = NvidiaProbe().read()
    assert (found["gpu0_power_w"], found["gpu1_power_w"]) == (500.0, 501.0)
    assert found["gpu0_held_power_ns_total"] == 5e9
    assert "gpu0_held_thermal_ns_total" not in found


def test_what_of_a_card_worked_is_told_between_two_readings_that_are_far_enough_apart(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver.has_pipes = True
    now = [10**9]
    monkeypatch.setattr("prony.plugins.probes.nvidia.time.perf_counter_ns", lambda: now[0])
    probe = NvidiaProbe()

    def shares() -> dict[str, float]:
        return {name: value for name, value in probe.read().items() if name.endswith("_share")}

    assert shares() == {}
    now[0] += 50_000_000
    assert shares() == {}
    now[0] += 50_000_000
    assert shares() == {"gpu1_tensor_share": 0.7, "gpu1_dram_share": 0.25}
    assert driver.pipe_samples == 1  # the last; the one before was given back


@pytest.mark.usefixtures("driver")
def test_health_is_what_the_driver_tells_of_it() -> None:
    assert NvidiaProbe().read_health("gpu1") == {"ecc_uncorrected_total": 3.0, "link_width": 8.0}


def test_others_are_those_that_the_run_did_not_start(driver: Driver) -> None:
    own, group = os.getpid(), os.getpgid(0)
    driver.samples = [
        SimpleNamespace(pid=pid, timeStamp=at, smUtil=share)
        for pid, at, share in ((own, 200, 90), (999_999_999, 200, 40), (999_999_999, 300, 60), (999_999_998, 50, 80))
    ]
    probe = NvidiaProbe()
    probe.watch({own})
    assert probe.read_others("gpu0", 100) == {"999999999": 0.5}
    probe.watch({group})  # whoever is of the group of a process of the run was started by it
    assert probe.read_others("gpu0", 100) == {"999999999": 0.5}


def test_where_the_numbers_of_processes_are_not_real_nobody_is_accused(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver.samples = [SimpleNamespace(pid=1, timeStamp=200, smUtil=90)]
    monkeypatch.setattr(nvidia, "sees_real_pids", lambda: False)
    assert NvidiaProbe().read_others("gpu0", 100) is None


def test_under_mps_the_run_is_not_accused_of_its_own_work(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    """The driver counts the work of all clients as that of the server."""
    server, other = 999_999_997, 999_999_998
    driver.samples = [SimpleNamespace(pid=server, timeStamp=200, smUtil=80)]
    driver.clients = [os.getpid()]
    monkeypatch.setattr(nvidia, "_is_mps_server", lambda pid: pid == server)
    probe = NvidiaProbe()
    probe.watch({os.getpid()})
    assert probe.read_others("gpu0", 100) == {}
    driver.clients = [os.getpid(), other]
    assert probe.read_others("gpu0", 100) == {f"{other} (by MPS, together with this run)": 0.8}
