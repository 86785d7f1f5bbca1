"""How many connections a server has open: in all, of one address, and half-open."""

from __future__ import annotations

import pytest
from structlog.testing import capture_logs

from prony.errors import InputError
from prony.server.connections import PER_ADDRESS, ConnectionLimits, Connections, descriptor_limits


class Line:
    def __init__(self) -> None:
        self.is_gone = False

    def evict(self) -> None:
        self.is_gone = True


class Time:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def open_some(connections: Connections, count: int, address: str = "10.0.0.1") -> list[Line]:
    lines = [Line() for _ in range(count)]
    assert all(connections.add(line, address) for line in lines)
    return lines


def test_the_oldest_half_open_connection_makes_room() -> None:
    clock = Time()
    connections = Connections(ConnectionLimits(total=100, per_address=50, half_open=3), clock)
    first, *rest = open_some(connections, 3)
    clock.now = 3.0
    (last,) = open_some(connections, 1)
    assert first.is_gone
    assert not any(line.is_gone for line in (*rest, last))


def test_a_fleet_that_connects_at_once_keeps_its_connections() -> None:
    connections = Connections(ConnectionLimits(total=1000, per_address=500, half_open=3), Time())
    assert not any(line.is_gone for line in open_some(connections, 400))


def test_connections_that_are_being_answered_are_never_closed() -> None:
    connections = Connections(ConnectionLimits(total=100, per_address=3, half_open=3))
    busy = open_some(connections, 3)
    for line in busy:
        connections.note_busy(line, "10.0.0.1")
    with capture_logs() as lines:
        assert not connections.add(Line(), "10.0.0.1")
    assert [line["event"] for line in lines] == ["connection refused: too many are open"]
    assert not any(line.is_gone for line in busy)
    connections.note_idle(busy[1], "10.0.0.1")
    assert connections.add(Line(), "10.0.0.1")
    assert [line.is_gone for line in busy] == [False, True, False]


def test_an_address_that_has_many_makes_room_for_another_one() -> None:
    connections = Connections(ConnectionLimits(total=10, per_address=10, half_open=10))
    greedy = open_some(connections, 9, "10.0.0.1")
    others = open_some(connections, 2, "10.0.0.2")
    assert greedy[0].is_gone
    assert not any(line.is_gone for line in others)


def test_what_is_closed_no_longer_counts() -> None:
    connections = Connections(ConnectionLimits(total=2, per_address=2, half_open=2))
    for _ in range(5):
        lines = open_some(connections, 2)
        for line in lines:
            connections.remove(line, "10.0.0.1")
        assert not any(line.is_gone for line in lines)
    assert len(connections) == 0


def test_a_network_of_ipv6_is_one_address() -> None:
    connections = Connections(ConnectionLimits(total=100, per_address=1, half_open=1))
    (first,) = open_some(connections, 1, "2001:db8::1")
    open_some(connections, 1, "2001:db8::2")
    assert first.is_gone


def test_the_log_has_one_line_for_many_of_a_kind() -> None:
    clock = Time()
    connections = Connections(ConnectionLimits(total=100, per_address=1, half_open=1), clock)
    with capture_logs() as lines:
        open_some(connections, 50)
        clock.now = 11.0
        open_some(connections, 1)
    assert [(line["count"], line["address"]) for line in lines] == [(1, "10.0.0.1"), (49, "10.0.0.1")]


def test_the_limits_stay_below_the_descriptors_and_can_be_set() -> None:
    usual = descriptor_limits({})
    assert usual.half_open <= usual.per_address < usual.total
    assert descriptor_limits({PER_ADDRESS: "7"}).per_address == 7
    with pytest.raises(InputError, match="not a number of connections"):
        descriptor_limits({PER_ADDRESS: "many"})
