"""Whatever happens to a runner, its folder says how the attempt ended, and can be read and packed."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from prony.agent.finalize_attempt import Ending, decline_work, salvage, seal
from prony.agent.process import end_runners
from prony.agent.spool import Spool, Work
from prony.app.results import summary_of
from prony.kinds.model.schema import ModelWorkload
from prony.model.job import Job
from prony.model.lease import Lease
from prony.model.recipe import Limits, Measure
from prony.model.result import Failure, ResultState
from prony.store.folder import read_folder
from prony.store.home import Home
from prony.store.result_tar import unpack
from servers.process import wait_all_gone

Model = Callable[[str], Path]


def lease_for(model: Path, repeats: int = 1) -> Lease:
    job = Job(
        id="e1-001",
        experiment_id="e1",
        name="small",
        workload=ModelWorkload(kind="model", model=str(model), engine="faulty"),
        measure=Measure(runs=5, warmup=1, repeats=repeats, check=False),
        limits=Limits(timeout="20s"),
    )
    return Lease(id="lease-1", job=job, attempt=1, ttl_s=6)


def start(work: Work) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "prony", "exec", str(work.job_file), "--out", str(work.folder)]
    with work.stderr.open("wb") as stderr:
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=stderr, text=True, start_new_session=True)


def after_repetitions(runner: subprocess.Popen[str], count: int) -> None:
    """Return when so many repetitions are on the disk."""
    assert runner.stdout is not None
    for line in runner.stdout:
        said = json.loads(line)
        if said["kind"] == "repetition" and said.get("done") == count and "state" in said:
            return


def killed(work: Work, repetitions: int) -> int:
    runner = start(work)
    after_repetitions(runner, repetitions)
    parent = psutil.Process(runner.pid)
    parent.suspend()  # it starts and ends children all the time
    for process in [*parent.children(recursive=True), parent]:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    runner.communicate()
    return runner.returncode


@pytest.fixture
def work(faulty: Model, spool: Spool) -> Work:
    return spool.begin(lease_for(faulty("check:fine"), repeats=50))


def test_a_runner_that_left_nothing_is_a_failure_of_prony_itself(work: Work, home: Home) -> None:
    work.stderr.write_text("Traceback\nMemoryError\n")
    result = seal(work, work.lease().job, home, Ending(-9))
    assert result.state is ResultState.FAILED
    assert result.failure is not None
    assert (result.failure.code, result.failure.whose) == ("runner_lost", "prony")
    assert "SIGKILL" in result.failure.message
    assert "MemoryError" in result.failure.detail
    contents = read_folder(work.folder)
    assert contents.result == result
    assert summary_of(work.folder).job_id == "e1-001"


def test_what_a_killed_runner_had_measured_is_kept(work: Work, home: Home) -> None:
    exit_code = killed(work, 2)
    result = seal(work, work.lease().job, home, Ending(exit_code))
    assert result.state is ResultState.FAILED
    assert len(result.repetitions) >= 2
    assert result.failure is not None
    assert result.failure.whose == "prony"
    assert summary_of(work.folder).job_id == "e1-001"
    assert not (work.folder / "parts").exists()


def test_one_that_had_to_be_killed_to_be_cancelled_is_partial(work: Work, home: Home) -> None:
    exit_code = killed(work, 1)
    result = seal(work, work.lease().job, home, Ending(exit_code, cancelled=True))
    assert result.state is ResultState.PARTIAL
    assert result.failure is not None
    assert result.failure.code == "cancelled"


def test_a_folder_that_a_full_disk_damaged_is_replaced(work: Work, home: Home) -> None:
    killed(work, 1)
    for part in (work.folder / "parts").iterdir():
        part.write_bytes(part.read_bytes()[:5])
    result = seal(work, work.lease().job, home, Ending(3))
    assert result.state is ResultState.FAILED
    assert result.repetitions == ()
    read_folder(work.folder)


def test_the_jobs_log_travels_with_the_result(work: Work, home: Home, spool: Spool, tmp_path: Path) -> None:
    work.log.write_text("what was noted\n")
    seal(work, work.lease().job, home, Ending(-11))
    spool.keep(work)
    unpack(work.tar, tmp_path / "again")
    assert (tmp_path / "again" / "logs" / "job.log").read_text() == "what was noted\n"


def test_a_job_that_is_not_allowed_here_has_a_folder_that_says_so(work: Work, home: Home) -> None:
    failure = Failure(code="kind_refused", message="not here", whose="capacity")
    decline_work(work, work.lease().job, home, failure)
    assert read_folder(work.folder).result.failure == failure


def test_a_result_that_was_finished_before_the_agent_was_killed_is_sent_late(
    faulty: Model, spool: Spool, home: Home
) -> None:
    work = spool.begin(lease_for(faulty("check:fine")))
    start(work).communicate(timeout=60)
    assert salvage(spool, work)
    [(_, meta)] = spool.waiting()
    assert meta.late


def test_what_was_measured_of_an_unfinished_job_is_sent_late(work: Work, spool: Spool, tmp_path: Path) -> None:
    killed(work, 2)
    assert salvage(spool, work)
    [(kept, _)] = spool.waiting()
    unpack(kept.tar, tmp_path / "again")
    assert read_folder(tmp_path / "again").result.state is ResultState.PARTIAL


def test_what_has_no_result_is_removed(work: Work, spool: Spool) -> None:
    assert not salvage(spool, work)
    assert not work.path.exists()
    bare = spool.root / "e1-002.1"
    bare.mkdir()
    assert not salvage(spool, Work(bare))
    assert spool.find_unfinished() == []


def test_a_folder_without_its_samples_is_removed(work: Work, spool: Spool) -> None:
    killed(work, 1)
    (work.folder / "result.json").write_text("{")
    assert not salvage(spool, work)
    assert spool.waiting() == []


def test_a_runner_of_an_earlier_life_is_ended_before_its_folder_is_touched(
    faulty: Model, spool: Spool, home: Home
) -> None:
    work = spool.begin(lease_for(faulty("first:hang"), repeats=50))
    runner = start(work)
    assert runner.stdout is not None
    for line in runner.stdout:
        if '"first"' in line or '"load"' in line:
            break
    family = [psutil.Process(runner.pid), *psutil.Process(runner.pid).children(recursive=True)]
    end_runners(work.folder, grace_s=0.5)
    runner.communicate()
    assert wait_all_gone(family) == []
    shutil.rmtree(work.path)
