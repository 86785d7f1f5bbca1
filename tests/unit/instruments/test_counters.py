"""Counters are read in seconds and microseconds, and never invented."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from prony.instruments.counters import TICK_S, HostCounters, cpu_times, pressures_us

from .machines import laptop, planted, xeon

STAT = """\
cpu  300 0 100 1000 50 10 10 40 0 0
cpu0 200 0 50 400 30 5 5 40 20 0
cpu3 100 0 50 600 20 5 5 0 0 0
intr 1 2 3"""


def test_ticks_become_seconds_for_each_cpu_and_guest_time_is_not_counted_twice(tmp_path: Path) -> None:
    times = cpu_times(planted(tmp_path, {"proc/stat": STAT}))
    assert set(times) == {0, 3}
    assert times[0].busy_s == pytest.approx(260 * TICK_S)
    assert times[0].steal_s == pytest.approx(40 * TICK_S)
    assert times[3].idle_s == pytest.approx(600 * TICK_S)
    assert times[3].iowait_s == pytest.approx(20 * TICK_S)


def test_pressure_is_the_total_of_the_line_that_says_some(tmp_path: Path) -> None:
    assert pressures_us(laptop(tmp_path)) == {"cpu": 123456}


def test_what_a_kernel_lacks_is_absent(tmp_path: Path) -> None:
    nothing = HostCounters.read(tmp_path)
    assert nothing.cpus == {}
    assert nothing.pressure_us == {}
    assert nothing.throttled_us is None
    assert nothing.thermal_events is None
    assert nothing.swapped_pages is None
    assert nothing.oom_kills is None


def test_throttling_swapping_and_kills_are_counted(tmp_path: Path) -> None:
    warm, limited = HostCounters.read(laptop(tmp_path / "a")), HostCounters.read(xeon(tmp_path / "b"))
    assert warm.thermal_events == 3
    assert warm.swapped_pages == 30
    assert warm.oom_kills == 0
    assert limited.throttled_us == 1500


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_this_machine_counts_every_online_cpu_and_only_upwards() -> None:
    before, after = HostCounters.read(), HostCounters.read()
    assert len(before.cpus) >= len(os.sched_getaffinity(0))
    assert after.at_ns > before.at_ns
    assert all(after.cpus[cpu].busy_s >= before.cpus[cpu].busy_s for cpu in before.cpus)


def test_counters_need_nothing_but_the_standard_library() -> None:
    code = "import sys; from prony.instruments import clock, counters, noise;"
    code += "sys.exit(bool({'pydantic', 'psutil', 'numpy'} & sys.modules.keys()))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
