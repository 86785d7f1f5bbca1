"""Several processes of one script: who they are, what each tells, and what happens when one of them dies."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import polars as pl
import pytest

from prony.app.results import summary_of
from servers.needs import lack

from .script_jobs import executed, job_of, samples

RANKED = """
import json, os, prony
names = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT")
print(json.dumps({"of": int(os.environ["WORLD_SIZE"])}))
prony.emit({"ms": 10.0 * (int(os.environ["RANK"]) + 1)}, labels={name: os.environ[name] for name in names[3:]})
"""
DIES = """
import os, sys, time, prony
prony.emit({"begun": 1})
if os.environ["RANK"] == "1":
    print("out of luck", file=sys.stderr, flush=True)
    os.kill(os.getpid(), 9)
time.sleep(600)
"""


@pytest.fixture(params=["process", "mpirun"])
def kind(request: pytest.FixtureRequest) -> str:
    if request.param == "mpirun" and shutil.which("mpirun") is None:
        lack("mpirun", "mpirun is not installed: apt install openmpi-bin")
    return str(request.param)


def test_every_rank_has_its_place_its_logs_and_its_numbers(tmp_path: Path, kind: str) -> None:
    done = executed(job_of(tmp_path, RANKED, launch={"kind": kind, "processes": 3}), tmp_path / "out")
    (repetition,) = done.result.repetitions
    assert repetition.failure is None
    told = samples(done).filter(pl.col("name") == "ms").sort("rank")
    assert told.select("rank", "value").rows() == [(0, 10.0), (1, 20.0), (2, 30.0)]
    assert told["labels"].n_unique() == 1  # all meet at the same place
    assert samples(done).filter(pl.col("name") == "of").sort("rank").select("rank", "value", "origin").rows() == [
        (0, 3.0, "json"), (1, 3.0, "json"), (2, 3.0, "json"),
    ]  # fmt: skip
    assert [(done.path / "logs" / f"run-0000.rank-{rank}.out").exists() for rank in range(3)] == [True] * 3
    assert sorted((one.rank, one.status) for one in repetition.ends) == [(0, 0), (1, 0), (2, 0)]
    assert summary_of(done.path).estimates["ms.p50"].value == 20.0


def test_a_rank_that_dies_ends_the_others_and_is_the_reason(tmp_path: Path, kind: str) -> None:
    begin = time.monotonic()
    done = executed(job_of(tmp_path, DIES, launch={"kind": kind, "processes": 3}), tmp_path / "out")
    (repetition,) = done.result.repetitions
    assert repetition.failure is not None
    assert repetition.failure.message == (
        "rank 1 of 3 ended with signal SIGKILL; the others were ended with it; its last output: out of luck"
    )
    assert (repetition.failure.code, repetition.failure.detail) == ("script_signal", "out of luck")
    assert time.monotonic() - begin < 120


def test_torchrun_is_that_of_the_scripts_own_interpreter(tmp_path: Path, torch_python: str) -> None:
    launch = {"kind": "torchrun", "processes": 2}
    job = job_of(tmp_path, RANKED, launch=launch, command=[torch_python, "script.py"])
    done = executed(job, tmp_path / "out")
    assert done.result.failure is None
    assert samples(done).filter(pl.col("name") == "ms").sort("rank").select("rank", "value").rows() == [
        (0, 10.0), (1, 20.0),
    ]  # fmt: skip


@pytest.mark.parametrize(("kind", "code"), [("torchrun", "no_torchrun"), ("mpirun", "no_mpirun")])
def test_a_launcher_that_is_not_there_is_said_before_anything_runs(tmp_path: Path, kind: str, code: str) -> None:
    (tmp_path / "bin").mkdir()
    job = job_of(
        tmp_path, RANKED, launch={"kind": kind, "processes": 2}, command="sh script.sh",
        environment={"PATH": str(tmp_path / "bin")},
    )  # fmt: skip
    done = executed(job, tmp_path / "out")
    assert done.result.repetitions == ()
    assert done.result.failure is not None
    assert (done.result.failure.code, done.result.failure.whose) == (code, "capacity")
    assert done.result.failure.hint


def test_a_launcher_that_fails_by_itself_is_not_taken_for_a_rank(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "mpirun"
    program.write_text('#!/bin/sh\n[ "$1" = --version ] && echo HYDRA && exit 0\necho no slots here >&2\nexit 5\n')
    program.chmod(0o755)
    job = job_of(
        tmp_path, RANKED, launch={"kind": "mpirun", "processes": 2}, environment={"PATH": f"{tmp_path / 'bin'}:/bin"}
    )
    done = executed(job, tmp_path / "out")
    (repetition,) = done.result.repetitions
    assert repetition.failure is not None
    assert repetition.failure.message == "the launcher ended with exit code 5; its last output: no slots here"
