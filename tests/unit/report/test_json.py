"""The JSON report is strict JSON, has a version, and no number in it stands alone."""

from __future__ import annotations

import json
import math
from typing import Any

from prony.model.estimate import Estimate
from prony.model.experiment_data import ExperimentData
from prony.report import render


def document(data: ExperimentData) -> dict[str, Any]:
    def refuse(constant: str) -> float:
        raise AssertionError(f"{constant} is not JSON")

    text = render(data, "json")
    found: dict[str, Any] = json.loads(text, parse_constant=refuse)
    return found


def test_every_number_carries_unit_interval_count_method_and_verdict(full: ExperimentData) -> None:
    found = document(full)
    assert found["version"] == 1
    for job, entry in zip(found["jobs"], full.entries, strict=True):
        assert set(job["estimates"]) == set(entry.summary.estimates)
        for one in job["estimates"].values():
            assert {"value", "unit", "low", "high", "confidence", "count", "level", "method", "verdict"} <= set(one)
            assert one["verdict"] == entry.summary.verdict.grade


def test_estimates_read_back_as_what_they_were(full: ExperimentData) -> None:
    found = document(full)
    for job, entry in zip(found["jobs"], full.entries, strict=True):
        assert {key: Estimate.read(one) for key, one in job["estimates"].items()} == entry.summary.estimates
    assert found["calibration"]["figures"]["harness_overhead_us"]["unit"] == "us"


def test_what_is_missing_is_told_with_what_it_needs(full: ExperimentData) -> None:
    assert document(full)["jobs"][0]["missing"][0]["needed"] == 368


def test_an_infinite_number_is_null(full: ExperimentData) -> None:
    entry = full.entries[0]
    odd = Estimate(value=math.inf, unit="ms", low=math.nan, count=1, method="none")
    summary = entry.summary.model_copy(update={"estimates": {"inference_ms.p50": odd}})
    found = document(full.model_copy(update={"entries": (entry.model_copy(update={"summary": summary}),)}))
    assert found["jobs"][0]["estimates"]["inference_ms.p50"]["value"] is None


def test_a_failed_job_keeps_its_failure(partial: ExperimentData) -> None:
    job = document(partial)["jobs"][1]
    assert job["state"] == "failed"
    assert job["estimates"] == {}
    assert job["result"]["failure"]["phase"] == "load"
