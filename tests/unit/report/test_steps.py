"""What a script told step by step is drawn, a line for each set of labels, rank and run, and is in the JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from prony.instruments.samples import SAMPLES
from prony.kinds.script.report import MOST_POINTS, curves
from prony.kinds.script.samples import EmittedValue, labels_text, told_frame
from prony.kinds.script.schema import ScriptWorkload
from prony.model.experiment_data import ExperimentData
from prony.report import render

TRAIN, TEST = labels_text({"split": "train"}), labels_text({"split": "te<st"})


def told(name: str, value: float, **more: Any) -> EmittedValue:
    return EmittedValue(0, name, value, "emit", **more)


@pytest.fixture
def stepped(full: ExperimentData, tmp_path: Path) -> ExperimentData:
    """One job, two runs: a loss of two splits over ten steps, of two ranks a speed, and what has no step."""
    rows = [told("loss", 1 / (step + 1), step=step, labels=labels) for labels in (TRAIN, TEST) for step in range(10)]
    rows += [told("speed", 5.0 + rank, step=step, rank=rank, unit="1/s") for rank in (0, 1) for step in range(3)]
    rows += [told("final", 1.0), told("final", 2.0), told("lonely", 1.0, step=4)]
    pl.concat([told_frame(index, "measure", rows) for index in (0, 1)]).write_parquet(tmp_path / SAMPLES)
    entry = full.entries[0]
    job = entry.job.model_copy(update={"workload": ScriptWorkload(kind="script", command="x")})
    return full.model_copy(update={"entries": (entry.model_copy(update={"job": job, "folder": tmp_path}),)})


def test_a_curve_has_the_steps_of_one_metric_set_of_labels_rank_and_run(stepped: ExperimentData) -> None:
    found = curves(stepped.entries[0])
    assert [(one.metric, one.series, one.repetition, one.total) for one in found] == [
        ("loss", "split=train", 0, 10), ("loss", "split=te<st", 0, 10),
        ("loss", "split=train", 1, 10), ("loss", "split=te<st", 1, 10),
        ("speed", "rank 0", 0, 3), ("speed", "rank 1", 0, 3), ("speed", "rank 0", 1, 3), ("speed", "rank 1", 1, 3),
    ]  # fmt: skip
    assert found[0].steps == tuple(range(10))
    assert found[0].values[:2] == (1.0, 0.5)


def test_curves_are_in_the_page_and_in_the_json(stepped: ExperimentData) -> None:
    page = render(stepped, "html")
    assert "Step by step." in page
    assert "split=te&lt;st" in page
    assert "speed, 1/s" in page
    (job,) = json.loads(render(stepped, "json"))["jobs"]
    assert len(job["curves"]) == 8
    assert {key: value for key, value in job["curves"][-1].items() if key not in ("steps", "values")} == {
        "metric": "speed", "unit": "1/s", "labels": {}, "rank": 1, "repetition": 1, "total": 3,
    }  # fmt: skip


def test_a_long_curve_is_thinned_evenly_with_both_ends_and_says_so(stepped: ExperimentData) -> None:
    entry = stepped.entries[0]
    rows = [told("loss", float(step), step=step) for step in reversed(range(10_000))]
    told_frame(0, "measure", rows).write_parquet(entry.folder / SAMPLES)
    (found,) = curves(entry)
    assert (len(found.steps), found.steps[0], found.steps[-1], found.total) == (MOST_POINTS, 0.0, 9999.0, 10_000)


def test_what_was_told_without_steps_is_not_drawn(full: ExperimentData) -> None:
    assert not any(curves(entry) for entry in full.entries)
