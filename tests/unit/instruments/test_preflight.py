"""What would make a measurement noisy is seen, judged, and answered with a command."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from prony.instruments import counters
from prony.instruments.preflight import AT_ONCE, WATCHED, judge_machine, look, quick_state
from prony.instruments.preflight.checks import Value, judge_gpus
from prony.instruments.preflight.machine_state import disk_free_mib, see
from prony.model.device import Condition

from .machines import laptop, phone, planted, xeon


def by_code(conditions: tuple[Condition, ...]) -> dict[str, Condition]:
    return {condition.code: condition for condition in conditions}


def test_a_warm_laptop_on_battery_is_warned_of_everything(tmp_path: Path) -> None:
    told = by_code(judge_machine(see(laptop(tmp_path))))
    noisy = {code for code, condition in told.items() if condition.status in ("warn", "block")}
    assert noisy >= {"power", "governor", "turbo", "heat", "swap", "memory", "clocksource", "frequency", "pressure"}
    assert told["power"].value == "battery, 61% charged, low-power profile"
    assert told["governor"].value == "powersave, prefers balance_power"
    assert told["heat"].value == "93 °C, 7 °C to the limit, throttled 3 times since boot"
    assert told["frequency"].value == "1900 MHz now, capped at 50% of the best"
    assert told["address_randomization"].status == "warn"
    assert told["smt"].value == "two CPUs share a core"


def test_every_warning_says_what_to_do(tmp_path: Path) -> None:
    conditions = judge_machine(see(laptop(tmp_path)))
    assert all(condition.hint for condition in conditions if condition.status in ("warn", "block"))
    assert all(not condition.hint for condition in conditions if condition.status == "pass")


def test_what_cannot_be_seen_is_unknown_and_says_why(tmp_path: Path) -> None:
    told = by_code(judge_machine(see(tmp_path)))
    for code in ("governor", "turbo", "heat", "frequency", "clocksource", "virtualization", "memory", "load"):
        assert told[code].status == "unknown", code
        assert len(told[code].value) > 10, code


def test_a_quota_below_the_cpus_is_a_warning(tmp_path: Path) -> None:
    values = see(xeon(tmp_path)) | {"cpus_allowed": 8}
    condition = by_code(judge_machine(values))["quota"]
    assert (condition.status, condition.value) == ("warn", "2.5 cores of 8")


def test_a_disks_sensor_is_not_the_cpus(tmp_path: Path) -> None:
    heat = counters.heat(laptop(tmp_path))
    assert heat == counters.Heat(93.0, 7.0)


def test_a_board_tells_its_heat_by_zones(tmp_path: Path) -> None:
    zone = "sys/class/thermal/thermal_zone0"
    trips: dict[str, str | int] = {f"{zone}/trip_point_0_type": "critical", f"{zone}/trip_point_0_temp": 110000}
    root = planted(phone(tmp_path), {f"{zone}/type": "cpu-0-0", f"{zone}/temp": 45500, **trips})
    assert counters.heat(root) == counters.Heat(45.5, 64.5)


@pytest.mark.parametrize(("share", "status"), [(0.0, "pass"), (0.04, "pass"), (0.10, "warn"), (0.30, "block")])
def test_foreign_cpu_warns_above_a_twentieth_and_blocks_above_a_fifth(share: float, status: str) -> None:
    values = {"foreign_cpu": share, "cpu_resolution": 0.01, "steal": 0.0, "window_s": 1.0}
    assert by_code(judge_machine(values, checks=WATCHED))["foreign_cpu"].status == status


def test_turbo_is_fine_with_room_to_the_limit() -> None:
    assert by_code(judge_machine({"turbo": "on", "headroom_c": 40.0}))["turbo"].status == "pass"
    assert by_code(judge_machine({"turbo": "on"}))["turbo"].status == "warn"


def test_swap_that_moves_is_a_warning_and_swap_that_rests_is_not() -> None:
    rest = {"swap_used_mib": 5, "swap_total_mib": 1000}
    assert by_code(judge_machine({**rest, "swapped_pages": 0}))["swap"].status == "pass"
    assert by_code(judge_machine({**rest, "swapped_pages": 12}))["swap"].status == "warn"


def test_a_full_disk_blocks() -> None:
    assert by_code(judge_machine({"disk_free_mib": 50}))["disk"].status == "block"
    assert by_code(judge_machine({"disk_free_mib": 50_000}))["disk"].status == "pass"


def test_the_disk_of_a_folder_that_is_not_made_yet_is_its_parents(tmp_path: Path) -> None:
    assert disk_free_mib(tmp_path / "not" / "yet") == pytest.approx(disk_free_mib(tmp_path), rel=0.05)


def test_a_shared_and_throttled_gpu_is_told() -> None:
    values: dict[str, float | int | str | None] = {
        "gpu0_strangers": 2,
        "gpu0_throttle_reasons": 0x20,
        "gpu0_persistence": "off",
        "gpu0_sm_mhz": 345,
        "gpu0_sm_max_mhz": 1980,
    }
    told = by_code(tuple(judge_gpus(values)))
    assert {code: condition.status for code, condition in told.items()} == {
        "gpu0_processes": "warn", "gpu0_throttling": "warn", "gpu0_persistence": "warn", "gpu0_clocks": "unknown",
        "gpu0_sharing": "pass",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("seen", "value"),
    [({"gpu0_mig": "on"}, "split into slices (MIG)"), ({"gpu0_mps_clients": 2}, "shared by MPS, 2 clients")],
)
def test_a_card_that_is_not_whole_is_warned_of(seen: dict[str, Value], value: str) -> None:
    told = by_code(tuple(judge_gpus({"gpu0_strangers": 0} | seen)))["gpu0_sharing"]
    assert (told.status, told.value) == ("warn", value)


class TestThisMachine:
    def test_a_look_judges_every_check(self, tmp_path: Path) -> None:
        state = look(window_s=0.1, home=tmp_path)
        codes = [condition.code for condition in state.conditions]
        assert len(codes) == len(set(codes)) >= len(AT_ONCE) + len(WATCHED)
        assert state.taken_at.tzinfo is not None
        assert state.values["disk_free_mib"]

    def test_a_quick_look_has_no_window_and_takes_5_milliseconds_and_as_much_for_each_gpu(self, tmp_path: Path) -> None:
        quick_state(home=tmp_path)
        costs: list[float] = []
        for _ in range(11):
            # CPU time: on a busy machine the wall tells of others.
            begin = time.thread_time()
            state = quick_state(home=tmp_path)
            costs.append(time.thread_time() - begin)
        assert "foreign_cpu" not in state.values
        gpus = sum(name.endswith("_strangers") for name in state.values)
        assert min(costs) < 0.005 * (1 + gpus)
