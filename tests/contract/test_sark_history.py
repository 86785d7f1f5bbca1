"""What the histories of a server make of results that SARK's workers reported."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

import pytest

from servers.sark import CPU, Sark, served_sark

pytest.importorskip("redis")
T = TypeVar("T")
LEVELS_MS = [1.25] * 30 + [3.0] * 25


def ask(sark: Sark, work: Coroutine[Any, Any, T]) -> T:
    return asyncio.run_coroutine_threadsafe(work, sark.loop).result(60)


def test_a_regression_that_workers_reported_makes_no_experiment_that_nobody_can_run(tmp_path: Path) -> None:
    with served_sark(tmp_path) as sark:
        worker_id = sark.register()
        campaign_id = sark.campaign(*[{"compute_unit": CPU}] * len(LEVELS_MS))
        for number, level_ms in enumerate(LEVELS_MS):
            median_ms = level_ms * (1 + 0.002 * (number * 7 % 10))
            sark.serve_one(worker_id, InferenceMsMedian=median_ms)
        sark.ended(campaign_id)

        def decided() -> bool:
            changes = ask(sark, sark.fleet.histories.changes(limit=10)).items
            return any("confirming runs: " in step for change in changes for step in change.path)

        sark.until(decided)
        (change,) = ask(sark, sark.fleet.histories.changes(limit=10)).items
        assert change.path[-1] == f"confirming runs: none, this server gives agent {worker_id} no model jobs"
        experiments = ask(sark, sark.fleet.experiments.page(limit=10)).items
        assert [one.experiment.id for one in experiments] == [campaign_id]


def test_a_campaign_that_is_refused_leaves_nothing(tmp_path: Path) -> None:
    with served_sark(tmp_path) as sark:
        for body in ({}, {"model_url": "https://example.org/m.onnx", "jobs": []},
                     {"model_url": "file:///etc/passwd", "jobs": [{}]},
                     {"model_url": "https://example.org/m.onnx", "jobs": [{"num_inference_runs": 0}]}):  # fmt: skip
            assert sark.post("campaigns", body).status_code == 400
        assert ask(sark, sark.fleet.experiments.page(limit=10)).items == ()
