"""What a runner of any kind of job may use, and how it ends: asked to stop, or by a failure that a result keeps."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from prony.errors import PronyError, whose_move
from prony.load.processes import ClientProcesses
from prony.model.device import Environment
from prony.model.event import Event
from prony.model.result import Failure, ResultState
from prony.ports.clock import Clock
from prony.ports.models import ModelPolicy, Progress

if TYPE_CHECKING:
    from prony.model.job import Job
    from prony.runner.folder import ResultFolder, TelemetryRow

T = TypeVar("T")


@dataclass(frozen=True)
class RunContext:
    """What the runner may use: where models are cached, where engines live, what relative paths are relative to."""

    cache: Path
    engines: Path
    base: Path
    clock: Clock
    environment: Callable[[], Environment]
    emit: Callable[[Event], None]
    stop_asked: Callable[[], bool]
    # A block in which a stop is not waited for: it raises Stopped at once, out of whatever call the block is in.
    interruptible: Callable[[], AbstractContextManager[None]] = nullcontext
    address: str = ""  # where other machines reach this one, as its agent says
    policy: ModelPolicy = field(default_factory=ModelPolicy)
    clients: ClientProcesses = field(default_factory=ClientProcesses)  # of a load, some of them started ahead

    def say(self, kind: str, job: Job, **details: str | int) -> None:
        """Tell what happens to a job."""
        self.emit(Event.read({"kind": kind, "job_id": job.id} | details))

    def tell_fetching(self, job: Job, what: str) -> Progress:
        """Return what tells how far the fetching of something is; it ends where a stop was asked for."""

        def progress(done: int, total: int | None) -> None:
            if self.stop_asked():
                raise Stopped
            self.say("prepare", job, done=done, total=total or 0, message=f"fetching {what}")

        return progress

    def prepare_job(self, folder: ResultFolder, prepare: Callable[[], T]) -> T | None:
        """Return what a job needs; what is wrong with it is this job's failure and no other's."""
        try:
            with self.interruptible():
                return prepare()
        except Stopped:
            self.give_up(folder, Failure(code="cancelled", message="stopped before it started", whose="prony"))
        except PronyError as exc:
            self.give_up(folder, failure_of(exc, phase="prepare"))
        return None

    def give_up(self, folder: ResultFolder, failure: Failure) -> None:
        """End a job that never began."""
        state = ResultState.PARTIAL if failure.code == "cancelled" else ResultState.FAILED
        folder.update(failure=failure)
        folder.finish(state, self.clock.now(), [])
        self.say("finished", folder.job, state=state.value, message=failure.message)

    def end_job(
        self, folder: ResultFolder, telemetry: Sequence[TelemetryRow], *, is_good: bool, is_stopped: bool
    ) -> None:
        """End a job that ran; one that failed has its own failure, or else that of its last failed repetition."""
        state = ResultState.PARTIAL if is_stopped else ResultState.COMPLETE if is_good else ResultState.FAILED
        if state is ResultState.FAILED and folder.result.failure is None:
            failures = [one.failure for one in folder.result.repetitions if one.failure is not None]
            folder.update(failure=failures[-1] if failures else None)
        folder.finish(state, self.clock.now(), list(telemetry))
        self.say("finished", folder.job, state=state.value)


class Stopped(Exception):  # noqa: N818 - not an error: somebody asked
    """Somebody asked the runner to stop while it was getting ready."""


def failure_of(error: PronyError, *, phase: str) -> Failure:
    """Turn what was raised on purpose into what a result keeps."""
    return Failure.read(error.to_dict() | {"phase": phase, "whose": whose_move(error)})


@contextmanager
def interrupt_on_term() -> Iterator[None]:
    """Treat SIGTERM as Ctrl-C for as long as the block runs."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
