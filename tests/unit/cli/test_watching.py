"""Following an experiment that runs elsewhere: what is told, once, and what Ctrl-C does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from prony.cli import watch
from prony.cli.watch import Watcher, follow_experiment
from prony.client.watching import Snapshot, Update
from prony.errors import PronyError, TransportError
from prony.model.event import Event
from servers.documents import job, view

FAILURE = {"code": "crash", "message": "it crashed"}


class Told:
    """A follower that writes down what it is told."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def start(self, experiment: Any, jobs: Any) -> None:
        self.lines.append(f"start {experiment.id} {[one.title for one in jobs]}")

    def event(self, event: Event) -> None:
        self.lines.append(f"{event.kind} {event.job_id} {event.state} {event.message}".strip())

    def place(self, job_id: str, agent: str) -> None:
        self.lines.append(f"place {job_id} {agent}".strip())

    def note(self, text: str) -> None:
        self.lines.append(text.strip())


def shown(*updates: Update) -> list[str]:
    told = Told()
    watcher = Watcher(told)
    for update in updates:
        watcher.take(update)
    return told.lines[1:]


def snapshot(*jobs: Any, state: str = "running") -> Snapshot:
    return Snapshot(experiment=view(state=state), jobs=jobs)


def test_who_runs_a_job_is_told_when_it_changes_and_not_again() -> None:
    leased = job(state="leased", agent_id="lab-1")
    again = job(state="leased", agent_id="lab-2", attempt=2)
    assert shown(snapshot(job()), leased, leased, snapshot(leased), job(attempt=1), again) == [
        "place e1-001 lab-1",
        "place e1-001",
        "place e1-001 lab-2",
    ]


def test_why_jobs_wait_is_told_once_for_all_that_wait_for_the_same() -> None:
    reason = "no agent fits: lab-1 lacks gpu.memory_gib >=24 (has none)"
    many = [job(f"e1-00{number}", reason=reason) for number in range(3)]
    assert shown(snapshot(*many), many[0], job("e1-007", reason="all who fit are busy")) == [
        f"3 jobs wait: {reason}",
        "engine=onnxruntime waits: all who fit are busy",
    ]


def test_a_job_has_ended_when_the_server_has_its_result() -> None:
    finished = Event(kind="finished", job_id="e1-001", state="complete")
    assert shown(snapshot(job()), finished) == []
    assert shown(snapshot(job()), job(state="complete")) == ["finished e1-001 complete"]
    assert shown(snapshot(job()), job(state="failed", failure=FAILURE)) == ["finished e1-001 failed it crashed"]


def test_what_a_stranger_wrote_cannot_move_the_cursor() -> None:
    line = shown(snapshot(job()), Event(kind="repetition", job_id="e1-001", message="\x1b[2Jgone\nx"))
    assert line == ["repetition e1-001  [2Jgone x"]


class Server:
    """As much of a client as following needs: each watch goes through one list of updates, or raises from it."""

    def __init__(self, *streams: list[Update | BaseException | Callable[[], None]]) -> None:
        self.streams = list(streams)
        self.cancelled = 0
        self.refusals: list[PronyError] = []
        self.experiments = self

    def watch(self, _: str, *, on_lost: Any) -> Iterator[Update]:
        for update in self.streams.pop(0):
            if isinstance(update, TransportError):
                on_lost(update, 0.1)
            elif isinstance(update, BaseException):
                raise update
            else:
                assert not callable(update)
                yield update

    def cancel(self, _: str) -> None:
        self.cancelled += 1
        if self.refusals:
            raise self.refusals.pop(0)


ENDED = snapshot(job(state="complete"), state="complete")
STOPPED = snapshot(job(state="partial"), state="partial")


def followed(server: Any, *, cancels: bool = True) -> watch.Ended:
    return follow_experiment(server, "e1", cancels=cancels)


def test_ctrl_c_cancels_and_stays_until_the_end(capsys: pytest.CaptureFixture[str]) -> None:
    server = Server([snapshot(job()), KeyboardInterrupt()], [STOPPED])
    assert followed(server).view.experiment.state == "partial"
    assert server.cancelled == 1
    assert "completed measurements are kept" in capsys.readouterr().err


def test_a_second_ctrl_c_leaves_at_once() -> None:
    server = Server([snapshot(job()), KeyboardInterrupt()], [KeyboardInterrupt()])
    with pytest.raises(KeyboardInterrupt):
        followed(server)
    assert server.cancelled == 1


def test_ctrl_c_of_one_who_only_watches_cancels_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    server = Server([snapshot(job()), KeyboardInterrupt()])
    with pytest.raises(KeyboardInterrupt):
        followed(server, cancels=False)
    assert server.cancelled == 0
    assert "prony watch e1" in capsys.readouterr().err


def test_a_server_that_was_away_when_ctrl_c_came_is_told_when_it_is_back(capsys: pytest.CaptureFixture[str]) -> None:
    away = TransportError("cannot reach the server at X")
    server = Server([snapshot(job()), away, KeyboardInterrupt()], [away, snapshot(job()), STOPPED])
    server.refusals = [away]
    followed(server)
    assert server.cancelled == 2
    said = capsys.readouterr().err
    assert said.count("reconnecting") == 1
    assert "not stopped yet" in said
    assert "the server is back" in said


def test_one_who_asked_to_stop_does_not_wait_for_ever_for_a_server_that_is_away() -> None:
    away = TransportError("cannot reach the server at X")
    server = Server([snapshot(job()), KeyboardInterrupt()], [away] * 1000)
    with pytest.raises(KeyboardInterrupt):
        followed(server)
    server = Server([snapshot(job()), *[away] * 1000, STOPPED])
    assert followed(server).view.experiment.state == "partial"


def test_sigterm_is_ctrl_c() -> None:
    import signal

    class Terminated(Server):
        def watch(self, _: str, *, on_lost: Any) -> Iterator[Update]:
            for update in super().watch(_, on_lost=on_lost):
                yield update
                if self.streams:
                    handler = signal.getsignal(signal.SIGTERM)
                    assert callable(handler)  # called, not signalled: a signal that comes late would end the tests
                    handler(signal.SIGTERM, None)

    server = Terminated([snapshot(job()), ENDED], [STOPPED])
    before = signal.getsignal(signal.SIGTERM)
    assert followed(server).view.experiment.state == "partial"
    assert server.cancelled == 1
    assert signal.getsignal(signal.SIGTERM) is before
