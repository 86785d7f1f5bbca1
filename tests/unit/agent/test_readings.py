"""What an agent tells of its device, and where Prometheus finds its own metrics."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Collection
from typing import ClassVar

import pytest

from prony.agent.agent import metrics_address
from prony.agent.readings import DeviceReader
from prony.model.agent import MOST_READINGS


class CountingProbe:
    name: ClassVar[str] = "counting"

    def __init__(self, **values: float) -> None:
        self.values = values
        self.reads = 0

    def available(self) -> str | None:
        return None

    def read(self) -> dict[str, float]:
        self.reads += 1
        return self.values

    def watch(self, pids: Collection[int]) -> None:
        pass

    def close(self) -> None:
        pass


def test_values_of_all_probes_are_told_without_those_that_are_no_number() -> None:
    reader = DeviceReader([CountingProbe(a=1.0, b=math.nan), CountingProbe(c=2.0)])
    assert reader.read() == {"a": 1.0, "c": 2.0}


def test_no_more_is_told_than_a_server_takes() -> None:
    many = {f"c{number}": 1.0 for number in range(MOST_READINGS + 5)}
    assert len(DeviceReader([CountingProbe(**many)]).read()) == MOST_READINGS


def test_probes_are_read_once_in_a_period_however_often_somebody_asks() -> None:
    probe = CountingProbe(a=1.0)
    reader = DeviceReader([probe], period_s=3600)

    async def ask() -> None:
        running = asyncio.create_task(reader.run())
        while not reader.latest:
            await asyncio.sleep(0)
        assert [reader.latest for _ in range(10)] == [{"a": 1.0}] * 10
        running.cancel()

    asyncio.run(ask())
    assert probe.reads == 1


def test_this_machines_own_probes_tell_something() -> None:
    assert DeviceReader().read()


@pytest.mark.parametrize(
    ("host", "server", "found"),
    [
        ("127.0.0.1", "http://127.0.0.1:7337", "127.0.0.1:9105"),
        ("127.0.0.1", "https://prony.example.org", ""),
        ("10.0.0.7", "https://prony.example.org", "10.0.0.7:9105"),
        ("::1", "http://[::1]:7337", "[::1]:9105"),
        ("0.0.0.0", "http://127.0.0.1:7337", "127.0.0.1:9105"),
    ],
)
def test_metrics_are_found_where_the_servers_machine_reaches_them(host: str, server: str, found: str) -> None:
    assert metrics_address(host, 9105, server) == found
