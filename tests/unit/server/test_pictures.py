"""What charts draw is answered over HTTP: every sample in bins, in time, cold against warm, and counters."""

from __future__ import annotations

import pytest

from prony.app.bench import Bench
from prony.client import Client
from prony.errors import InputError, NotFoundError
from prony.recipe import loads

from .house import House

RECIPE = """
name: drawn
workload: {kind: model, model: "zoo:tiny", engine: onnxruntime}
measure: {runs: 40, repeats: 3, cold_starts: 4, isolation: fork}
"""


@pytest.fixture(scope="module")
def job_id(house: House) -> str:
    bench = Bench(house.fleet.context.store)
    made = bench.run(loads(RECIPE), on_start=lambda *_: None, on_event=lambda _: None)
    return made.entries[0].job.id


def test_every_sample_of_a_run_lies_in_one_bin(house: House, job_id: str) -> None:
    with Client(house.url) as client:
        found = client.jobs.distribution(job_id, bins=20)
    assert (found.metric, found.unit, found.better, found.metrics) == ("inference_ms", "ms", "lower", ("inference_ms",))
    assert len(found.edges) == len(found.counts) + 1 == 21
    assert len(found.runs) >= 3  # one that was disturbed is repeated, and shown too
    assert all(sum(run.counts) == run.count > 0 for run in found.runs)
    assert sum(found.counts) == found.count == sum(run.count for run in found.runs if run.is_used)
    assert found.edges[0] == min(run.low for run in found.runs)
    assert found.edges[-1] == max(run.high for run in found.runs)


def test_shares_rise_and_lie_between_the_runs(house: House, job_id: str) -> None:
    with Client(house.url) as client:
        found = client.jobs.distribution(job_id)
    assert (found.ecdf[0].share, found.ecdf[-1].share) == (0.0, 1.0)
    values = [point.value for point in found.ecdf]
    assert values == sorted(values)
    assert all(point.low <= point.value <= point.high for point in found.ecdf)
    assert found.estimates["inference_ms.p50"].low is not None


def test_a_timeline_counts_every_sample_and_shows_the_part_that_counts(house: House, job_id: str) -> None:
    with Client(house.url) as client:
        found = client.jobs.timeline(job_id, buckets=50)
    assert [run.repetition for run in found.runs] == sorted(run.repetition for run in found.runs)
    for run in found.runs:
        assert len(run.buckets) <= 51
        assert sum(bucket.count for bucket in run.buckets) >= 40
        assert 0 <= run.begin_s < run.end_s
        known = [bucket for bucket in run.buckets if bucket.count]
        assert all((b.low or 0) <= (b.median or 0) <= (b.high or 0) for b in known)
        assert {bucket.median for bucket in run.buckets if not bucket.count} <= {None}


def test_starts_tell_cold_from_warm(house: House, job_id: str) -> None:
    with Client(house.url) as client:
        found = client.jobs.starts(job_id)
    assert len(found.runs) >= 4
    assert all(run.load is not None and run.first is not None for run in found.runs)
    assert [run.warm is not None for run in found.runs] == [run.kind == "measure" for run in found.runs]
    assert {"load_ms.p50", "inference_ms.p50"} <= set(found.estimates)


def test_counters_are_thinned_and_break_between_runs(house: House, job_id: str) -> None:
    with Client(house.url) as client:
        found = client.jobs.counters(job_id, most=3, points=2)
    assert 0 < len(found.series) <= 3
    assert len(found.measured) >= 3
    for line in found.series:
        assert len(line.at_s) == len(line.value)
        assert line.value[-1] is None


def test_a_metric_without_samples_is_refused_with_those_that_have_some(house: House, job_id: str) -> None:
    with Client(house.url) as client:
        with pytest.raises(InputError, match="no samples of ttft_ms") as caught:
            client.jobs.distribution(job_id, metric="ttft_ms")
        with pytest.raises(NotFoundError):
            client.jobs.timeline("nobody-001")
    assert caught.value.hint == "it has inference_ms"


def test_only_a_load_has_requests_to_export_and_a_wrong_format_is_refused(house: House, job_id: str) -> None:
    experiment_id = job_id.rpartition("-")[0]
    path = f"/api/v1/experiments/{experiment_id}/export"
    whole = house.client.get(path).raise_for_status()
    assert whole.headers["content-disposition"].endswith(f'filename="{experiment_id}.tar"')
    refused = house.client.get(path, params={"format": "hdr"})
    assert (refused.status_code, refused.json()["detail"]) == (
        422, "no job of this experiment is a load, so there are no requests",
    )  # fmt: skip
    assert house.client.get(path, params={"format": "xml"}).status_code == 422
