"""Show the progress of a run as bars on a terminal, or as plain lines elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Protocol

from prony.model.event import Event, Live
from prony.model.experiment import Experiment
from prony.model.shown import plain_log

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

_PHASES = {"load": "loading", "warmup": "measuring"}
_LOAD_LINE_S = 10.0
_MARKS = {"complete": "done", "partial": "stopped", "failed": "failed", "cancelled": "cancelled"}


class Titled(Protocol):
    """A job, here or on a server, as far as progress is concerned."""

    @property
    def id(self) -> str: ...
    @property
    def title(self) -> str: ...


class Follower(Protocol):
    def start(self, experiment: Experiment, jobs: Sequence[Titled]) -> None: ...

    def event(self, event: Event) -> None: ...

    def place(self, job_id: str, agent: str) -> None:
        """Say which agent runs a job from now on; none where it waits again."""

    def note(self, text: str) -> None:
        """Say something about the whole."""


class Bars:
    """One bar a job. Where a screen has no room for all, one for each that runs, below one for the whole."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._titles: dict[str, str] = {}
        self._tasks: dict[str, TaskID] = {}
        self._whole: TaskID | None = None
        self._over: set[str] = set()

    def start(self, experiment: Experiment, jobs: Sequence[Titled]) -> None:
        from rich.text import Text

        self._progress.console.print(Text.assemble((experiment.name, "bold"), f"  {experiment.id}  {_count(jobs)}"))
        self._titles = {job.id: job.title for job in jobs}
        if len(jobs) > max(self._progress.console.height - 4, 4):
            self._whole = self._progress.add_task("all jobs", total=len(jobs), now="")
        else:
            for job in jobs:
                self._task(job.id)

    def event(self, event: Event) -> None:
        if event.kind == "printed":
            self.note(_printed_text(self._titles.get(event.job_id, event.job_id), event))
            return
        has_ended = event.kind == "finished"
        if self._whole is None or not has_ended:
            self._show(event, self._task(event.job_id))
        self._move(event.job_id, runs=not has_ended, has_ended=has_ended)

    def place(self, job_id: str, agent: str) -> None:
        if self._whole is None or agent:
            title = self._titles.get(job_id, job_id)
            named, now = (f"{title} · {agent}", "starting") if agent else (title, "waiting")
            self._progress.update(self._task(job_id), description=named, now=now)
        self._move(job_id, runs=bool(agent), has_ended=False)

    def note(self, text: str) -> None:
        self._progress.console.print(text, markup=False, highlight=False, soft_wrap=True)

    def _task(self, job_id: str) -> TaskID:
        if job_id not in self._tasks:
            title = self._titles.get(job_id, job_id)
            self._tasks[job_id] = self._progress.add_task(title, total=None, now="waiting")
        return self._tasks[job_id]

    def _move(self, job_id: str, *, runs: bool, has_ended: bool) -> None:
        """Count a job, and take its bar away where only those that run have one."""
        if self._whole is not None:
            (self._over.add if has_ended else self._over.discard)(job_id)
            self._progress.update(self._whole, completed=len(self._over))
            if not runs and job_id in self._tasks:
                self._progress.remove_task(self._tasks.pop(job_id))
        if not self._progress.live.auto_refresh:
            self._progress.refresh()

    def _show(self, event: Event, task: TaskID) -> None:
        match event.kind:
            case "prepare":
                self._progress.update(task, now=event.message + _transfer_text(event))
            case "started":
                self._progress.update(task, total=event.total, now="ready")
            case "repetition":
                now = event.message.partition(":")[0] or event.state or "starting"
                self._progress.update(task, completed=event.done, total=event.total, now=now)
            case "load":
                self._progress.update(task, now=_load_text(event.live))
            case "phase":
                self._progress.update(task, now=_PHASES.get(event.phase, event.phase))
            case "finished":
                whole, made = self._progress.tasks[task].total or 1, self._progress.tasks[task].completed
                done = whole if event.state == "complete" else made  # a bar that was stopped stays where it was
                self._progress.update(task, total=whole, completed=done, now=_MARKS.get(event.state, event.state))


class Lines:
    """One line for what a person would want to see in a log."""

    def __init__(self) -> None:
        self._titles: dict[str, str] = {}
        self._alone = False
        self._told_s = 0.0

    def start(self, experiment: Experiment, jobs: Sequence[Titled]) -> None:
        self._titles = {job.id: job.title for job in jobs}
        with suppress(BrokenPipeError):
            sys.stderr.write(f"{experiment.name}: experiment {experiment.id}, {_count(jobs)}\n")

    def event(self, event: Event) -> None:
        title = self._titles.get(event.job_id, event.job_id)
        if event.kind == "repetition" and event.state:
            self.note(f"  {title}: repetition {event.done} of {event.total}, {event.message or event.state}")
        elif event.kind == "prepare" and not event.done and event.total >= 2**20:
            self.note(f"  {title}: {event.message}{_transfer_text(event)}")
        elif event.kind == "load" and event.live is not None:
            if abs(event.live.elapsed_s - self._told_s) >= _LOAD_LINE_S:  # back to little when the next one begins
                self._told_s = event.live.elapsed_s
                self.note(f"  {title}: {_load_text(event.live)}")
        elif event.kind == "printed":
            self.note(_printed_text(title, event))
        elif event.kind == "finished":
            reason = f": {event.message}" if event.message else ""
            self.note(f"  {title}: {_MARKS.get(event.state, event.state)}{reason}")

    def place(self, job_id: str, agent: str) -> None:
        if agent:
            self.note(f"  {self._titles.get(job_id, job_id)}: runs on {agent}")

    def note(self, text: str) -> None:
        if self._alone:
            return
        try:
            sys.stderr.write(f"{text}\n")
            sys.stderr.flush()
        except BrokenPipeError:  # whoever listened has gone, as if they had pressed Ctrl-C on their way out
            self._alone = True
            raise KeyboardInterrupt from None


def _printed_text(title: str, event: Event) -> str:
    """Return what a job elsewhere printed, each line with the job's title before it."""
    return "\n".join(f"  {title} | {line}" for line in plain_log(event.message).split("\n"))


def _transfer_text(event: Event) -> str:
    """Return how much of a model is here and how much there is; nothing where it is small or not known."""
    if max(event.done, event.total) < 2**20:
        return ""
    done = f"{event.done / 2**20:.0f}"
    return f" {done} of {event.total / 2**20:.0f} MiB" if event.total else f" {done} MiB"


def _load_text(live: Live | None) -> str:
    """Return a load as it goes, in one line: rate, latencies, in flight, failures, time left, or a model's tokens."""
    if live is None:
        return ""
    if live.tokens_per_s is not None:
        return f"{live.tokens_per_s:,.4g} tokens/s · {live.done:,} done"
    words = [f"{live.rate_per_s:,.0f}/s"]
    if live.p50_ms is not None and live.p99_ms is not None:
        words.append(f"p50 {live.p50_ms:.3g} ms, p99 {live.p99_ms:.3g} ms")
    words.append(f"{live.in_flight} in flight")
    if live.failed:
        words.append(f"{live.failed:,} failed")
    words.append(f"{live.done:,} done" if live.left_s is None else f"{live.left_s:.0f} s left")
    return " · ".join(words)


def _count(jobs: Sequence[Titled]) -> str:
    return f"{len(jobs)} job{'' if len(jobs) == 1 else 's'}"


@contextmanager
def following(*, elsewhere: bool = False) -> Iterator[Follower]:
    """Show progress on standard error for as long as the block runs; `elsewhere`: it is not this machine that runs."""
    if not sys.stderr.isatty():
        yield Lines()
        return
    from rich.console import Console

    console = Console(stderr=True)
    if console.is_dumb_terminal:  # it cannot go back to a line: bars would be drawn once, at the end
        yield Lines()
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description}", markup=False),  # a path may hold brackets
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[now]}", style="dim", markup=False),
    )
    # Drawn when something happens and never by a timer: a redraw costs milliseconds on the machine that is measured.
    # A fleet is not measured here, and has more to tell in a second than anyone could read.
    with Progress(*columns, console=console, auto_refresh=elsewhere) as progress:
        yield Bars(progress)
