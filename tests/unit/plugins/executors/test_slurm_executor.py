"""How often Slurm is asked, and what a job is that its queue has forgotten: with commands that count their calls."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from prony.dispatch.placing import next_look_s
from prony.model.target import Handle, Payload, PlaceEnding, PlacePhase, Target
from prony.plugins.executors.slurm import SlurmExecutor, SlurmOptions, wall_minutes
from prony.ports.executor import ExecutorSite
from prony.runner.job_folder import write_question

BEGINNING = datetime(2026, 1, 1, tzinfo=UTC)


class MovedClock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def monotonic_ns(self) -> int:
        return int(self.seconds * 1e9)

    def now(self) -> datetime:
        return BEGINNING + timedelta(seconds=self.seconds)


@pytest.fixture
def clock() -> MovedClock:
    return MovedClock()


@pytest.fixture
def executor(tmp_path: Path, clock: MovedClock) -> SlurmExecutor:
    """An executor whose squeue and sacct print what lies beside them, and note that they were asked."""
    for name in ("squeue", "sacct"):
        program = tmp_path / name
        program.write_text(f"#!/bin/sh\necho x >> {tmp_path}/{name}.calls\ncat {tmp_path}/{name}.out\n")
        program.chmod(0o755)
        (tmp_path / f"{name}.out").write_text("")
        (tmp_path / f"{name}.calls").write_text("")
    options = {"prefix": str(tmp_path / "there"), "python": "/bin/sh", "setup": (f'export PATH="{tmp_path}:$PATH"',)}
    target = Target(name="fake", kind="slurm", options=options)
    return SlurmExecutor(target, ExecutorSite(folder=tmp_path, clock=clock))


def handles(tmp_path: Path, count: int) -> list[Handle]:
    found = [Handle(key=f"prony-{number}", native_id=str(number)) for number in range(count)]
    for handle in found:
        (tmp_path / "there" / "runs" / handle.key).mkdir(parents=True)
    return found


def count_calls(tmp_path: Path, name: str) -> int:
    return (tmp_path / f"{name}.calls").read_text().count("x")


def test_two_hundred_jobs_that_wait_for_ten_minutes_cost_few_questions(
    executor: SlurmExecutor, clock: MovedClock, tmp_path: Path
) -> None:
    waiting = handles(tmp_path, 200)
    lines = [f"{one.native_id}|{one.key}|PENDING|N/A|N/A|0:00|5:00||Priority\n" for one in waiting]
    (tmp_path / "squeue.out").write_text("".join(lines))
    looks = 0
    while clock.seconds < 600:  # as often as one looks who waits for them
        clock.seconds += next_look_s(PlacePhase.QUEUED, looks)
        looks += 1
        seen = executor.look(waiting, {})
        assert {one.phase for one in seen} == {PlacePhase.QUEUED}
    assert 5 <= count_calls(tmp_path, "squeue") <= 15
    assert count_calls(tmp_path, "sacct") == 0


def test_a_new_submission_asks_the_queue_nothing_and_one_that_may_have_been_heard_does(
    executor: SlurmExecutor, tmp_path: Path
) -> None:
    (tmp_path / "sbatch").write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/sbatch.calls\necho 17\n')
    (tmp_path / "sbatch").chmod(0o755)
    write_question(tmp_path / "out")
    payload = Payload(key="prony-new", folder=str(tmp_path / "out"), expected_s=1200)
    handle = executor.submit(payload)
    assert (handle.native_id, handle.wall_minutes) == ("17", 35)
    assert count_calls(tmp_path, "squeue") == 0
    assert "--time=35" in (tmp_path / "sbatch.calls").read_text()
    assert executor.submit(payload).native_id == "17"
    assert count_calls(tmp_path, "squeue") == 1
    assert (tmp_path / "sbatch.calls").read_text().count("--parsable") == 1


@pytest.mark.parametrize(
    ("minutes", "expected_s", "asked"), [(None, None, 60), (None, 1.0, 10), (None, 3600.0, 95), (7, 3600.0, 7)]
)
def test_the_wall_time_is_what_somebody_says_or_what_is_expected_and_more(
    minutes: int | None, expected_s: float | None, asked: int
) -> None:
    assert wall_minutes(SlurmOptions(minutes=minutes), expected_s) == asked


def test_a_forgotten_job_is_asked_of_the_accounts_and_lost_after_five_minutes(
    executor: SlurmExecutor, clock: MovedClock, tmp_path: Path
) -> None:
    (tmp_path / "sacct.out").write_text("Slurm accounting storage is disabled\n")
    (gone,) = handles(tmp_path, 1)
    phases = []
    for _ in range(20):
        clock.seconds += 20
        phases.append(executor.look([gone], {})[0].phase)
    assert phases[0] is PlacePhase.QUEUED
    assert phases[-1] is PlacePhase.LOST
    assert 15 <= phases.index(PlacePhase.LOST) <= 16
    assert count_calls(tmp_path, "sacct") <= 12


def write_queue(tmp_path: Path, handle: Handle, state: str, end: str = "00:05:00", nodes: str = "n1") -> None:
    line = f"0|{handle.key}|{state}|2026-01-01T00:00:00|2026-01-01T{end}|0:20|5:00|{nodes}|None\n"
    (tmp_path / "squeue.out").write_text(line)


def test_times_are_right_where_the_cluster_is_in_another_time_zone(clock: MovedClock, tmp_path: Path) -> None:
    line = "0|{key}|RUNNING|$(date -d @{second} +%FT%T)|N/A|0:20|5:00|n1|None"
    (one,) = handles(tmp_path, 1)
    text = line.format(key=one.key, second=int(BEGINNING.timestamp()))
    (tmp_path / "squeue").write_text(f'#!/bin/sh\n[ "$SLURM_TIME_FORMAT" = standard ] && echo "{text}"\n')
    (tmp_path / "squeue").chmod(0o755)
    setup = (f'export PATH="{tmp_path}:$PATH"', "export TZ=JST-9", "export SLURM_TIME_FORMAT=relative")
    options = {"prefix": str(tmp_path / "there"), "python": "/bin/sh", "setup": setup}
    target = Target(name="fake", kind="slurm", options=options)
    clock.seconds += 20
    (seen,) = SlurmExecutor(target, ExecutorSite(folder=tmp_path, clock=clock)).look([one], {})
    assert seen.started_at == BEGINNING


def test_the_folder_is_believed_before_slurm(executor: SlurmExecutor, clock: MovedClock, tmp_path: Path) -> None:
    (one,) = handles(tmp_path, 1)
    write_queue(tmp_path, one, "RUNNING")
    clock.seconds += 20
    assert executor.look([one], {})[0].phase is PlacePhase.RUNNING
    (tmp_path / "there" / "runs" / one.key / "DONE").write_text("{}")
    seen = executor.look([one], {})[0]
    assert (seen.phase, seen.state, seen.nodes) == (PlacePhase.ENDED, "RUNNING", ("n1",))


def test_the_queue_is_asked_once_more_when_a_run_ended(
    executor: SlurmExecutor, clock: MovedClock, tmp_path: Path
) -> None:
    (one,) = handles(tmp_path, 1)
    write_queue(tmp_path, one, "RUNNING")
    clock.seconds += 20
    assert executor.look([one], {})[0].is_suspect is False
    write_queue(tmp_path, one, "RUNNING", end="00:05:07")
    (tmp_path / "there" / "runs" / one.key / "DONE").write_text("{}")
    assert executor.look([one], {})[0].is_suspect is True
    executor.look([one], {})
    assert count_calls(tmp_path, "squeue") == 2


@pytest.mark.parametrize(
    ("state", "ending"), [("PREEMPTED", PlaceEnding.PREEMPTED), ("NODE_FAIL", PlaceEnding.NODE), ("FAILED", "done")]
)
def test_a_stopped_run_ends_as_slurm_says_why_it_was_stopped(
    executor: SlurmExecutor, clock: MovedClock, tmp_path: Path, state: str, ending: str
) -> None:
    (one,) = handles(tmp_path, 1)
    write_queue(tmp_path, one, "RUNNING")
    (tmp_path / "there" / "runs" / one.key / "DONE").write_text('{"stopped": true}')
    assert executor.look([one], {})[0].phase is PlacePhase.ENDING
    write_queue(tmp_path, one, state, end="00:00:20")
    assert executor.look([one], {})[0].phase is PlacePhase.ENDING  # asked a moment ago
    clock.seconds += 2
    seen = executor.look([one], {})[0]
    assert (seen.phase, seen.ending) == (PlacePhase.ENDED, ending)
    assert seen.reason == f"Slurm says {state} on n1"


def test_a_stopped_run_does_not_wait_for_ever_for_slurm(
    executor: SlurmExecutor, clock: MovedClock, tmp_path: Path
) -> None:
    (one,) = handles(tmp_path, 1)
    write_queue(tmp_path, one, "COMPLETING")
    (tmp_path / "there" / "runs" / one.key / "DONE").write_text('{"stopped": true}')
    assert executor.look([one], {})[0].phase is PlacePhase.ENDING
    clock.seconds += 40
    seen = executor.look([one], {})[0]
    assert (seen.phase, seen.ending) == (PlacePhase.ENDED, PlaceEnding.DONE)


def test_a_job_that_gives_its_nodes_back_keeps_those_it_had(
    executor: SlurmExecutor, clock: MovedClock, tmp_path: Path
) -> None:
    (one,) = handles(tmp_path, 1)
    write_queue(tmp_path, one, "RUNNING", nodes="n[1-2]")
    clock.seconds += 10
    assert executor.look([one], {})[0].nodes == ("n[1-2]",)
    write_queue(tmp_path, one, "COMPLETING", nodes="n1")  # the other is free already
    (tmp_path / "there" / "runs" / one.key / "DONE").write_text("{}")
    seen = executor.look([one], {})[0]
    assert (seen.ending, seen.nodes) == (PlaceEnding.DONE, ("n[1-2]",))


def test_a_job_that_was_never_seen_at_work_is_asked_for_its_nodes_once_more(
    executor: SlurmExecutor, clock: MovedClock, tmp_path: Path
) -> None:
    (one,) = handles(tmp_path, 1)
    write_queue(tmp_path, one, "COMPLETING", nodes="n1")
    (tmp_path / "there" / "runs" / one.key / "DONE").write_text("{}")
    clock.seconds += 10
    seen = executor.look([one], {})[0]
    assert (seen.phase, seen.nodes) == (PlacePhase.ENDING, ())
    write_queue(tmp_path, one, "COMPLETED", nodes="n[1-2]")
    clock.seconds += 2
    seen = executor.look([one], {})[0]
    assert (seen.ending, seen.nodes) == (PlaceEnding.DONE, ("n[1-2]",))
