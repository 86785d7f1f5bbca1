from __future__ import annotations

import pytest

from prony.model.alarm import WORDS, AlarmCondition


@pytest.mark.parametrize(("text", "kind"), WORDS.items())
def test_words_are_conditions_however_they_are_spaced(text: str, kind: str) -> None:
    assert AlarmCondition.parse(f"  {text.upper().replace(' ', '   ')} ").kind == kind


@pytest.mark.parametrize(
    ("text", "key", "sign", "limit"),
    [
        ("inference_ms.p99 > 20", "inference_ms.p99", ">", 20.0),
        ("inference_ms.p99>20ms", "inference_ms.p99", ">", 20.0),
        ("inference_ms.p99.9 >= 1e3", "inference_ms.p99.9", ">=", 1000.0),
        ("throughput_per_s.p50 < .5", "throughput_per_s.p50", "<", 0.5),
        ("e2e_ms/insert.p50 <= 3 ms", "e2e_ms/insert.p50", "<=", 3.0),
        ("error_rate > 1%", "error_rate", ">", 0.01),
    ],
)
def test_a_comparison_is_a_threshold_in_the_unit_of_its_metric(text: str, key: str, sign: str, limit: float) -> None:
    found = AlarmCondition.parse(text)
    assert (found.kind, found.key, found.sign, found.limit) == ("threshold", key, sign, limit)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is not a condition"),
        ("agent asleep", "is not a condition"),
        ("inference_ms.p99 = 20", "is not a condition"),
        ("inference_ms.p99 > nan", "is not a condition"),
        ("inference.p99 > 20", "did you mean inference_ms"),
        ("inference_ms.p98 > 20", "is not a statistic"),
        ("inference_ms.p99 > 20 s", "is in ms"),
        ("inference_ms.p99 > 20 %", "is in ms"),
    ],
)
def test_what_is_no_condition_is_said(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        AlarmCondition.parse(text)


@pytest.mark.parametrize(
    ("text", "value", "low", "high", "holds"),
    [
        ("inference_ms.p99 > 20", 25.0, 21.0, 30.0, True),
        ("inference_ms.p99 > 20", 25.0, 19.0, 30.0, None),  # the near end is not beyond
        ("inference_ms.p99 > 20", 19.0, 17.0, 22.0, False),
        ("inference_ms.p99 > 20", 25.0, None, None, None),  # without an interval nothing is certain
        ("inference_ms.p99 > 20", 15.0, None, None, False),
        ("inference_ms.p99 > 20", float("nan"), None, None, None),
        ("inference_ms.p99 > 20", 20.0, 20.0, 20.0, False),
        ("inference_ms.p99 >= 20", 20.0, 20.0, 20.0, True),
        ("throughput_per_s.p50 < 100", 80.0, 70.0, 90.0, True),
        ("throughput_per_s.p50 < 100", 95.0, 90.0, 101.0, None),
        ("throughput_per_s.p50 <= 100", 120.0, 90.0, 130.0, False),
    ],
)
def test_a_threshold_holds_only_with_the_whole_interval(
    text: str, value: float, low: float | None, high: float | None, holds: bool | None
) -> None:
    assert AlarmCondition.parse(text).holds(value, low, high) is holds
