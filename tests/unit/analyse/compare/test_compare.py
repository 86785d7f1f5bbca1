"""A comparison says worse, better, the same or "nobody can tell", and never more than the runs support."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lanes import count_examples
from prony.analyse.compare.compare import compare_entries
from prony.model.comparison import Conclusion, Contrast, Terms

from .sides import P50, RATE, compare_metric, entry, many_headlines, noisy, side


class TestConclusions:
    def test_a_slower_side_is_a_regression_with_its_size_and_its_certainty_in_one_sentence(self) -> None:
        found = compare_metric(noisy(10, 10, seed=1), noisy(10.6, 10, seed=2))
        assert found.conclusion is Conclusion.REGRESSION
        assert found.sentence == (
            "mlp: Inference p50 got worse, +5.8 % [+4.7 %, +7.1 %] (10.04 ms to 10.59 ms); "
            "10 against 10 runs, p = 0.0001; as two separate results, p <0.0001."
        )

    def test_a_faster_side_is_an_improvement(self) -> None:
        assert compare_metric(noisy(10, 10, seed=1), noisy(9, 10, seed=2)).conclusion is Conclusion.IMPROVEMENT

    def test_more_throughput_is_better_and_less_is_worse(self) -> None:
        high, low = noisy(100, 10, seed=1), noisy(90, 10, seed=2)
        assert compare_metric(low, high, RATE).conclusion is Conclusion.IMPROVEMENT
        assert compare_metric(high, low, RATE).conclusion is Conclusion.REGRESSION

    def test_a_metric_of_which_neither_way_is_better_is_merely_different(self) -> None:
        found = compare_metric(noisy(10, 10, seed=1), noisy(20, 10, seed=2), "in_flight.p50")
        assert found.conclusion is Conclusion.DIFFERENT

    def test_the_same_build_twice_is_equivalent_where_the_interval_is_inside_the_threshold(self) -> None:
        found = compare_metric(noisy(10, 20, seed=1), noisy(10, 20, seed=2))
        assert found.conclusion is Conclusion.EQUIVALENT
        assert found.sentence.startswith("mlp: Inference p50 is the same within 3 %, ")

    def test_a_noisy_machine_is_inconclusive_and_says_how_many_runs_would_settle_it(self) -> None:
        found = compare_metric(noisy(10, 6, cv=0.06, seed=1), noisy(10.2, 6, cv=0.06, seed=2))
        assert found.conclusion is Conclusion.INCONCLUSIVE
        assert found.more_runs is not None
        assert found.more_runs >= 3
        assert found.sentence.endswith(
            f"The data show neither a change of 3 % nor its absence; about {found.more_runs} more runs on each "
            "side would decide it."
        )

    def test_a_real_change_that_is_too_small_to_matter_is_equivalent(self) -> None:
        found = compare_metric(noisy(10, 30, cv=0.002, seed=1), noisy(10.1, 30, cv=0.002, seed=2))
        assert found.effect is not None
        assert (found.effect.p or 1) < 0.001
        assert found.conclusion is Conclusion.EQUIVALENT

    def test_the_threshold_decides_what_matters(self) -> None:
        before, after = noisy(10, 20, seed=1), noisy(10.5, 20, seed=2)
        assert compare_metric(before, after).conclusion is Conclusion.REGRESSION
        assert compare_metric(before, after, threshold="10%").conclusion is Conclusion.EQUIVALENT

    @pytest.mark.parametrize("count", [1, 2, 3, 4])
    def test_fewer_than_five_runs_are_insufficient_however_far_apart(self, count: int) -> None:
        found = compare_metric([10.0 + i for i in range(count)], noisy(99, 8))
        assert found.conclusion is Conclusion.INSUFFICIENT
        assert "a verdict needs 5 on each side" in found.sentence

    @pytest.mark.parametrize("odd", [0.0, -1.0, math.nan, math.inf])
    def test_a_value_that_has_no_ratio_is_told_and_never_passed_over(self, odd: float) -> None:
        found = compare_metric(noisy(10, 6), [*noisy(10, 6), odd])
        assert found.conclusion is Conclusion.INSUFFICIENT
        assert f"the value {odd:g}, which cannot be compared as a ratio" in found.sentence

    def test_constants_and_ties_are_compared_like_anything_else(self) -> None:
        assert compare_metric([5.0] * 6, [5.0] * 6).conclusion is Conclusion.EQUIVALENT
        assert compare_metric([5.0] * 6, [6.0] * 6).conclusion is Conclusion.REGRESSION
        assert (
            compare_metric([1.0, 1.0, 2.0, 2.0, 1.0], [1.0, 2.0, 2.0, 1.0, 2.0]).conclusion is Conclusion.INCONCLUSIVE
        )


class TestMeasuredApart:
    """Two results of the same thing differ by more than their runs tell."""

    @staticmethod
    def of(factor: float, earlier: list[float] | None = None, runs: int = 10, cv: float = 0.001) -> Contrast:
        sides = [
            side("A", entry({P50: noisy(10, runs, cv=cv, seed=1)})),
            side("B", entry({P50: noisy(10 * factor, runs, cv=cv, seed=2)}, experiment="e2")),
        ]
        told = [{P50: value} for value in earlier or []]
        found = compare_entries(
            sides, Terms(metrics=(P50,)), earlier={one.job.id: told for each in sides for one in each.entries}
        )
        return found.matches[0].contrasts[0]

    def test_what_two_results_differ_by_anyhow_is_no_regression_however_sure_the_runs_are(self) -> None:
        found = self.of(1.04)
        assert found.conclusion is Conclusion.INCONCLUSIVE
        assert found.effect is not None
        assert (found.effect.p or 1) < 0.001
        assert (found.effect.low or 9) < 1
        assert found.more_runs is None
        assert found.sentence.endswith(
            "Two separate results of the same thing differ by about 2.8 % (assumed: no earlier results). "
            "More runs cannot decide this; running both alternately can (prony duet)."
        )

    def test_what_lies_far_beyond_is_told(self) -> None:
        assert self.of(1.1).conclusion is Conclusion.REGRESSION
        assert self.of(0.9).conclusion is Conclusion.IMPROVEMENT

    def test_a_history_tells_how_far_results_lie_apart(self) -> None:
        near, wide = [10.0] * 30, [10.0 * (1 + 0.06 * (-1) ** n) for n in range(30)]
        assert self.of(1.04, near).conclusion is Conclusion.REGRESSION
        assert self.of(1.0, near).conclusion is Conclusion.EQUIVALENT
        assert self.of(1.1, wide).conclusion is Conclusion.INCONCLUSIVE
        assert "(from 30 earlier results)" in self.of(1.1, wide).sentence

    def test_a_change_long_ago_is_no_spread(self) -> None:
        stepped = [10.0] * 15 + [20.0] * 15
        assert self.of(1.05, stepped).conclusion is Conclusion.REGRESSION

    def test_sizes_are_compared_as_they_are(self) -> None:
        sides = [
            side(name, entry({"memory_mib.p50": [size] * 6}, experiment=name))
            for name, size in (("A", 100.0), ("B", 104.0))
        ]
        found = compare_entries(sides, Terms(metrics=("memory_mib.p50",))).matches[0].contrasts[0]
        assert found.conclusion is Conclusion.REGRESSION

    @pytest.mark.parametrize(("factor", "fewest", "most"), [(1.0, 0, 6), (1.1, 110, 150)])
    def test_simulated_results_of_known_spread_are_told_apart_as_often_as_they_should(
        self, factor: float, fewest: int, most: int
    ) -> None:
        rng, told = np.random.default_rng(12), 0
        for _ in range(150):
            levels = 10 * np.exp(rng.normal(0, 0.02, 2)) * (1.0, factor)
            before, after = (level * np.exp(rng.normal(0, 0.02, 10)) for level in levels)
            sides = [
                side("A", entry({P50: before.tolist()})), side("B", entry({P50: after.tolist()}, experiment="e2"))
            ]  # fmt: skip
            told += compare_entries(sides, Terms(metrics=(P50,))).has(Conclusion.REGRESSION)
        assert fewest <= told <= most

    def test_among_many_headlines_chance_has_more_to_say(self) -> None:
        alone, among = many_headlines(1, runs=10, noise=0.001, factor=1.07, seed=3), many_headlines(
            40, runs=10, noise=0.001, factor=1.07, seed=3
        )  # fmt: skip
        assert alone.has(Conclusion.REGRESSION)
        assert not among.has(Conclusion.REGRESSION)


class TestInvariance:
    @given(st.integers(0, 500), st.sampled_from([0.9, 0.97, 1.0, 1.03, 1.1]), st.sampled_from([0.01, 0.03]))
    @settings(max_examples=count_examples(40), deadline=None)
    def test_the_unit_the_order_and_the_inverse_change_no_conclusion(self, seed: int, change: float, cv: float) -> None:
        before, after = noisy(10, 7, cv=cv, seed=seed), noisy(10 * change, 9, cv=cv, seed=seed + 1)
        here = compare_metric(before, after)
        for again in (
            compare_metric([1000 * one for one in before], [1000 * one for one in after]),
            compare_metric(before[::-1], after[3:] + after[:3]),
            compare_metric([1 / one for one in before], [1 / one for one in after], RATE),
        ):
            assert again.conclusion is here.conclusion
            assert again.effect is not None
            assert here.effect is not None
            assert again.effect.p == here.effect.p

    def test_the_same_input_gives_the_same_bytes(self) -> None:
        before, after = noisy(10, 20, seed=1), noisy(10.2, 20, seed=2)
        assert compare_metric(before, after).model_dump_json() == compare_metric(before, after).model_dump_json()
