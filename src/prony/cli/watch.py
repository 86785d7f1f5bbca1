"""Follow an experiment on a server: show its progress, and cancel it on Ctrl-C."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from prony.cli.progress import Follower, following
from prony.client import Client
from prony.client.watching import Snapshot, Update
from prony.errors import ConflictError, NotFoundError, PronyError
from prony.model.event import Event
from prony.model.queue import ExperimentView, JobState, QueuedJob
from prony.model.states import ENDED
from prony.report.escaping import one_line
from prony.runner.context import interrupt_on_term

_PATIENCE_S = 20.0


class WatchRow(NamedTuple):
    id: str
    title: str


class Watcher:
    """Shows what has changed since the last time, however often everything is told again."""

    def __init__(self, follower: Follower) -> None:
        self.jobs: dict[str, QueuedJob] = {}
        self.view: ExperimentView | None = None
        self._follower = follower
        self._reasons: set[str] = set()
        self._is_lost = False

    def take(self, update: Update) -> None:
        match update:
            case Snapshot():
                self._snapshot(update)
            case QueuedJob():
                self._take_jobs([update])
            case ExperimentView():
                self.view = update
            case Event() if update.kind != "finished":  # it has ended when the server has its result
                shown = {"message": one_line(update.message), "phase": one_line(update.phase)}
                self._follower.event(update.model_copy(update=shown))

    def lost(self, error: PronyError) -> None:
        if not self._is_lost:
            self._is_lost = True
            self._follower.note(f"{one_line(error.message)}: the experiment continues; reconnecting")

    def _snapshot(self, snapshot: Snapshot) -> None:
        if self.view is None:
            rows = [WatchRow(job.id, one_line(job.title)) for job in snapshot.jobs]
            experiment = snapshot.experiment.experiment
            self._follower.start(experiment.model_copy(update={"name": one_line(experiment.name)}), rows)
        elif self._is_lost:
            self._follower.note("the server is back")
        self._is_lost = False
        self.view = snapshot.experiment
        self._take_jobs(snapshot.jobs)

    def _take_jobs(self, jobs: Iterable[QueuedJob]) -> None:
        waiting: dict[str, list[QueuedJob]] = {}
        for job in jobs:
            before, self.jobs[job.id] = self.jobs.get(job.id), job
            if before is None or _stage(before) != _stage(job):
                self._show(job, is_new=before is None)
            if job.state is JobState.WAITING and job.reason not in self._reasons:
                waiting.setdefault(job.reason, []).append(job)
        self._reasons |= waiting.keys()
        for reason, those in waiting.items():
            if reason:
                who = f"{one_line(those[0].title)} waits" if len(those) == 1 else f"{len(those)} jobs wait"
                self._follower.note(f"  {who}: {one_line(reason)}")

    def _show(self, job: QueuedJob, *, is_new: bool) -> None:
        if job.state is JobState.LEASED:
            self._follower.place(job.id, one_line(job.agent_id or ""))
        elif job.state in ENDED:
            message = one_line(why_ended(job))
            self._follower.event(Event(kind="finished", job_id=job.id, state=job.state, message=message))
        elif not is_new:
            self._follower.place(job.id, "")


def why_ended(job: QueuedJob) -> str:
    """Return the reason in a few words; a job that went well has none."""
    if job.state is JobState.COMPLETE or job.reason == job.state:
        return ""
    return job.reason or (job.failure.message if job.failure else "")


def _stage(job: QueuedJob) -> tuple[JobState, str | None, int]:
    return job.state, job.agent_id, job.attempt


class Ended(NamedTuple):
    view: ExperimentView
    jobs: dict[str, QueuedJob]


def follow_experiment(client: Client, experiment_id: str, *, cancels: bool) -> Ended:
    """Show an experiment until it has ended. `cancels`: Ctrl-C ends it, as it ends a run here; else it only leaves."""
    with following(elsewhere=True) as follower, interrupt_on_term():
        watcher = Watcher(follower)
        stop = _Stop(client, experiment_id, follower)

        def lost(error: PronyError, pause_s: float) -> None:
            watcher.lost(error)
            stop.lost(pause_s)

        while True:
            try:
                for update in client.experiments.watch(experiment_id, on_lost=lost):
                    watcher.take(update)
                    stop.try_again()
                if watcher.view is not None:
                    return Ended(watcher.view, watcher.jobs)
            except KeyboardInterrupt:
                if not cancels or stop.is_asked:
                    follower.note(f"detached; `prony watch {experiment_id}` follows it again")
                    raise
                stop.ask()


class _Stop:
    """Asks the server to cancel, until it has heard; who asked to stop does not wait for ever for one that is away."""

    def __init__(self, client: Client, experiment_id: str, follower: Follower) -> None:
        self.is_asked = False
        self._is_heard = False
        self._waited_s = 0.0
        self._client = client
        self._experiment_id = experiment_id
        self._follower = follower

    def ask(self) -> None:
        self.is_asked = True
        self._follower.note("stopping; completed measurements are kept; press Ctrl-C again to exit at once")
        self.try_again()

    def lost(self, pause_s: float) -> None:
        self._waited_s += pause_s
        if self.is_asked and self._waited_s > _PATIENCE_S:
            raise KeyboardInterrupt

    def try_again(self) -> None:
        self._waited_s = 0.0
        if not self.is_asked or self._is_heard:
            return
        try:
            self._client.experiments.cancel(self._experiment_id)
        except (ConflictError, NotFoundError):  # it ended by itself meanwhile
            self._is_heard = True
        except PronyError as exc:
            self._follower.note(f"not stopped yet: {one_line(exc.message)}")
        else:
            self._is_heard = True
