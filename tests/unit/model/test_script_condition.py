"""Thresholds on what only a script knows the name of."""

from __future__ import annotations

import pytest

from prony.model.alarm import AlarmCondition


@pytest.mark.parametrize(
    ("text", "key", "limit"),
    [
        ("script:accuracy < 0.9", "accuracy.p50", 0.9),
        ("script:val_acc.max >= 1", "val_acc.max", 1.0),
        ("script:loss/split=test.p50 > 3", "loss/split=test.p50", 3.0),
    ],
)
def test_a_threshold_names_a_number_of_a_script(text: str, key: str, limit: float) -> None:
    found = AlarmCondition.parse(text)
    assert (found.kind, found.key, found.limit) == ("threshold", key, limit)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("accuracy < 0.9", "for a script's own metric, write script:accuracy"),
        ("script:a-b < 1", "'a-b' is not a script's metric"),
        ("script:a.p42 < 1", "after a dot comes one of p50"),
        ("script:a < 1 ms", "write the threshold without ms"),
    ],
)
def test_what_is_wrong_with_one_is_said(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        AlarmCondition.parse(text)
