"""The live view of a machine: readings of known counters, of a driver that answers, and of this machine."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pynvml
import pytest
from rich.console import Console

from prony.cli.commands.monitor import read_moments
from prony.cli.main import main
from prony.instruments.counters import CpuTimes, HostCounters
from prony.instruments.device import nvidia
from prony.instruments.monitor import MachineMonitor
from prony.instruments.processes import ProcessTable, ProcessTimes
from prony.model.monitor import CardMoment, MachineMoment, ProcessMoment
from prony.report.terminal.monitor import render_machine

AT = datetime(2026, 1, 1, 12, tzinfo=UTC)


def counters(at_s: float, busy_s: tuple[float, float], waited_us: int) -> HostCounters:
    cpus = {cpu: CpuTimes(busy, at_s - busy, 0.0, 0.0) for cpu, busy in enumerate(busy_s)}
    return HostCounters(
        at_ns=int(at_s * 1e9), cpus=cpus, pressure_us={"cpu": waited_us}, throttled_us=None, thermal_events=None,
        swapped_pages=None, oom_kills=None, own_cpu_s=0.0,
    )  # fmt: skip


def test_each_core_and_process_is_told_since_the_reading_before(monkeypatch: pytest.MonkeyPatch) -> None:
    readings = iter([counters(1.0, (0.5, 0.5), 0), counters(3.0, (2.5, 1.0), 500_000)])
    tables = iter(
        ProcessTable(int(at_s * 1e9), {2**22 + 1: ProcessTimes(1, "spin", 0.0, own_s, 0.0)})
        for at_s, own_s in ((1.0, 0.5), (3.0, 2.5))
    )
    monkeypatch.setattr(HostCounters, "read", lambda: next(readings))
    monkeypatch.setattr(ProcessTable, "read", lambda: next(tables))
    moment = MachineMonitor(lambda: AT).read()
    assert (moment.taken_at, moment.window_s) == (AT, 2.0)
    assert moment.core_percents == {0: 100.0, 1: 25.0}
    assert moment.cpu_percent == pytest.approx(62.5)
    assert moment.pressure_percents == {"cpu": 25.0}
    assert [(one.name, one.cpu_percent, one.memory_mib) for one in moment.processes] == [("spin", 100.0, None)]


class Driver:
    """As much of NVML as one card tells; what it does not know, this card does not offer."""

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("nvml") or name == "nvmlMemory_v2":
            return getattr(pynvml, name)
        answers: dict[str, Any] = {
            "nvmlDeviceGetName": b"NVIDIA H200",
            "nvmlDeviceGetPowerUsage": 650_000,
            "nvmlDeviceGetEnforcedPowerLimit": 700_000,
            "nvmlDeviceGetUtilizationRates": SimpleNamespace(gpu=97, memory=41),
            "nvmlDeviceGetMemoryInfo": SimpleNamespace(used=2**31, total=141 * 2**30),
            "nvmlDeviceGetCurrentClocksThrottleReasons": 0x4 | 0x200,
            "nvmlDeviceGetComputeRunningProcesses": [SimpleNamespace(pid=77, usedGpuMemory=2**30)],
        }
        return lambda *_: answers[name] if name in answers else self._refuse()

    def _refuse(self) -> Any:
        raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)


def test_a_card_is_told_as_its_driver_tells_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvidia, "management", Driver)
    monkeypatch.setattr(nvidia, "handles", lambda: [0])
    (card,) = nvidia.read_cards()
    assert (card.name, card.power_w, card.power_limit_w, card.temperature_c) == ("NVIDIA H200", 650.0, 700.0, None)
    assert (card.busy_percent, card.memory_busy_percent, card.memory_used_mib) == (97, 41, 2048)
    assert card.held_by == ("power cap", "board limit")
    assert card.processes == (ProcessMoment(pid=77, name="?", memory_mib=1024),)


def drawn(moment: MachineMoment, width: int = 80) -> str:
    sink = io.StringIO()
    Console(file=sink, width=width).print(render_machine(moment, width))
    return sink.getvalue()


def moment(**changes: Any) -> MachineMoment:
    told: dict[str, Any] = {
        "taken_at": AT, "window_s": 1.0, "cpu_percent": 62.4, "core_percents": {0: 100.0, 1: 25.0},
        "load_average": (1.5, 1.0, 0.5), "memory_used_mib": 2048, "memory_total_mib": 8192, "swap_used_mib": 0,
        "swap_total_mib": 0, "pressure_percents": {"cpu": 3.0}, "cards_note": "no GPU: NVML not found",
        "processes": (ProcessMoment(pid=7, name="spin", cpu_percent=99.6, memory_mib=12.2),),
    }  # fmt: skip
    return MachineMoment(**(told | changes))


def test_a_machine_without_a_gpu_says_so() -> None:
    text = drawn(moment())
    assert "12:00:00   CPU 62 % of 2 cores   load 1.50 1.00 0.50" in text
    assert "0 ██████████ 100 %    1 ██░░░░░░░░  25 %" in text
    assert "memory 2.0 of 8.0 GiB" in text
    assert "no GPU: NVML not found" in text
    assert max(map(len, text.splitlines())) <= 80


def test_a_card_shows_what_holds_it_down_and_who_uses_it() -> None:
    users = (ProcessMoment(pid=77, name="python", memory_mib=1024),)
    card = CardMoment(index=0, name="NVIDIA H200", power_w=650.0, held_by=("power cap",), processes=users)
    text = drawn(moment(cards=(card,), cards_note=""))
    assert "GPU 0  NVIDIA H200" in text
    assert "650 of – W" in text
    assert "clock throttled by: power cap" in text
    assert "used by: 77 python 1024 MiB" in text


def test_this_machine_is_read_once_as_a_line_of_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["monitor", "--once", "--json", "--interval", "0.1"]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    told = json.loads(line)
    assert told["memory_total_mib"] > 0
    assert told["cards"] or told["cards_note"]


def test_ctrl_c_ends_it_well(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def interrupt(_: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("prony.cli.commands.monitor.time.sleep", interrupt)
    assert main(["monitor"]) == 0
    assert capsys.readouterr().out == ""


def test_readings_go_on_until_somebody_stops_them() -> None:
    waits: list[float] = []
    moments = read_moments(0.25, waits.append)
    assert [next(moments).window_s >= 0 for _ in range(3)] == [True] * 3
    assert waits == [0.25] * 3


@pytest.mark.parametrize("text", ["0", "nan", "soon", "-1"])
def test_an_interval_that_is_none_is_refused(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["monitor", f"--interval={text}"])
    assert "interval" in capsys.readouterr().err
