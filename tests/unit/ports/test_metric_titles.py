"""People read titles of metrics; programs keep their keys."""

from __future__ import annotations

import pytest

from prony.model.metric import METRICS
from prony.ports.metric_titles import metric_title, metric_titles


@pytest.mark.parametrize(
    ("key", "title"),
    [
        ("inference_ms.p50", "Inference p50"),
        ("inference_ms.p90", "Inference p90"),
        ("e2e_ms/insert.p99", "End to end insert p99"),
        ("throughput_per_s.p50", "Throughput"),
        ("error_rate/insert.mean", "Errors insert mean"),
        ("wall_s.p50", "Wall time"),
        ("wall_s.p99", "Wall time p99"),
        ("decode_tok_s.p50", "Decode"),
        ("images_per_s.p50", "images_per_s p50"),
        ("step_ms.p50", "step p50"),
        ("accuracy.mean", "accuracy mean"),
    ],
)
def test_a_metric_has_one_title_or_else_its_own_name_without_the_unit(key: str, title: str) -> None:
    assert metric_title(key) == title


def test_every_metric_of_prony_has_a_title_and_no_two_share_one() -> None:
    titles = metric_titles()
    named = [{name, f"{name}.p50", f"{name}.mean"} & set(titles) for name in METRICS]
    assert [name for name, keys in zip(METRICS, named, strict=True) if not keys] == []
    assert len(set(titles.values())) == len(titles)
