"""Progress says what happens: in bars where a terminal can draw them, in lines elsewhere."""

from __future__ import annotations

import io
import sys
from datetime import UTC, datetime

import pytest
from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress, TextColumn

from prony.cli.progress import Bars, Lines, following
from prony.kinds.model.schema import ModelWorkload
from prony.model.event import Event
from prony.model.experiment import Experiment
from prony.model.job import Job
from prony.model.recipe import Recipe

WORKLOAD = ModelWorkload(kind="model", model="zoo:tiny", engine="onnxruntime")
JOB = Job(id="x-001", experiment_id="x", name="t", workload=WORKLOAD)
EXPERIMENT = Experiment(
    id="x",
    name="t",
    recipe=Recipe(name="t", workload=WORKLOAD),
    recipe_text="",
    created_at=datetime(2026, 1, 1, tzinfo=UTC),
    job_count=1,
)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def said(capsys: pytest.CaptureFixture[str], *events: Event) -> str:
    lines = Lines()
    lines.start(EXPERIMENT, [JOB])
    for event in events:
        lines.event(event)
    return capsys.readouterr().err


def test_one_job_is_not_called_jobs(capsys: pytest.CaptureFixture[str]) -> None:
    assert said(capsys) == "t: experiment x, 1 job\n"


def test_a_repetition_that_is_made_again_says_why(capsys: pytest.CaptureFixture[str]) -> None:
    why = "disturbed: other processes used 54% of the CPU"
    event = Event(kind="repetition", job_id=JOB.id, done=1, total=5, state="ok", message=why)
    assert f"repetition 1 of 5, {why}" in said(capsys, event)


def test_the_size_of_a_model_is_told_before_it_is_fetched(capsys: pytest.CaptureFixture[str]) -> None:
    fetching = [
        Event(kind="prepare", job_id="x-001", done=n * 2**20, total=9 * 2**20, message="fetching m") for n in (0, 9)
    ]
    assert said(capsys, *fetching).splitlines()[1:] == ["  t: fetching m 0 of 9 MiB"]


def test_a_terminal_that_cannot_redraw_gets_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setenv("TERM", "dumb")
    with following() as follower:
        assert isinstance(follower, Lines)
    monkeypatch.setenv("TERM", "xterm")
    with following() as follower:
        assert isinstance(follower, Bars)


@pytest.mark.parametrize(("state", "shown"), [("partial", "1/5 stopped"), ("complete", "5/5 done")])
def test_the_bar_of_a_stopped_job_stays_where_it_was(state: str, shown: str) -> None:
    drawn = io.StringIO()
    columns = (MofNCompleteColumn(), TextColumn("{task.fields[now]}"))
    with Progress(*columns, console=Console(file=drawn), auto_refresh=False) as progress:
        bars = Bars(progress)
        bars.start(EXPERIMENT, [JOB])
        for event in (
            Event(kind="started", job_id=JOB.id, total=5),
            Event(kind="repetition", job_id=JOB.id, done=1, total=5, state="ok"),
            Event(kind="finished", job_id=JOB.id, state=state),
        ):
            bars.event(event)
    assert shown in drawn.getvalue()


def test_a_screen_too_small_for_all_jobs_shows_those_that_run_and_the_whole() -> None:
    drawn = io.StringIO()
    columns = (TextColumn("{task.description}"), MofNCompleteColumn())
    jobs = [JOB.model_copy(update={"id": f"x-{number:03}", "name": f"job {number}"}) for number in range(100)]
    with Progress(*columns, console=Console(file=drawn, height=20), auto_refresh=False) as progress:
        bars = Bars(progress)
        bars.start(EXPERIMENT, jobs)
        for number in range(3):
            bars.place(f"x-{number:03}", "lab-1")
        bars.event(Event(kind="finished", job_id="x-000", state="complete"))
        bars.event(Event(kind="finished", job_id="x-050", state="failed"))  # ended before anyone looked
        bars.place("x-001", "")
        shown = {task.description: task.completed for task in progress.tasks}
    assert shown == {"all jobs": 2, "job 2 · lab-1": 0}


def test_a_job_that_waits_again_has_no_agent() -> None:
    with Progress(console=Console(file=io.StringIO()), auto_refresh=False) as progress:
        bars = Bars(progress)
        bars.start(EXPERIMENT, [JOB])
        bars.place(JOB.id, "lab-1")
        assert progress.tasks[0].description == "t · lab-1"
        bars.place(JOB.id, "")
        assert (progress.tasks[0].description, progress.tasks[0].fields["now"]) == ("t", "waiting")
