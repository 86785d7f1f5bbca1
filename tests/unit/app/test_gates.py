"""By how much a job got worse: the same in another unit, by its direction, and in words where there is no ratio."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from prony.app.gates import worsening_between
from prony.model.estimate import Estimate, Grade, Summary, Verdict

OLD, SLOWER = [10.0, 10.1, 10.2, 9.9, 10.05], [11.0, 11.11, 11.22, 10.89, 11.055]


def summary(key: str, values: Sequence[float]) -> Summary:
    return Summary(job_id="e-1", title="x", runs={key: tuple(values)}, verdict=Verdict(grade=Grade.VALID))


def worsening(key: str, old: Sequence[float], new: Sequence[float]) -> Estimate:
    found = worsening_between(key, summary(key, old), summary(key, new))
    assert isinstance(found, Estimate)
    return found


def test_a_longer_time_is_worse_and_a_shorter_one_better() -> None:
    assert worsening("inference_ms.p50", OLD, SLOWER).value == pytest.approx(0.1, abs=0.002)
    assert worsening("inference_ms.p50", SLOWER, OLD).value < -0.08


def test_a_rate_got_worse_by_as_much_as_its_inverse() -> None:
    rates = [[1000 / value for value in values] for values in (OLD, SLOWER)]
    by_rate, by_time = worsening("throughput_per_s.p50", *rates), worsening("inference_ms.p50", OLD, SLOWER)
    assert by_rate.value == pytest.approx(by_time.value)
    assert by_rate.low == pytest.approx(by_time.low)
    assert by_rate.high == pytest.approx(by_time.high)


def test_another_unit_changes_nothing() -> None:
    here = worsening("inference_ms.p50", OLD, SLOWER)
    there = worsening("inference_ms.p50", [v * 1000 for v in OLD], [v * 1000 for v in SLOWER])
    assert (there.value, there.low, there.high) == pytest.approx((here.value, here.low, here.high))


@pytest.mark.parametrize("values", [[0.0, 1.0, 1.0], [float("inf"), 1.0, 1.0], []])
def test_what_has_no_ratio_is_told_in_words(values: list[float]) -> None:
    found = worsening_between("inference_ms.p50", summary("inference_ms.p50", OLD), summary("inference_ms.p50", values))
    assert isinstance(found, str)
