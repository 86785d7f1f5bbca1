"""Generate a load: start the client processes, run the schedule and collect every request's outcome."""

from __future__ import annotations

import json
import math
import os
import selectors
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from prony.errors import InputError, MeasurementError
from prony.load import orders
from prony.load.endpoint import resolve_endpoint
from prony.load.limits import check_files, check_lines
from prony.load.live import LiveFigures, LoadWatch
from prony.load.orders import ClientOrder
from prony.load.outcome import ClientFacts, LoadOutcome, merge_rows
from prony.load.processes import ClientProcesses
from prony.load.salts import write_places
from prony.load.schedule import LoadSchedule
from prony.ports.driver import Endpoint, Keeps, Prepared

if TYPE_CHECKING:
    from prony.model.load import Load

_LINES_EACH = 256
_RATE_EACH = 20_000.0
_TICK_S = 0.25
_READY_S = 60.0
_LEAD_NS = 20_000_000  # from when all are ready to the common start


@dataclass(frozen=True)
class ClientShare:
    """Which part of a load is sent from here: the processes from `first` on, of so many in `total` on all machines."""

    first: int
    total: int


@dataclass(frozen=True)
class LoadPlan:
    """What a load needs. `scratch` is a folder for this load alone; `processes` None: as many as it needs. Of `clients`
    some may wait already. `share` None: all of it is sent from here. `salt` is new for each run; empty: prompts are
    sent as they were made."""

    requests: Prepared
    endpoint: Endpoint
    schedule: LoadSchedule
    load: Load
    scratch: Path
    processes: int | None = None
    clients: ClientProcesses = field(default_factory=ClientProcesses)
    share: ClientShare | None = None
    salt: str = ""


def at_once() -> int:
    """Return the common start of clients that are ready now."""
    return time.perf_counter_ns() + _LEAD_NS


class LostClientError(MeasurementError):
    """A client process died; `rest` is what it and the others had recorded until then."""

    def __init__(self, message: str, *, hint: str, rest: LoadOutcome) -> None:
        super().__init__(message, hint=hint)
        self.rest = rest


def generate(
    ground: LoadPlan,
    *,
    on_tick: Callable[[LiveFigures], None] = lambda _: None,
    stop_asked: Callable[[], bool] = lambda: False,
    on_start: Callable[[int], None] = lambda _: None,
    start_at: Callable[[], int] = at_once,
) -> LoadOutcome:
    """Send the whole load; return a row for every request. `on_start` hears the common start on `perf_counter_ns`,
    which `start_at` is asked for when all clients are ready."""
    if not len(ground.requests.requests):
        raise InputError("there are no requests to send", hint="check the options of the driver and its task")
    written = _write(ground)
    with ExitStack() as stack:
        clients = [stack.enter_context(_Client(order, ground.clients)) for order in written]
        _wait(clients, lambda client: client.is_ready, _READY_S, stop_asked)
        # One that is stopped before it begins is told so in one breath: it sends nothing.
        stop = "\nstop" if stop_asked() else ""
        begin_ns = start_at()
        for client in clients:
            client.say(f"start {begin_ns}{stop}")
        on_start(begin_ns)
        try:
            was_stopped = _attend(ground, clients, begin_ns, on_tick, stop_asked)
        except MeasurementError as exc:
            stack.close()
            rest = _outcome(written, clients, begin_ns, was_stopped=True)
            raise LostClientError(exc.message, hint=exc.hint, rest=rest) from exc
    return _outcome(written, clients, begin_ns, was_stopped=was_stopped)


# What is written before


def _write(ground: LoadPlan) -> list[ClientOrder]:
    """Write the files of all processes; return their orders."""
    schedule, requests = ground.schedule, ground.requests.requests
    lines, most = lines_asked(schedule), _most_lines(schedule)
    processes = processes_of(schedule, ground.processes)
    share = ground.share or ClientShare(0, processes)
    check_lines(-(-most * processes // share.total), ground.endpoint)
    check_files(-(-most // share.total) + 64)
    ground.scratch.mkdir(parents=True, exist_ok=True)
    orders.write_requests(requests, ground.scratch)
    if ground.salt:
        write_places(requests, ground.scratch)
    has_sessions = any(request.after is not None for request in requests)
    common = _common(ground, has_sessions=has_sessions)
    written = []
    for number in range(share.first, share.first + processes):
        order = ClientOrder(
            **common, process=number, processes=share.total, name=f"client-{number}",
            lines=_lines(lines, schedule.burst, number, share.total),
            most_lines=_lines(most, schedule.burst, number, share.total),
            most_in_flight=_share(schedule.most_in_flight, number, share.total),
            first_here=processes if may_come_first(schedule, share.total) else 0,
        )  # fmt: skip
        _write_dues(schedule, order)
        order.write()
        written.append(order)
    return written


def _common(ground: LoadPlan, *, has_sessions: bool) -> dict[str, Any]:
    schedule, prepared = ground.schedule, ground.requests
    return {
        "endpoint": ground.endpoint,
        "address": resolve_endpoint(ground.endpoint),
        "wire": prepared.wire,
        "wire_options": dict(prepared.wire_options),
        "keeps": prepared.keeps == Keeps.REPLY,
        "folder": str(ground.scratch.resolve()),
        "is_open": schedule.dues_ns is not None,
        "steps": [(step.at_ns, step.users) for step in schedule.steps],
        "think_ns": schedule.think_ns,
        "burst": schedule.burst,
        "duration_ns": schedule.duration_ns,
        "limit_ns": schedule.limit_ns,
        "count": schedule.count,
        "each": schedule.each,
        "at_least": schedule.at_least,
        "timeout_ns": ground.load.timeout,
        "drain_ns": ground.load.drain,
        "sessions": has_sessions,
        "salt": ground.salt,
    }


def _write_dues(schedule: LoadSchedule, order: ClientOrder) -> None:
    """Write which requests of an open load are this process's: every n-th; the turns of a session stay together."""
    if schedule.dues_ns is None:
        return
    indices = np.arange(len(schedule.dues_ns), dtype=np.int64)
    keys = indices
    if order.sessions:
        after = np.fromfile(order.shared_file("requests.after"), np.int64)
        numbers = indices % len(after)
        keys = indices - numbers + orders.roots(after)[numbers]
    mine = indices[keys % order.processes == order.process]
    mine.tofile(order.file("indices"))
    schedule.dues_ns[mine].astype(np.int64).tofile(order.file("dues"))


def _lines(lines: int, burst: int, number: int, processes: int) -> int:
    """Return how many of the connections are this process's: those of a user stay together."""
    return len(range(number, lines // burst, processes)) * burst


def _share(most: int | None, number: int, processes: int) -> int | None:
    return None if most is None else len(range(number, most, processes))


def lines_asked(schedule: LoadSchedule) -> int:
    """Return how many connections are opened before the load begins."""
    if schedule.dues_ns is None:
        first = next((step.users for step in schedule.steps if step.at_ns <= 0), 0)
        return max(first, 1) * schedule.burst
    # What an answer within fifty milliseconds would keep busy; more are opened when they are needed.
    expected = math.ceil(_rate(schedule) * 0.05)
    return min(max(expected, 4), 256, schedule.most_in_flight or 256)


def _most_lines(schedule: LoadSchedule) -> int:
    """Return how many connections there may be at once, as far as that is known beforehand."""
    if schedule.dues_ns is None:
        return max((step.users for step in schedule.steps), default=1) * schedule.burst
    return max(lines_asked(schedule), schedule.most_in_flight or 1)


def processes_of(schedule: LoadSchedule, asked: int | None, machines: int = 1) -> int:
    """Return how many client processes there are on this machine, which is one of so many."""
    processes = asked or -(-default_processes(schedule, (os.cpu_count() or 1) * machines) // machines)
    # A process without a user, or without leave to have a request in flight, would have nothing to do.
    most = schedule.most_in_flight
    if schedule.dues_ns is None:
        most = _most_lines(schedule) // schedule.burst
    return max(1, processes if most is None else min(processes, most // machines))


def default_processes(schedule: LoadSchedule, cores: int) -> int:
    """One, unless more lines or requests are asked for than one process serves exactly."""
    needed = math.ceil(max(_most_lines(schedule) / _LINES_EACH, _rate(schedule) / _RATE_EACH))
    return max(1, min(max(cores - 1, 1), needed))


def may_come_first(schedule: LoadSchedule, processes: int) -> bool:
    """May clients run before all ordinary processes? Those of an open load, if they are not busy all the time: the
    kernel holds up whoever is and comes first."""
    return schedule.dues_ns is not None and _rate(schedule) / processes <= _RATE_EACH


def _rate(schedule: LoadSchedule) -> float:
    """Return how many requests a second an open load asks for on average."""
    dues = schedule.dues_ns
    if dues is None or len(dues) < 2:
        return 0.0
    return (len(dues) - 1) / max((int(dues[-1]) - int(dues[0])) / 1e9, 1.0)


# What runs


class _Client:
    """One client process as the generator sees it. Leaving the block ends it."""

    def __init__(self, order: ClientOrder, clients: ClientProcesses) -> None:
        self.order = order
        self.facts: Mapping[str, Any] | None = None
        self.is_ready = False
        self.is_gone = False
        self._clients = clients
        self._heard = b""

    def __enter__(self) -> Self:
        self._process = self._clients.take()
        self.pid = self._process.pid
        self.output = self._process.output
        self.say(str(self.order.file("json")))
        return self

    def say(self, line: str) -> None:
        self._process.say(line)

    def hear(self) -> None:
        data = os.read(self.output, 2**16)
        if not data:
            self.is_gone = True
        *lines, self._heard = (self._heard + data).split(b"\n")
        for line in lines:
            message = json.loads(line)
            self.is_ready = self.is_ready or "ready" in message
            self.facts = message.get("done", self.facts)

    def death_error(self) -> MeasurementError:
        code, said = self._process.code(), self._process.last_words() or "it printed nothing"
        return MeasurementError(
            f"client process {self.order.process} ended too early (exit code {code}): {said}",
            hint="check whether it was killed or ran out of memory",
        )

    def __exit__(self, *_: object) -> None:
        self._process.end()


def _wait(
    clients: list[_Client], until: Callable[[_Client], bool], limit_s: float, stop_asked: Callable[[], bool]
) -> None:
    """Listen until every client has got so far; raise where one dies, or where it takes too long."""
    limit = time.monotonic() + limit_s
    while not all(until(client) for client in clients) and not stop_asked():
        _listen(clients, _TICK_S)
        if time.monotonic() > limit:
            raise MeasurementError(
                "the client processes were not ready in time", hint="check whether the machine is overloaded"
            )


def _listen(clients: list[_Client], patience_s: float) -> None:
    with selectors.DefaultSelector() as selector:
        for client in clients:
            if not client.is_gone:
                selector.register(client.output, selectors.EVENT_READ, client)
        for key, _ in selector.select(patience_s):
            key.data.hear()
    for client in clients:
        if client.is_gone and client.facts is None:
            raise client.death_error()


def _attend(
    ground: LoadPlan,
    clients: list[_Client],
    begin_ns: int,
    on_tick: Callable[[LiveFigures], None],
    stop_asked: Callable[[], bool],
) -> bool:
    """Listen until all are done, and tell how it goes; return whether somebody stopped it."""
    schedule = ground.schedule
    watch = LoadWatch(
        [client.order.file("records") for client in clients], begin_ns, is_open=schedule.dues_ns is not None
    )
    was_stopped = False
    tick = time.monotonic() + _TICK_S
    while any(client.facts is None for client in clients):
        _listen(clients, max(tick - time.monotonic(), 0.0))
        if time.monotonic() >= tick:
            tick = max(tick + _TICK_S, time.monotonic())
            on_tick(watch.look(time.perf_counter_ns(), total=schedule.total, duration_ns=schedule.duration_ns))
        if not was_stopped and stop_asked():
            was_stopped = True
            for client in clients:
                client.say("stop")
    on_tick(watch.look(time.perf_counter_ns(), total=schedule.total, duration_ns=schedule.duration_ns))
    return was_stopped


# What is left after


def _outcome(written: list[ClientOrder], clients: list[_Client], begin_ns: int, *, was_stopped: bool) -> LoadOutcome:
    facts = tuple(_facts(client) for client in clients if client.facts is not None)
    problems = [text for client in clients if client.facts and (text := client.facts["spool_problem"])]
    if problems:
        raise MeasurementError(f"replies could not be stored: {problems[0]}", hint="check the free disk space")
    full = [until for client in clients if client.facts and (until := int(client.facts["full_until_ns"]))]
    return LoadOutcome(
        records=merge_rows([order.file("records") for order in written]),
        clients=facts,
        begin_ns=begin_ns,
        end_ns=max((int(client.facts["end_ns"]) for client in clients if client.facts), default=time.perf_counter_ns()),
        full_until_ns=min(full, default=None),
        was_stopped=was_stopped,
        spools=[order.file("spool") for order in written],
    )


def _facts(client: _Client) -> ClientFacts:
    told = dict(client.facts or {})
    median, p99, most = told["loop_lags_ns"]
    same = ("cpu_s", "wall_s", "rows", "sent", "connections_opened", "sessions_resumed", "asked_again",
            "in_flight_mean", "in_flight_max", "rss_peak_mib", "is_real_time")  # fmt: skip
    return ClientFacts(
        pid=client.pid,
        connections_asked=client.order.lines if client.order.is_open else client.order.most_lines,
        loop_lag_p50_ns=median,
        loop_lag_p99_ns=p99,
        loop_lag_max_ns=most,
        **{name: told[name] for name in same},
    )
