"""People read titles of metrics; programs keep their keys."""

from __future__ import annotations

import pytest

from prony.model.metric_titles import metric_title


@pytest.mark.parametrize(
    ("key", "title"),
    [
        ("inference_ms.p50", "Inference p50"),
        ("inference_ms.p90", "Inference p90"),
        ("e2e_ms/insert.p99", "End to end insert p99"),
        ("throughput_per_s.p50", "Throughput"),
        ("wall_s.p50", "wall p50"),
        ("accuracy.mean", "accuracy mean"),
    ],
)
def test_a_metric_has_one_title_or_else_its_own_name_without_the_unit(key: str, title: str) -> None:
    assert metric_title(key) == title
