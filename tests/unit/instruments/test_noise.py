"""What others did is told apart from what we did, and only what the counters can prove convicts."""

from __future__ import annotations

import os
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import psutil
import pytest

from prony.instruments.counters import CpuTimes, HostCounters
from prony.instruments.noise import contamination, noise_between
from prony.model.result import Noise

QUIET = HostCounters(
    at_ns=0,
    cpus={cpu: CpuTimes(0, 0, 0, 0) for cpu in range(4)},
    pressure_us={"cpu": 0, "memory": 0, "io": 0},
    throttled_us=0,
    thermal_events=0,
    swapped_pages=0,
    oom_kills=0,
    own_cpu_s=0,
)


def later(seconds: float, busy_s: tuple[float, ...], steal_s: float = 0.0) -> HostCounters:
    cpus = {cpu: CpuTimes(busy, seconds - busy, 0, steal_s if cpu == 0 else 0) for cpu, busy in enumerate(busy_s)}
    return replace(QUIET, at_ns=int(seconds * 1e9), cpus=cpus)


def test_cpu_that_we_did_not_use_is_foreign() -> None:
    noise = noise_between(QUIET, later(2.0, (2.0, 2.0, 0.0, 0.0)), own_cpu_s=2.0)
    assert noise.foreign_cpu == pytest.approx(2.0 / 8.0)
    assert noise.window_s == pytest.approx(2.0)


def test_our_own_cpu_is_never_foreign_and_never_negative() -> None:
    assert noise_between(QUIET, later(1.0, (1.0, 0.5, 0.0, 0.0)), own_cpu_s=1.6).foreign_cpu == 0.0


def test_a_stranger_on_our_own_cpus_counts_by_the_share_of_those() -> None:
    noise = noise_between(QUIET, later(1.0, (1.0, 0.0, 0.0, 0.0)), own_cpu_s=0.5, cpus={0})
    assert noise.foreign_cpu == pytest.approx(0.5)


def test_strangers_beside_our_cpus_count_by_the_share_of_the_machine() -> None:
    noise = noise_between(QUIET, later(1.0, (0.5, 1.0, 1.0, 1.0)), own_cpu_s=0.5, cpus={0})
    assert noise.foreign_cpu == pytest.approx(3.0 / 4.0)


def test_stolen_time_is_the_larger_share_too() -> None:
    noise = noise_between(QUIET, later(1.0, (0.5, 0, 0, 0), steal_s=0.2), own_cpu_s=0.5, cpus={0, 1})
    assert noise.steal == pytest.approx(0.1)


def test_differences_of_the_other_counters_are_told_in_their_units() -> None:
    after = replace(
        later(2.0, (0, 0, 0, 0)),
        pressure_us={"cpu": 500_000, "memory": 100_000},
        throttled_us=2500,
        thermal_events=2,
        swapped_pages=7,
    )
    noise = noise_between(QUIET, after, own_cpu_s=0.0)
    assert noise.pressure_cpu == pytest.approx(0.25)
    assert noise.pressure_memory == pytest.approx(0.05)
    assert noise.pressure_io is None
    assert (noise.quota_throttled_ms, noise.thermal_events, noise.swapped_pages) == (2.5, 2, 7)


def test_a_system_that_tells_nothing_gives_nothing_and_convicts_nobody() -> None:
    mute = HostCounters(0, {}, {}, None, None, None, None, 0.0)
    noise = noise_between(mute, replace(mute, at_ns=10**9), own_cpu_s=0.0)
    assert noise == Noise(window_s=1.0, unwatched="this system does not report what other processes use")
    assert contamination(noise) == ()


@pytest.mark.parametrize(
    ("noise", "code"),
    [
        (Noise(foreign_cpu=0.08, window_s=10, cpu_resolution=0.002), "foreign_cpu"),
        (Noise(steal=0.05, window_s=10), "steal"),
        (Noise(pressure_memory=0.2), "pressure_memory"),
        (Noise(quota_throttled_ms=0.5), "quota_throttled_ms"),
        (Noise(thermal_events=1), "thermal_events"),
        (Noise(swapped_pages=1), "swapped_pages"),
        (Noise(pressure_cpu=0.5, foreign_cpu=0.04, window_s=10, cpu_resolution=0.002), "pressure_cpu"),
    ],
)
def test_each_reading_beyond_its_limit_is_one_reason(noise: Noise, code: str) -> None:
    assert [reason.partition(":")[0] for reason in contamination(noise)] == [code]


def test_threads_that_wait_for_each_other_are_no_contamination() -> None:
    assert contamination(Noise(pressure_cpu=1.0, foreign_cpu=0.0, window_s=3, cpu_resolution=0.01)) == ()


def test_waiting_for_a_disk_is_no_contamination() -> None:
    assert contamination(Noise(pressure_io=0.9)) == ()


def test_one_tick_too_many_in_a_short_window_convicts_nobody() -> None:
    # 50 ms on four CPUs, all ours; each counter is rounded up by a tick, which looks like a fifth of the machine.
    noise = noise_between(QUIET, later(0.05, (0.05, 0.05, 0.05, 0.05), steal_s=0.01), own_cpu_s=0.165)
    assert noise.foreign_cpu is not None
    assert noise.foreign_cpu > 0.15
    assert contamination(noise) == ()


def test_the_same_share_over_a_long_window_does_convict() -> None:
    noise = noise_between(QUIET, later(5.0, (5.0, 5.0, 5.0, 5.0)), own_cpu_s=16.5)
    assert [reason.partition(":")[0] for reason in contamination(noise)] == ["foreign_cpu"]


@contextmanager
def busy_process() -> Iterator[int]:
    """Run a process that does nothing but spin, for as long as the block runs."""
    code = "print('on', flush=True)\nwhile True: pass"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            process.stdout.readline()
            yield process.pid
        finally:
            process.kill()


def watched(pid: int, seconds: float) -> tuple[HostCounters, HostCounters, float]:
    """Watch the counters until the window is over, and tell the CPU time that one process used in it."""
    own_before, before = used_s(pid), HostCounters.read()
    after = before
    while after.at_ns - before.at_ns < seconds * 1e9:
        select.select([], [], [], 0.02)
        after = HostCounters.read()
    return before, after, used_s(pid) - own_before


def used_s(pid: int) -> float:
    """Return the CPU time that a process has used."""
    used = psutil.Process(pid).cpu_times()
    return float(used.user + used.system)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_busy_stranger_is_seen_and_our_own_busy_child_is_not_foreign() -> None:
    # On one CPU, so that its share is the same however many the machine has.
    cpu = {min(os.sched_getaffinity(0))}
    with busy_process() as pid:
        os.sched_setaffinity(pid, cpu)
        before, after, child_s = watched(pid, 2)
    watcher_s = after.own_cpu_s - before.own_cpu_s
    stranger = noise_between(before, after, watcher_s, cpu).foreign_cpu
    child = noise_between(before, after, watcher_s + child_s, cpu).foreign_cpu
    assert stranger is not None
    assert child is not None
    assert stranger > 0.3
    # Counted as ours, its time is gone from the foreign share, whatever else this machine does meanwhile.
    assert child_s > 0.05
    assert stranger - child > 0.5 * child_s / 2 / len(before.cpus)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_reading_the_counters_takes_less_than_5_milliseconds() -> None:
    HostCounters.read()
    costs: list[int] = []
    for _ in range(100):
        begin_ns = time.perf_counter_ns()
        HostCounters.read()
        costs.append(time.perf_counter_ns() - begin_ns)
    assert min(costs) < 5_000_000
