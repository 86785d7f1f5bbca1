"""The parts of a load put together are the load: as many rows, each as it was, on one clock."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from lanes import count_examples
from prony.instruments.requests import Digests, Taken, request_frame
from prony.instruments.samples import telemetry_frame
from prony.kinds.service.merge import Rows, merged_rows
from prony.model.clients import ClientSide, ClientTiming
from prony.model.job import Job
from prony.model.result import Failure, Phase, Repetition, Result, ResultState
from prony.ports.driver import Digest
from prony.runner.folder import write_frame, write_noun
from prony.runner.merge_gang import merge
from prony.runner.parts import PartFolder

AT = datetime(2025, 6, 1, tzinfo=UTC)
START = 5 * 10**9
GAP = 10_000_000
JOB = Job.read_json(
    json.dumps(
        {
            "id": "x-001", "experiment_id": "x", "name": "x",
            "workload": {"kind": "service", "endpoint": "http://h:1", "driver": "http"},
            "load": {"open": {"rate": 100.0, "arrivals": "constant"}, "requests": 200, "warmup": "none",
                     "clients": {"agents": 2}},
        }
    )
)  # fmt: skip


def whole(count: int, *, repetition: int = 0, seed: int = 1) -> pl.DataFrame:
    """Return the rows of a load on the server's clock; some came to nothing, some were streamed."""
    rng = np.random.default_rng(seed)
    due = START + np.arange(count, dtype=np.int64) * GAP
    took = rng.integers(1_000_000, 9_000_000, count)
    cause = (rng.random(count) < 0.1).astype(np.int64)
    none = np.zeros(count, dtype=np.int64)
    records = {
        "index": np.arange(count), "request": none, "due_ns": due, "sent_ns": due + 1000,
        "first_ns": np.where(cause > 0, 0, due + took // 2), "end_ns": due + took, "status": none + 200,
        "cause": cause, "bytes_in": none, "lag_ns": none + 500, "reads": none, "spool_at": none - 1,
        "client": np.arange(count) % 3,
    }  # fmt: skip
    digests = Digests()
    for row in np.flatnonzero(cause == 0)[::2].tolist():
        first = int(due[row] + took[row] // 2)
        digests.add(row, Digest(token_ns=np.array([first, first + 10]), content_ns=first, output_tokens=2))
    window = (START, START + count * GAP)
    return request_frame(Taken(repetition, records, ["get"], True, window, digests))


def moved(frame: pl.DataFrame, by_ns: int) -> pl.DataFrame:
    """Return rows as a machine has them whose clock is behind by so much."""
    stamps = ("begin_ns", "end_ns", "due_ns", "sent_ns", "first_ns", "content_ns")
    changes = [pl.when(pl.col(name) > 0).then(pl.col(name) - by_ns).otherwise(pl.col(name)) for name in stamps]
    return frame.with_columns(*changes, pl.col("token_ns").list.eval(pl.element() - by_ns))


@settings(deadline=None, max_examples=count_examples(40))
@given(
    count=st.integers(min_value=1, max_value=60),
    offsets=st.lists(st.integers(min_value=-(10**9), max_value=10**9), min_size=1, max_size=4),
    seed=st.integers(min_value=0, max_value=9),
)
def test_parts_that_are_merged_are_the_rows_that_were_never_split(count: int, offsets: list[int], seed: int) -> None:
    rows = pl.concat([whole(count, repetition=run, seed=seed) for run in (0, 1)])
    parts = []
    for number, offset in enumerate(offsets):
        mine = rows.filter(pl.col("index") % len(offsets) == number)
        runs = [moved(mine.filter(pl.col("repetition") == run), offset + run) for run in (0, 1)]
        parts.append(Rows(pl.concat(runs), {0: offset, 1: offset + 1}, processes=3))
    found = merged_rows(parts)
    assert found.drop("client").equals(rows.drop("client"))
    assert (found["client"] // 3).to_list() == (rows["index"] % len(offsets)).to_list()


def folder(path: Path, rows: pl.DataFrame, offset: int, *, state: str = "complete", timed: bool = True) -> PartFolder:
    """Return what an agent brings whose clock is behind by so much."""
    timing = ClientTiming(offset_ns=offset, uncertainty_ns=1000, drift_ns=10)
    side = ClientSide(
        asked_rate_per_s=100.0, delivered_rate_per_s=50.0, cpu_shares=(0.1,), connections_asked=2, connections_opened=2,
        causes={"ok": rows.height}, timing=timing if timed else None, loop_lag_p99_ms=float(offset % 7),
    )  # fmt: skip
    begin = START - offset
    phase = Phase(begin_ns=begin, end_ns=begin + 200 * GAP, cpu_ns=5, count=rows.height)
    run = Repetition(
        index=0,
        state="ok" if state == "complete" else "cancelled",
        started_at=AT,
        phases={"measure": phase},
        client=side,
    )
    result = Result(
        prony_version="1", job_id=path.name, experiment_id="x", state=ResultState(state), started_at=AT,
        ended_at=AT + timedelta(seconds=1), repetitions=(run,),
    )  # fmt: skip
    (path / "logs").mkdir(parents=True)
    (path / "logs" / "job.log").write_text(path.name)
    (path / "environment.json").write_text("{}")
    write_noun(path / "result.json", result)
    write_frame(path / "samples.parquet", moved(rows, offset))
    write_frame(path / "telemetry.parquet", telemetry_frame([(0, begin, "host", {"load": 1.0})]))
    return PartFolder(path.name, path, result)


def halves(tmp_path: Path, rows: pl.DataFrame, *, state: str = "complete") -> list[PartFolder]:
    split = [rows.filter(pl.col("index") % 2 == number) for number in (0, 1)]
    states = ("complete", state)
    return [folder(tmp_path / f"a{number}", split[number], 7000 * number, state=states[number]) for number in (0, 1)]


def test_two_folders_become_one_that_says_what_all_rows_say(tmp_path: Path) -> None:
    rows = whole(200)
    result = merge(halves(tmp_path, rows), JOB, tmp_path / "whole", None)
    assert result.state == "complete"
    assert pl.read_parquet(tmp_path / "whole" / "samples.parquet").drop("client").equals(rows.drop("client"))
    (run,) = result.repetitions
    assert (run.state, run.phases["measure"].count) == ("ok", 200)
    assert (run.phases["measure"].begin_ns, run.phases["measure"].end_ns) == (START, START + 200 * GAP)
    side = run.client
    assert side is not None
    assert [one.agent for one in side.members] == ["a0", "a1"]
    assert (side.connections_asked, side.cpu_shares, side.causes) == (4, (0.1, 0.1), {"ok": 200})
    assert side.asked_rate_per_s == 100
    assert side.delivered_rate_per_s is not None
    assert 85 < side.delivered_rate_per_s <= 100


def test_logs_machines_and_counters_of_all_agents_are_kept(tmp_path: Path) -> None:
    merge(halves(tmp_path, whole(200)), JOB, tmp_path / "whole", None)
    assert (tmp_path / "whole" / "logs" / "job.log").read_text() == "a0"
    assert (tmp_path / "whole" / "logs" / "part-1" / "job.log").read_text() == "a1"
    assert (tmp_path / "whole" / "environment-1.json").exists()
    counters = pl.read_parquet(tmp_path / "whole" / "telemetry.parquet")
    assert counters["probe"].to_list() == ["host", "host@a1"]
    assert counters["at_ns"].to_list() == [START, START]


def test_a_load_that_lost_a_member_keeps_the_rows_of_the_others_and_says_why_it_failed(tmp_path: Path) -> None:
    survivor = halves(tmp_path, whole(200))[0]
    lost = Failure(code="agent_lost", message="a1 was lost", whose="prony")
    result = merge([survivor], JOB, tmp_path / "whole", lost)
    assert (result.state, result.failure) == ("failed", lost)
    assert result.repetitions[0].state == "cancelled"
    assert pl.read_parquet(tmp_path / "whole" / "samples.parquet").height == 100


def test_rows_of_a_run_whose_clock_nobody_knows_are_left_out(tmp_path: Path) -> None:
    rows = whole(20)
    parts = [folder(tmp_path / "a0", rows, 0), folder(tmp_path / "a1", rows, 0, state="partial", timed=False)]
    result = merge(parts, JOB, tmp_path / "whole", None)
    assert result.state == "partial"
    assert pl.read_parquet(tmp_path / "whole" / "samples.parquet").height == 20
