"""Instants come in order and not early, sockets have their turn, and another system's way to wait does the same."""

from __future__ import annotations

import selectors
import socket
import time

import pytest

from prony.load.poll import EVENTS_CALM, READ, WRITE, Poll, Selected, Timer

LATER_NS = time.perf_counter_ns() + 3600 * 10**9


@pytest.fixture(params=["native", "portable"])
def poll(request: pytest.FixtureRequest) -> Poll:
    return Poll() if request.param == "native" else Poll(Selected(selectors.PollSelector()))


def test_instants_come_in_order_and_never_early(poll: Poll) -> None:
    came: list[tuple[int, int]] = []
    begin = time.perf_counter_ns()

    def come(due: int) -> None:
        came.append((due, time.perf_counter_ns()))
        poll.is_over = len(came) == 4

    for due in (begin + 3_000_000, begin + 1_000_000, 0, begin + 2_000_000):
        poll.at(due, lambda due=due: come(due))  # type: ignore[misc]
    poll.run()
    assert [due for due, _ in came] == sorted(due for due, _ in came)
    assert all(at >= due for due, at in came)
    poll.close()


@pytest.mark.parametrize("awake_ns", [0, 60_000])
def test_what_is_due_is_called_at_its_instant_and_never_early(poll: Poll, awake_ns: int) -> None:
    came: list[tuple[int, int]] = []
    dues = [time.perf_counter_ns() + 1_000_000 * number for number in range(4)]

    def come() -> None:
        came.append((poll.due_ns, time.perf_counter_ns()))
        if dues:
            poll.due_ns = dues.pop(0)
        else:
            poll.is_over = True

    poll.due_ns, poll.on_due, poll.awake_ns = dues.pop(0), come, awake_ns
    poll.run()
    assert len(came) == 4
    assert all(at >= due for due, at in came)
    poll.close()


def test_what_is_due_does_not_wait_for_the_rest_of_a_batch(poll: Poll) -> None:
    pairs = [socket.socketpair() for _ in range(3)]
    calls: list[str] = []

    def read(one: socket.socket) -> None:
        calls.append("socket")
        one.recv(1)
        # It takes until the next request is due.
        poll.due_ns = time.perf_counter_ns()

    def due() -> None:
        calls.append("due")
        poll.due_ns = LATER_NS
        poll.is_over = calls.count("due") == len(pairs)

    poll.due_ns, poll.on_due = LATER_NS, due
    for one, other in pairs:
        poll.watch(one.fileno(), lambda one=one: read(one))  # type: ignore[misc]
        other.send(b"x")
    poll.run()
    assert calls == ["socket", "due"] * len(pairs)
    poll.close()
    for one, other in pairs:
        one.close()
        other.close()


def test_a_loop_that_an_instant_ends_waits_for_nothing_more(poll: Poll) -> None:
    def end() -> None:
        poll.is_over = True

    poll.at(time.perf_counter_ns() + 1_000_000, end)
    poll.run()
    assert poll.is_over
    poll.is_over = False
    poll.due_ns, poll.on_due = 1, end
    poll.run()
    assert poll.is_over
    poll.close()


def test_a_call_that_asks_for_itself_again_does_not_keep_sockets_waiting(poll: Poll) -> None:
    one, other = socket.socketpair()
    calls: list[str] = []

    def again() -> None:
        calls.append("timer")
        poll.at(0, again)

    def read() -> None:
        calls.append("socket")
        poll.is_over = True

    poll.watch(one.fileno(), read)
    other.send(b"x")
    poll.at(0, again)
    poll.run()
    assert calls.count("timer") < 5
    poll.close()
    one.close()
    other.close()


def test_a_call_that_is_late_again_and_again_does_not_keep_others_waiting(poll: Poll) -> None:
    calls: list[str] = []

    def late() -> None:
        calls.append("late")
        poll.at(1, late)

    def end() -> None:
        poll.is_over = True

    poll.at(1, late)
    poll.at(2, end)
    poll.run()
    assert len(calls) < 5
    poll.close()


def test_a_discarded_socket_is_not_called_in_the_same_batch(poll: Poll) -> None:
    pairs = [socket.socketpair() for _ in range(2)]
    called: list[int] = []

    def read(number: int) -> None:
        called.append(number)
        poll.discard(pairs[1 - number][0])
        poll.is_over = True

    for number, (one, other) in enumerate(pairs):
        poll.watch(one.fileno(), lambda number=number: read(number), READ)  # type: ignore[misc]
        other.send(b"x")
    poll.run()
    assert len(called) == 1
    assert pairs[1 - called[0]][0].fileno() == -1
    poll.close()
    for one, other in pairs:
        one.close()
        other.close()


def test_what_cannot_wait_does_not_wait_for_all_that_can() -> None:
    poll = Poll()
    pairs = [socket.socketpair() for _ in range(2 * EVENTS_CALM)]
    calls: list[str] = []

    def read(kind: str, one: socket.socket) -> None:
        calls.append(kind)
        one.recv(1)
        poll.is_over = len(calls) == len(pairs)

    for number, (one, other) in enumerate(pairs):
        kind = "other" if number == len(pairs) - 1 else "calm"
        poll.watch(one.fileno(), lambda kind=kind, one=one: read(kind, one))  # type: ignore[misc]
        if kind == "calm":
            poll.calm(one.fileno())
        other.send(b"x")
    poll.run()
    assert calls.count("calm") == len(pairs) - 1
    assert calls.index("other") <= EVENTS_CALM
    poll.close()
    for one, other in pairs:
        one.close()
        other.close()


def test_a_descriptor_that_could_wait_is_as_any_other_again_or_forgotten(poll: Poll) -> None:
    one, other = socket.socketpair()

    def end() -> None:
        poll.is_over = True

    poll.watch(one.fileno(), end)
    for again in (poll.hurry, lambda fd: poll.rewatch(fd, end, READ)):
        poll.calm(one.fileno())
        poll.calm(one.fileno())
        again(one.fileno())
        poll.is_over = False
        other.send(b"x")
        poll.run()
        one.recv(1)
    poll.calm(one.fileno())
    poll.discard(one)
    poll.close()
    assert one.fileno() == -1
    other.close()


def test_writable_is_told_where_it_is_asked_for(poll: Poll) -> None:
    one, other = socket.socketpair()

    def end() -> None:
        poll.is_over = True

    poll.watch(one.fileno(), lambda: None, READ)
    poll.rewatch(one.fileno(), end, READ | WRITE)
    poll.run()
    assert poll.is_over
    poll.forget(one.fileno())
    poll.close()
    one.close()
    other.close()


def test_an_alarm_that_is_set_again_is_silent_until_then() -> None:
    alarm = Timer()
    if alarm.fd < 0:
        pytest.skip("no timerfd on this system")
    with selectors.DefaultSelector() as selector:
        selector.register(alarm.fd, selectors.EVENT_READ)
        alarm.set(0)
        assert selector.select(10)
        alarm.set(time.perf_counter_ns() + 3600 * 10**9)
        assert not selector.select(0)
    alarm.close()
