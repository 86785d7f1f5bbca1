"""`prony exec` as an executor calls it: usable result folders even after crashes, stops and kills."""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl
import psutil
import pytest

from lanes import only_slowly
from prony.app.results import mend, summary_of
from prony.errors import NotFoundError
from prony.kinds.model.schema import ModelWorkload
from prony.model.job import Job
from prony.model.recipe import Limits, Measure
from prony.model.result import Repetition, Result, ResultState
from prony.runner.environment import look_around
from prony.runner.folder import ResultFolder
from servers.process import is_of_an_engine, wait_all_gone

Model = Callable[[str], Path]


def job(model: Path, number: int = 0, **measure: Any) -> Job:
    workload = ModelWorkload(kind="model", model=str(model), engine="faulty")
    plan = Measure(**({"runs": 20, "warmup": 2, "repeats": 3, "check": False} | measure))
    return Job(
        id=f"x-{number:03d}",
        experiment_id="x",
        name="t",
        workload=workload,
        measure=plan,
        limits=Limits(timeout="120s"),
    )


def start(jobs: list[Job], folder: Path, *extra: str) -> subprocess.Popen[bytes]:
    files = []
    for item in jobs:
        files.append(folder / f"{item.id}.json")
        files[-1].write_text(item.model_dump_json())
    command = [sys.executable, "-m", "prony", "exec", *map(str, files), "--out", str(folder / "out"), *extra]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)


def result_in(folder: Path) -> Result:
    return Result.read_json((folder / "result.json").read_bytes())


def measured_count(folder: Path) -> int:
    kept = result_in(folder).repetitions
    return sum(item.phases["measure"].count for item in kept if item.state == "ok")


def kept_rows(folder: Path) -> int:
    return pl.read_parquet(folder / "samples.parquet").filter(pl.col("phase") == "measure").height


def read_until_measured(runner: subprocess.Popen[bytes], count: int) -> None:
    """Read what a runner says until so many repetitions have ended."""
    assert runner.stdout is not None
    for line in runner.stdout:
        event = json.loads(line)
        if event["kind"] == "repetition" and event.get("state") and event["done"] >= count:
            return
    raise AssertionError(f"it ended before {count} repetitions had")


def family(pid: int) -> list[psutil.Process]:
    return [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]


def all_gone(processes: list[psutil.Process]) -> bool:
    return not wait_all_gone(processes)


@pytest.mark.usefixtures("new_interpreters")
def test_a_folder_is_whole_and_progress_is_json_lines(faulty: Model, tmp_path: Path) -> None:
    runner = start([job(faulty("check:fine"))], tmp_path)
    out, _ = runner.communicate(timeout=180)
    assert runner.returncode == 0
    events = [json.loads(line) for line in out.splitlines()]
    assert [event["kind"] for event in events][-1] == "finished"
    folder = tmp_path / "out"
    names = {path.name for path in folder.iterdir()}
    assert {"job.json", "result.json", "samples.parquet", "telemetry.parquet", "environment.json", "logs"} == names
    assert result_in(folder).state is ResultState.COMPLETE
    samples = pl.read_parquet(folder / "samples.parquet")
    clean = [item for item in result_in(folder).repetitions if not item.contamination]
    assert len(clean) <= 3 <= len(result_in(folder).repetitions)
    per_repetition = samples.filter(pl.col("phase") == "measure").group_by("repetition").len()
    assert set(per_repetition["len"]) == {20}


@pytest.mark.parametrize("isolation", ["fork", "exec"])
def test_an_import_is_timed_only_where_nothing_of_ours_ran_beside_it(
    faulty: Model, tmp_path: Path, isolation: str
) -> None:
    start([job(faulty("check:fine"), isolation=isolation)], tmp_path).communicate(timeout=180)
    first, *later = [item.import_ns is not None for item in result_in(tmp_path / "out").repetitions]
    assert not first  # imported while the runner got ready
    assert set(later) == {isolation == "exec"}


@pytest.mark.usefixtures("new_interpreters")
def test_jobs_that_belong_together_take_turns(faulty: Model, tmp_path: Path) -> None:
    model = faulty("check:fine")
    runner = start([job(model, number) for number in range(3)], tmp_path)
    out, _ = runner.communicate(timeout=180)
    events = [json.loads(line) for line in out.splitlines()]
    turns = [event["job_id"] for event in events if event["kind"] == "repetition" and "state" in event]
    assert {frozenset(turns[i : i + 3]) for i in (0, 3, 6)} == {frozenset({"x-000", "x-001", "x-002"})}


def test_a_crash_is_its_repetition_s_failure_and_the_exit_code_says_so(faulty: Model, tmp_path: Path) -> None:
    runner = start([job(faulty("first:segfault"))], tmp_path)
    runner.communicate(timeout=180)
    assert runner.returncode == 1
    result = result_in(tmp_path / "out")
    assert result.state is ResultState.FAILED
    assert result.failure is not None
    assert (result.failure.code, result.failure.phase) == ("crash", "first")
    assert len(result.repetitions) == 2  # the same twice from the start: no use in going on


def test_one_broken_job_does_not_touch_its_sibling(faulty: Model, tmp_path: Path) -> None:
    good = job(faulty("check:fine"), 0)
    bad = good.model_copy(
        update={"id": "x-001", "workload": good.workload.model_copy(update={"model": "nowhere.faulty"})}
    )
    runner = start([good, bad], tmp_path)
    runner.communicate(timeout=180)
    assert result_in(tmp_path / "out/x-000").state is ResultState.COMPLETE
    failure = result_in(tmp_path / "out/x-001").failure
    assert failure is not None
    assert failure.code == "unknown_model"


def test_results_are_never_overwritten(faulty: Model, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "precious").write_text("keep")
    runner = start([job(faulty("check:fine"))], tmp_path)
    _, err = runner.communicate(timeout=180)
    assert runner.returncode == 2
    assert b"not empty" in err
    assert (tmp_path / "out" / "precious").read_text() == "keep"


def test_a_job_file_that_is_none_is_refused_with_the_place(tmp_path: Path) -> None:
    (tmp_path / "bad.json").write_text('{"id": 1}')
    command = [sys.executable, "-m", "prony", "exec", str(tmp_path / "bad.json"), "--out", str(tmp_path / "out")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "bad.json: id:" in done.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, *only_slowly(signal.SIGTERM)])
def test_a_stop_keeps_what_was_measured_and_marks_it_partial(
    faulty: Model, tmp_path: Path, number: signal.Signals
) -> None:
    runner = start([job(faulty("check:fine"), repeats=1000)], tmp_path)
    read_until_measured(runner, 2)
    assert runner.stdout is not None
    everyone = family(runner.pid)
    runner.send_signal(number)
    runner.stdout.read()
    assert runner.wait(timeout=60) == 1
    assert all_gone(everyone)
    result = result_in(tmp_path / "out")
    assert result.state is ResultState.PARTIAL
    assert len(result.repetitions) >= 2
    assert summary_of(tmp_path / "out").estimates["inference_ms.p50"].value > 0


@pytest.mark.parametrize("number", [signal.SIGTERM, *only_slowly(signal.SIGINT)])
def test_a_stop_does_not_wait_for_a_server_that_is_silent(tmp_path: Path, number: int) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}/m.onnx"
        workload = ModelWorkload(kind="model", model=url, engine="onnxruntime")
        asked = Job(id="x-000", experiment_id="x", name="t", workload=workload)
        runner = start([asked], tmp_path)
        connection, _ = server.accept()
        with connection:
            connection.recv(4096)
            runner.send_signal(number)
            runner.communicate(timeout=60)
    assert runner.returncode == 1
    result = result_in(tmp_path / "out")
    assert result.state is ResultState.PARTIAL
    assert result.failure is not None
    assert result.failure.code == "cancelled"


@pytest.mark.parametrize("seed", [0, 1, *only_slowly(2, 3, 4, 5)])
def test_a_runner_killed_at_a_random_instant_leaves_no_orphan_and_a_folder_that_can_be_mended(
    faulty: Model, tmp_path: Path, seed: int
) -> None:
    rng = random.Random(seed)
    runner = start([job(faulty("check:fine"), number, repeats=1000) for number in range(2)], tmp_path)
    assert runner.stdout is not None
    os.set_blocking(runner.stdout.fileno(), True)
    for _ in range(rng.randrange(4, 40)):
        runner.stdout.readline()
    everyone = family(runner.pid)
    # A spin of random length puts the kill anywhere inside the step that follows the line.
    for _ in range(rng.randrange(200_000)):
        pass
    runner.kill()
    runner.wait(timeout=60)
    assert all_gone(everyone)
    for folder in (tmp_path / "out").iterdir():
        kept = result_in(folder)
        assert kept.state is ResultState.PARTIAL
        mend(folder)
        assert kept_rows(folder) == measured_count(folder)
        assert summary_of(folder).job_id == kept.job_id


def test_a_folder_is_mended_only_after_its_runner_has_ended(faulty: Model, tmp_path: Path) -> None:
    runner = start([job(faulty("check:fine"), repeats=1000)], tmp_path)
    read_until_measured(runner, 2)
    assert runner.stdout is not None
    with ThreadPoolExecutor(1) as pool:
        mending = pool.submit(mend, tmp_path / "out")
        with pytest.raises(TimeoutError):
            mending.result(timeout=0.3)
        runner.send_signal(signal.SIGINT)
        runner.stdout.read()
        runner.wait(timeout=60)
        mending.result(timeout=60)
    assert kept_rows(tmp_path / "out") == measured_count(tmp_path / "out") > 0


def test_a_folder_whose_runner_was_killed_while_it_cleaned_up_keeps_its_samples(faulty: Model, tmp_path: Path) -> None:
    start([job(faulty("check:fine"))], tmp_path).communicate(timeout=180)
    (tmp_path / "out" / "parts").mkdir()
    mend(tmp_path / "out")
    assert not (tmp_path / "out" / "parts").exists()
    assert kept_rows(tmp_path / "out") == measured_count(tmp_path / "out") > 0


def killed_before_it_kept_anything(folder: Path, faulty: Model, **known: Any) -> Path:
    """Return the folder of a runner that measured nothing, as it arrives from where it ran: without `parts`."""
    begun = ResultFolder.begin(folder, job(faulty("check:fine")), prony_version="0", started_at=datetime.now(UTC))
    begun.write_environment(look_around(Path("/nowhere")))
    begun.update(**known)
    begun.save()
    begun.path.joinpath("parts").rmdir()
    return folder


def test_a_folder_that_came_without_its_empty_parts_is_mended_too(faulty: Model, tmp_path: Path) -> None:
    folder = killed_before_it_kept_anything(tmp_path / "out", faulty)
    mend(folder)
    assert kept_rows(folder) == 0
    assert summary_of(folder).job_id == "x-000"


def test_a_folder_that_lost_what_it_names_is_not_taken_for_an_empty_one(faulty: Model, tmp_path: Path) -> None:
    kept = Repetition(index=0, started_at=datetime.now(UTC), state="ok")
    folder = killed_before_it_kept_anything(tmp_path / "out", faulty, repetitions=(kept,))
    mend(folder)
    with pytest.raises(NotFoundError, match=r"no samples\.parquet"):
        summary_of(folder)


@pytest.mark.usefixtures("new_interpreters")
def test_a_runner_whose_parent_is_gone_already_stops_at_once(faulty: Model, tmp_path: Path) -> None:
    runner = start([job(faulty("check:fine"), repeats=1000)], tmp_path, "--parent", "1")
    runner.communicate(timeout=60)
    assert result_in(tmp_path / "out").state is ResultState.PARTIAL


def test_the_spawner_killed_in_the_middle_is_a_recorded_failure(faulty: Model, tmp_path: Path) -> None:
    runner = start([job(faulty("measure:hang"), repeats=1, runs=100)], tmp_path)
    assert runner.stdout is not None
    for line in runner.stdout:
        if json.loads(line).get("phase") == "warmup":
            break
    (spawner,) = [one for one in psutil.Process(runner.pid).children() if is_of_an_engine(one)]
    spawner.kill()
    runner.communicate(timeout=180)
    assert runner.returncode == 1
    failures = [item.failure for item in result_in(tmp_path / "out").repetitions if item.failure]
    assert failures
    assert failures[0].code == "engine_starter_lost"
