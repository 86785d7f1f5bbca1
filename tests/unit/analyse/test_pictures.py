"""Any number of samples becomes a few hundred numbers, and none of them is lost on the way."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest

from lanes import only_slowly
from prony.analyse.load.summary import summarise_load
from prony.analyse.pictures import Track, buckets, edges_of, shares, width_of
from prony.app import pictures
from prony.errors import NotFoundError
from prony.instruments.requests import Digests
from prony.model.experiment_data import Entry
from prony.ports.driver import Cause
from prony.stats.quantiles import Array

from . import jobs
from .load import made


def track(ends: list[int], values: list[float], failed: list[int] | None = None) -> Track:
    return Track(0, np.array(ends), np.array(values), np.array(failed or [], dtype=np.int64), (0, max(ends)), 0)


@pytest.mark.parametrize(
    ("values", "is_log"), [([1.0, 2.0], False), ([1.0, 100.0], True), ([0.0, 100.0], False), ([3.0, 3.0], False)]
)
def test_bins_hold_every_value_and_grow_by_a_ratio_where_the_range_is_wide(values: list[float], is_log: bool) -> None:
    edges, told = edges_of([np.array(values)], 7)
    assert told is is_log
    assert np.histogram(values, bins=edges)[0].sum() == len(values)
    assert len(edges) == 8


def test_shares_are_the_median_of_runs_and_never_pooled() -> None:
    slow, fast = np.full(1000, 10.0), np.full(10, 1.0)
    middle = shares([slow, fast, fast])[50]
    assert (middle.share, middle.value, middle.low, middle.high) == (0.5, 1.0, 1.0, 10.0)
    assert shares([]) == ()


def test_buckets_keep_extremes_and_say_where_nothing_was() -> None:
    found = buckets(track([100, 150, 950], [1.0, 9.0, 4.0], [400]), 300e-9)
    assert [(one.count, one.failed, one.low, one.median, one.high) for one in found] == [
        (2, 0, 1.0, 1.0, 9.0),
        (0, 1, None, None, None),
        (0, 0, None, None, None),
        (1, 0, 4.0, 4.0, 4.0),
    ]


def test_the_longest_run_has_no_more_buckets_than_asked_for() -> None:
    long, short = track([10_000_000], [1.0]), track([1_000_000], [1.0])
    width = width_of([long, short], 10)
    assert (len(buckets(long, width)), len(buckets(short, width))) == (11, 2)


def load_entry(folder: Path, columns: dict[str, Array], digests: Digests | None = None) -> Entry:
    """Return the result of a load, with its samples on the disk."""
    job, result = made.open_job(), made.result([made.repetition(0)])
    frame = made.frame({0: columns}, is_open=True, digests={} if digests is None else {0: digests})
    frame.write_parquet(folder / "samples.parquet")
    summary = summarise_load(job, result, frame)
    return Entry(job=job, result=result, summary=summary, environment=jobs.environment({}), folder=folder)


def test_a_load_is_drawn_with_its_failures(tmp_path: Path) -> None:
    columns = made.open_records()
    entry = load_entry(tmp_path, made.failing(columns, np.arange(0, 2000, 100), Cause.STATUS))
    drawn = pictures.picture_timeline(entry, 100)
    assert (drawn.metric, sum(one.failed for one in drawn.runs[0].buckets)) == ("e2e_ms", 20)
    assert sum(one.count for one in drawn.runs[0].buckets) == 1980
    with pytest.raises(NotFoundError, match="does not load a model"):
        pictures.starts(entry)


def test_a_load_is_told_second_by_second_and_in_longer_steps_where_it_is_long(tmp_path: Path) -> None:
    columns = made.open_records(rate=200, seconds=10)
    entry = load_entry(tmp_path, made.failing(columns, np.arange(0, 2000, 100), Cause.STATUS))
    found = pictures.picture_load(entry, 100)
    (run,) = found.runs
    assert (found.source, run.repetition, len(run.at_s)) == ("samples", 0, 10)
    assert run.at_s[:2] == (1.0, 2.0)
    assert sum(run.rate_per_s) == pytest.approx(2000, rel=0.02)
    assert sum(run.failed_per_s) == pytest.approx(20, rel=0.1)
    # Little's law: as many are on their way as come in the time that one takes.
    assert run.p50_ms[4] is not None
    assert run.in_flight[4] == pytest.approx(200 * run.p50_ms[4] / 1000, rel=0.2)
    assert run.p99_ms[4] is not None
    assert run.p99_ms[4] >= run.p50_ms[4]
    (coarse,) = pictures.picture_load(entry, 4).runs
    assert coarse.at_s[0] == 3.0
    assert len(coarse.at_s) <= 4


def test_what_only_tokens_tell_is_drawn_when_it_is_asked_for(tmp_path: Path) -> None:
    columns = made.open_records(rate=50)
    entry = load_entry(tmp_path, columns, made.streamed(columns))
    assert pictures.picture_distribution(entry, None, 10).metrics[:3] == ("e2e_ms", "service_ms", "ttfb_ms")
    gaps = pictures.picture_distribution(entry, "itl_ms", 10)
    assert gaps.count == 4 * pictures.picture_distribution(entry, "ttft_ms.p99", 10).count


@pytest.mark.parametrize("count", [100_000, *only_slowly(1_000_000)])
def test_many_requests_are_drawn_in_a_few_seconds(tmp_path: Path, count: int) -> None:
    entry = load_entry(tmp_path, made.open_records(rate=count / 10, seconds=10))
    begin = time.process_time()
    drawn = pictures.picture_distribution(entry, None, 60)
    spread_s = time.process_time() - begin
    assert drawn.count > 0.9 * count
    assert len(drawn.model_dump_json()) < 40_000
    pictures.picture_timeline(entry, 200)
    assert spread_s < 4
    assert time.process_time() - begin < 8
