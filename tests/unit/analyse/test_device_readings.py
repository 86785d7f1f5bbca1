"""What probes read becomes shares, rates and states that people know."""

from __future__ import annotations

import pytest

from prony.analyse.device_readings import derive_readings
from prony.model.device import Cpu, Hardware

FOUR_CORES = Hardware(cpu=Cpu(architecture="x86_64", logical_cores=4), memory_mib=1000)


def test_growing_counters_become_rates_and_busy_time_a_share_of_all_cores() -> None:
    read = [{"cpu_busy_s_total": 100.0, "disk_read_bytes_total": 0.0},
            {"cpu_busy_s_total": 110.0, "disk_read_bytes_total": 500.0},
            {"cpu_busy_s_total": 130.0, "disk_read_bytes_total": 500.0}]  # fmt: skip
    lines = {line.title: line for line in derive_readings([0.0, 5.0, 10.0], read, FOUR_CORES)}
    assert lines["CPU busy"].values[0] is None
    assert lines["CPU busy"].values[1:] == pytest.approx((50.0, 100.0))
    assert lines["disk reads"].values == (None, 100.0, 0.0)


def test_readings_that_came_together_are_measured_against_an_earlier_one() -> None:
    busy_s = [100.0, 110.0, 110.1]
    read = [{"cpu_busy_s_total": busy, "disk_read_bytes_total": 100 * busy} for busy in busy_s]
    cpu, disk = derive_readings([0.0, 5.0, 5.001], read, FOUR_CORES)
    assert cpu.values[1:] == pytest.approx((50.0, 10.1 / 5.001 / 4 * 100))
    assert disk.values[1:] == pytest.approx((200.0, 1010 / 5.001))


def test_a_message_that_was_held_up_makes_no_machine_busier_than_its_cores() -> None:
    read = [{"cpu_busy_s_total": 0.0}, {"cpu_busy_s_total": 20.0}]
    (line,) = derive_readings([0.0, 1.5], read, FOUR_CORES)
    assert line.values == (None, 100.0)


def test_used_memory_is_what_is_not_available() -> None:
    (line,) = derive_readings(
        [0.0, 5.0], [{"memory_available_mib": 400.0}, {"memory_available_mib": 100.0}], FOUR_CORES
    )
    assert (line.title, line.unit, line.values) == ("memory used", "MiB", (600.0, 900.0))


def test_a_counter_that_begins_anew_leaves_a_gap_and_no_negative_rate() -> None:
    read = [{"disk_read_bytes_total": value} for value in (100.0, 200.0, 5.0, 15.0)]
    (line,) = derive_readings([0.0, 1.0, 2.0, 3.0], read, None)
    assert line.values == (None, 100.0, None, 10.0)


def test_gpus_come_after_the_host_and_in_the_order_of_their_numbers() -> None:
    read = [{"gpu10_power_w": 1.0, "gpu2_power_w": 2.0, "gpu2_busy": 0.5, "frequency_mean_mhz": 3000.0}] * 2
    lines = derive_readings([0.0, 1.0], read, FOUR_CORES)
    assert [(line.part, line.title) for line in lines] == [
        ("host", "CPU clock"), ("gpu2", "GPU 2 busy"), ("gpu2", "GPU 2 power"), ("gpu10", "GPU 10 power"),
    ]  # fmt: skip
    assert lines[1].values == (50.0, 50.0)


def test_shares_of_a_cpu_of_unknown_size_and_unknown_counters_are_left_out() -> None:
    read = [{"cpu_busy_s_total": 1.0, "of_a_plug_in": 1.0}, {"cpu_busy_s_total": 2.0, "of_a_plug_in": 2.0}]
    assert derive_readings([0.0, 1.0], read, None) == []
