"""Merge the result folders of a gang into the one of their whole job: every row of every agent, on the server's clock.

Nothing is averaged: stamps are moved by each agent's clock offset, rows put together, and all that is said of them is
computed again from the rows.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from prony.instruments.kept_answers import OUTPUTS
from prony.instruments.samples import SAMPLES, TELEMETRY, read_frame
from prony.model.job import Job
from prony.model.result import Failure, Result, ResultState
from prony.ports.workload import kind_of
from prony.runner.folder import sample_checksums, write_frame, write_noun
from prony.runner.parts import PartFolder

if TYPE_CHECKING:
    import polars as pl


def merge(parts: Sequence[PartFolder], job: Job, into: Path, failure: Failure | None) -> Result:
    """Write the folder of the whole job; `failure` says why it is none, where a member failed or was lost."""
    (into / "logs").mkdir(parents=True)
    write_noun(into / "job.json", job)
    merged = kind_of(job.workload).run.merge_parts(parts, job)
    rows, repetitions = merged.samples, merged.repetitions
    write_frame(into / SAMPLES, rows)
    write_frame(into / TELEMETRY, _telemetry(parts))
    for number, part in enumerate(parts):
        _copy_rest(part.path, into, number)
        if (part.path / OUTPUTS).exists():
            with (part.path / OUTPUTS).open("rb") as read, (into / OUTPUTS).open("ab") as written:
                shutil.copyfileobj(read, written)
    whole = all(part.result.state is ResultState.COMPLETE for part in parts)
    state = ResultState.FAILED if failure is not None else ResultState.COMPLETE if whole else ResultState.PARTIAL
    result = parts[0].result.model_copy(
        update={
            "job_id": job.id,
            "state": state,
            "started_at": min(part.result.started_at for part in parts),
            "ended_at": max(part.result.ended_at or part.result.started_at for part in parts),
            "repetitions": tuple(repetitions),
            "failure": failure,
            "checksums": sample_checksums(into),
            **merged.changes,
        }
    )
    write_noun(into / "result.json", result)
    return result


def reason_of(parts: Sequence[PartFolder], job: Job) -> Failure | None:
    """Return why the job failed, as the member says itself with which it began; None where none says anything."""
    told = [part for part in parts if part.result.failure and part.result.failure.code != "cancelled"]
    return kind_of(job.workload).run.first_failure(told) if told else None


def _telemetry(parts: Sequence[PartFolder]) -> pl.DataFrame:
    """Return the counters of all machines; those of all but the first carry its agent's name."""
    import polars as pl

    frames = []
    for number, part in enumerate(parts):
        frame = read_frame(part.path, TELEMETRY)
        by = pl.col("repetition").replace_strict(part.offsets, default=None, return_dtype=pl.Int64)
        name = pl.col("probe") if number == 0 else pl.col("probe") + f"@{part.agent}"
        frames.append(
            frame.with_columns((pl.col("at_ns") + by).alias("at_ns"), name.alias("probe")).drop_nulls("at_ns")
        )
    return pl.concat(frames)


def _copy_rest(part: Path, into: Path, number: int) -> None:
    """Keep the logs of every agent and what its machine was; those of the first are the load's own."""
    logs = into / "logs" if number == 0 else into / "logs" / f"part-{number}"
    if (part / "logs").is_dir():
        shutil.copytree(part / "logs", logs, dirs_exist_ok=True)
    name = "environment.json" if number == 0 else f"environment-{number}.json"
    if (part / "environment.json").exists():
        shutil.copyfile(part / "environment.json", into / name)
