"""Events of a run in, progress bars on the terminal out; plain lines where there is no terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Protocol

from prony.model.event import Event
from prony.model.experiment import Experiment
from prony.model.job import Job

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

_PHASES = {"load": "loading", "warmup": "measuring"}
_MARKS = {"complete": "done", "partial": "stopped", "failed": "failed"}


class Follower(Protocol):
    def start(self, experiment: Experiment, jobs: Sequence[Job]) -> None: ...

    def event(self, event: Event) -> None: ...


class Bars:
    """One bar a job."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._tasks: dict[str, TaskID] = {}

    def start(self, experiment: Experiment, jobs: Sequence[Job]) -> None:
        self._progress.console.print(
            f"[bold]{experiment.name}[/bold]  {experiment.id}  {_count(jobs)}", highlight=False
        )
        for job in jobs:
            self._tasks[job.id] = self._progress.add_task(job.title, total=None, now="waiting")

    def event(self, event: Event) -> None:
        self._show(event, self._tasks[event.job_id])
        self._progress.refresh()

    def _show(self, event: Event, task: TaskID) -> None:
        match event.kind:
            case "prepare":
                size = f" {event.done / 2**20:.0f} MiB" if event.done >= 2**20 else ""
                self._progress.update(task, now=event.message + size)
            case "started":
                self._progress.update(task, total=event.total, now="ready")
            case "repetition":
                now = event.message.partition(":")[0] or event.state or "starting"
                self._progress.update(task, completed=event.done, total=event.total, now=now)
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

    def start(self, experiment: Experiment, jobs: Sequence[Job]) -> None:
        self._titles = {job.id: job.title for job in jobs}
        with suppress(BrokenPipeError):
            sys.stderr.write(f"{experiment.name}: experiment {experiment.id}, {_count(jobs)}\n")

    def event(self, event: Event) -> None:
        if self._alone:
            return
        try:
            self._write(event, self._titles[event.job_id])
        except BrokenPipeError:  # whoever listened has gone, as if they had pressed Ctrl-C on their way out
            self._alone = True
            raise KeyboardInterrupt from None

    def _write(self, event: Event, title: str) -> None:
        if event.kind == "repetition" and event.state:
            sys.stderr.write(f"  {title}: repetition {event.done} of {event.total}, {event.message or event.state}\n")
        elif event.kind == "finished":
            reason = f": {event.message}" if event.message else ""
            sys.stderr.write(f"  {title}: {_MARKS.get(event.state, event.state)}{reason}\n")
        sys.stderr.flush()


def _count(jobs: Sequence[Job]) -> str:
    return f"{len(jobs)} job{'' if len(jobs) == 1 else 's'}"


@contextmanager
def following() -> Iterator[Follower]:
    """Show progress on standard error for as long as the block runs."""
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
    with Progress(*columns, console=console, auto_refresh=False) as progress:
        yield Bars(progress)
