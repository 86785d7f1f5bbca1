"""Every number is written in one way, with no digit that its interval does not support."""

from __future__ import annotations

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prony.model.estimate import Estimate, Missing
from prony.report import number


def estimate(value: float, low: float | None = None, high: float | None = None, unit: str = "ms") -> Estimate:
    return Estimate(value=value, unit=unit, low=low, high=high, confidence=0.95, count=5, method="median of runs")


@pytest.mark.parametrize(
    ("given_estimate", "text"),
    [
        (estimate(12.3456, 12.1, 12.6), "12.3 ms [12.1, 12.6]"),
        (estimate(12.25, 12.194, 12.305), "12.25 ms [12.19, 12.30]"),
        (estimate(1234.5, 1100, 1600), "1.2 s [1.1, 1.6]"),
        (estimate(0.00123, 0.0012, 0.00125), "1.23 µs [1.20, 1.25]"),
        (estimate(1.0, 0.95, 1.05), "1.00 ms [0.95, 1.05]"),
        (estimate(0.61, 0.58, 0.64, "us"), "610 ns [580, 640]"),
        (estimate(12345, 11000, 13600, "1/s"), "12.3 k/s [11.0, 13.6]"),
        (estimate(299.75, 299.7, 299.8, "MiB"), "299.8 MiB [299.7, 299.8]"),
        (estimate(1 / 3), "333 µs"),
        (estimate(0.0, 0.0, 0.0), "0 ms [0, 0]"),
        (estimate(math.nan), "– ms"),
        (estimate(3.0, 2.0, math.inf), "3.00 ms"),
    ],
)
def test_digits_and_unit_follow_the_interval_and_the_size(given_estimate: Estimate, text: str) -> None:
    assert number.text(given_estimate) == text


def test_a_value_smaller_than_its_interval_does_not_read_as_zero() -> None:
    assert number.written(estimate(4.0, 0.0, 120.0)).value != "0"


def test_a_column_shares_one_unit_so_that_its_numbers_can_be_compared() -> None:
    column = [estimate(0.9), estimate(12.0)]
    scale = number.common_scale(column)
    assert [number.text(one, scale) for one in column] == ["0.900 ms", "12.0 ms"]


def test_the_footnote_names_method_count_and_confidence() -> None:
    assert number.footnote(estimate(1, 0.9, 1.1)) == "median of runs; 5 runs; 95 % interval"
    assert number.footnote(estimate(1)) == "median of runs; 5 runs; no interval can be vouched for"


def test_a_missing_percentile_says_how_many_samples_it_needs() -> None:
    missing = Missing(metric="inference_ms.p99", at_least=None, count=100, needed=368)
    assert number.missing_text(missing) == "n too small (needs 368)"


def test_ratios_and_shares_keep_two_digits() -> None:
    assert [number.ratio(one) for one in (1.93, 12.4, 1.0)] == ["1.9×", "12×", "1.0×"]
    assert [number.share(one) for one in (0.95, 0.012, 1.0, 0.0)] == ["95 %", "1.2 %", "100 %", "0 %"]


@given(
    value=st.floats(min_value=1e-6, max_value=1e7),
    half=st.floats(min_value=1e-9, max_value=0.5),
)
def test_what_is_written_stays_within_the_interval_s_own_width(value: float, half: float) -> None:
    """Rounding moves no end by more than the half-width, and the text has at most four digits of the value."""
    given_estimate = estimate(value, value * (1 - half), value * (1 + half))
    scale = number.common_scale([given_estimate])
    written = number.written(given_estimate, scale)
    low, high = (float(end) for end in written.interval.strip("[]").split(", "))
    room = max(value * half, value * 1e-3) * scale.factor * (1 + 1e-9)
    assert abs(low - value * (1 - half) * scale.factor) <= room
    assert abs(high - value * (1 + half) * scale.factor) <= room
    assert len(re.sub(r"^0\.0*|\D", "", written.value).rstrip()) <= 5
