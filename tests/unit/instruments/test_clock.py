"""The clock's facts are measured, and slow sources are not called safe."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from prony.instruments.clock import clock_facts, cost_of_reading_ns, smallest_step_ns

from .machines import planted

SOURCE = "sys/devices/system/clocksource/clocksource0/current_clocksource"


def test_the_step_is_positive_and_no_larger_than_a_millisecond() -> None:
    assert 0 < smallest_step_ns() < 1_000_000


def test_a_reading_costs_something_and_less_than_100_microseconds() -> None:
    assert 0 < cost_of_reading_ns() < 100_000


def test_the_facts_name_the_clock_that_perf_counter_is() -> None:
    facts = clock_facts()
    assert facts["implementation"] == time.get_clock_info("perf_counter").implementation
    assert isinstance(facts["safe"], bool)


def test_a_slow_source_is_not_safe_however_it_behaves(tmp_path: Path) -> None:
    facts = clock_facts(planted(tmp_path, {SOURCE: "acpi_pm"}))
    assert facts["source"] == "acpi_pm"
    assert facts["safe"] is False


def test_a_source_that_is_not_told_is_absent(tmp_path: Path) -> None:
    assert "source" not in clock_facts(tmp_path)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux names its clock source")
def test_linux_names_its_source() -> None:
    assert clock_facts().get("source", "absent") != ""
