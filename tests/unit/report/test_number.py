"""Every number is written in one way, with no digit that its interval does not support."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prony.analyse.wording import ends
from prony.model.comparison import Effect, chance_text, effect_text, percent_text
from prony.model.estimate import Estimate, Missing
from prony.report import number


def estimate(value: float, low: float | None = None, high: float | None = None, unit: str = "ms") -> Estimate:
    return Estimate(value=value, unit=unit, low=low, high=high, confidence=0.95, count=5, method="median of runs")


# The web pages write the same numbers in the same way: their tests read this file too.
CASES = json.loads(Path(__file__).with_name("numbers.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["text"])
def test_digits_and_unit_follow_the_interval_and_the_size(case: dict[str, Any]) -> None:
    assert (
        number.format_number(estimate(case["value"], case.get("low"), case.get("high"), case["unit"])) == case["text"]
    )


def test_what_is_not_finite_is_a_dash_and_an_end_that_is_not_is_no_interval() -> None:
    assert number.format_number(estimate(math.nan)) == "– ms"
    assert number.format_number(estimate(3.0, 2.0, math.inf)) == "3.00 ms"


def test_a_value_smaller_than_its_interval_does_not_read_as_zero() -> None:
    assert number.written(estimate(4.0, 0.0, 120.0)).value != "0"


def test_a_column_shares_one_unit_so_that_its_numbers_can_be_compared() -> None:
    column = [estimate(0.9), estimate(12.0)]
    scale = number.common_scale(column)
    assert [number.format_number(one, scale) for one in column] == ["0.900 ms", "12.0 ms"]


def test_the_footnote_names_method_count_and_confidence() -> None:
    assert number.footnote(estimate(1, 0.9, 1.1)) == "median of runs; 5 runs; 95 % interval"
    assert number.footnote(estimate(1)) == "median of runs; 5 runs; no reliable interval"
    assert number.footnote(estimate(1, 1, 1)) == "median of runs; 5 runs; 95 % interval of no width"


def test_a_missing_percentile_says_how_many_samples_it_needs() -> None:
    missing = Missing(metric="inference_ms.p99", at_least=None, count=100, needed=368)
    assert number.missing_text(missing) == "n too small (needs 368)"


def test_ratios_and_shares_keep_two_digits() -> None:
    assert [number.format_ratio(one) for one in (1.93, 12.4, 1.0)] == ["1.9×", "12×", "1.0×"]
    assert [number.format_share(one) for one in (0.95, 0.012, 1.0, 0.0)] == ["95 %", "1.2 %", "100 %", "0 %"]


def _shown(text: str) -> float:
    return float(text.replace("\u202f", ""))


@given(
    value=st.floats(min_value=1e-6, max_value=1e7),
    below=st.floats(min_value=1e-5, max_value=0.999),
    above=st.floats(min_value=1e-5, max_value=5),
)
def test_the_written_interval_holds_the_measured_one_and_is_hardly_wider(
    value: float, below: float, above: float
) -> None:
    """No end is moved inwards, to 0, or outwards by more than a tenth of the width; the value stays between them."""
    low, high = value * (1 - below), value * (1 + above)
    given_estimate = estimate(value, low, high)
    scale = number.common_scale([given_estimate])
    written = number.written(given_estimate, scale)
    ends = [_shown(end) for end in written.interval.strip("[]").split(", ")]
    width = (high - low) * scale.factor
    # Six digits of the value are the most there are.
    room = max(0.1 * width, 2e-5 * high * scale.factor)
    assert low * scale.factor - room <= ends[0] <= low * scale.factor * (1 + 1e-8)
    assert high * scale.factor * (1 - 1e-8) <= ends[1] <= high * scale.factor + room
    assert ends[0] > 0
    assert ends[0] <= _shown(written.value) <= ends[1]


def test_an_interval_wider_than_its_value_keeps_its_digits() -> None:
    assert number.format_number(estimate(267.1, 48.2, 517.7)) == "267 ms [48, 518]"


EFFECTS = json.loads(Path(__file__).with_name("effects.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("one", EFFECTS["percents"], ids=lambda one: one["text"])
def test_a_change_below_a_whole_percent_is_not_written_as_that_nor_as_zero(one: dict[str, Any]) -> None:
    assert percent_text(one["share"], sign="+") == one["text"]


@pytest.mark.parametrize("one", EFFECTS["chances"], ids=lambda one: one["text"])
def test_a_probability_below_a_level_is_not_written_as_that_level(one: dict[str, Any]) -> None:
    assert chance_text(one["p"]) == one["text"]


@pytest.mark.parametrize(
    ("low", "high", "shown"),
    [(0.0661, 0.1919, "[+6.6 %, +19.2 %]"), (-0.0661, -0.0119, "[-6.7 %, -1.1 %]"), (0.066, 0.07, "[+6.6 %, +7.0 %]")],
)
def test_the_ends_of_a_change_are_rounded_outwards(low: float, high: float, shown: str) -> None:
    assert effect_text(0.1, low, high) == f"+10.0 % {shown}"


def test_a_change_that_is_the_same_in_every_pair_has_no_interval() -> None:
    assert Effect(value=1.0, low=1.0, high=1.0, method="x").interval == ""
    assert Effect(value=1.1, low=1.0, high=1.2, method="x").interval == "[+0.0 %, +20.0 %]"


def test_a_change_without_an_interval_has_no_ends() -> None:
    assert effect_text(-0.25, None, 0.1) == "-25.0 %"


@pytest.mark.parametrize("one", EFFECTS["shares"], ids=lambda one: one["text"])
def test_the_interval_of_a_share_is_rounded_outwards(one: dict[str, Any]) -> None:
    assert number.format_share_interval(estimate(one["value"], one["low"], one["high"], "1")) == one["text"]


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [(12.3456, 12.3454, " [12.34, 12.35]"), (1234.4, 1234.6, " [1,234, 1,235]"), (0.0123456, 1.0, " [0.01234, 1]")],
)
def test_an_interval_in_a_sentence_is_rounded_outwards(low: float, high: float, text: str) -> None:
    assert ends(Estimate(value=low, unit="ms", low=low, high=high, count=1, method="x")) == text


def test_a_constant_in_a_sentence_has_no_interval() -> None:
    assert ends(Estimate(value=8.8, unit="MiB", low=8.8, high=8.8, count=1, method="x")) == ""


def test_the_ends_of_a_ratio_get_a_third_digit_where_two_would_make_them_one() -> None:
    assert number.format_ratio_with_ends(2.0, 1.8, 2.2) == ("2.0×", "1.8× to 2.2×")
    assert number.format_ratio_with_ends(1.589, 1.562, 1.607) == ("1.59×", "1.56× to 1.61×")
    assert number.format_ratio_with_ends(2.0, 1.86, 2.14) == ("2.0×", "1.8× to 2.2×")


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [(2.3179, 2.5011, "2.41 [2.31, 2.51] times"), (1.0, 3.0, "2.41 [1, 3] times"), (None, None, "2.41 times"),
     (0.99999, 1234.5, "2.41 [0.999, 1.24e+03] times")],
)  # fmt: skip
def test_how_many_times_is_rounded_outwards(low: float | None, high: float | None, text: str) -> None:
    assert number.format_times(2.4111, low, high) == text
