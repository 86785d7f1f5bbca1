"""MLPerf's scenarios: their rules, and what is valid under them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prony.load.mlperf import FAILED, MlperfLimit, MlperfOutcome, at_percentile, judge_scenario, query_latencies, rules
from prony.model.load import Mlperf
from prony.ports.driver import Stamps

S = 10**9
MS = 10**6


def scenario(name: str, **said: Any) -> Mlperf:
    return Mlperf.model_validate({"scenario": name, **({"rate": 10} if name == "server" else {}), **said})


def latencies(count: int) -> Stamps:
    """From 1 ms upward, shuffled: the i-th smallest is i ms."""
    return np.random.default_rng(1).permutation(np.arange(1, count + 1, dtype=np.int64)) * MS


def judged(
    name: str, values: Stamps, *, lasted_s: float = 600, limits: tuple[MlperfLimit, ...] = (), **said: Any
) -> MlperfOutcome:
    return judge_scenario(scenario(name, **said), values, lasted_ns=int(lasted_s * S), limits=limits)


def within(limit_ms: float, values: Stamps) -> tuple[MlperfLimit, ...]:
    return (MlperfLimit("e2e_ms", limit_ms, np.where(values == FAILED, np.inf, values / MS)),)


@pytest.mark.parametrize(
    ("name", "samples", "least", "percentile"),
    [("single-stream", 1, 64, 0.9), ("multi-stream", 8, 662, 0.99), ("server", 1, 459, 0.99)],
)
def test_each_scenario_has_its_own_rules(name: str, samples: int, least: int, percentile: float) -> None:
    rule = rules(scenario(name))
    assert (rule.samples_per_query, rule.min_queries, rule.percentile) == (samples, least, percentile)
    assert rule.min_duration_ns == 600 * S
    assert rule.is_closed == (name != "server")


def test_offline_has_one_query_of_enough_samples_to_fill_the_time() -> None:
    assert rules(scenario("offline")).samples_per_query == 24_576
    assert rules(scenario("offline", rate=10)).samples_per_query == 24_576
    assert rules(scenario("offline", rate=1000)).samples_per_query == 660_000
    assert rules(scenario("offline", min_queries=500)).samples_per_query == 500


def test_what_the_recipe_says_goes_first() -> None:
    rule = rules(scenario("single-stream", percentile=0.999, min_queries=100, min_duration="5s", samples_per_query=2))
    assert (rule.percentile, rule.min_queries, rule.min_duration_ns, rule.samples_per_query) == (0.999, 100, 5 * S, 2)


def test_a_percentile_is_the_observed_value_at_floor_of_n_times_p() -> None:
    assert at_percentile(latencies(100), 0.9) == 91 * MS
    assert at_percentile(latencies(64), 0.9) == 58 * MS
    assert at_percentile(latencies(1), 0.99) == 1 * MS


def test_single_stream_quotes_the_early_stopping_estimate() -> None:
    # 64 queries allow one over the limit: the slowest itself is the estimate, and none is left out.
    found = judged("single-stream", latencies(64))
    assert found.valid
    assert found.reasons == found.notes == ()
    assert (found.result, found.unit) == (64 * MS, "ns")
    assert (found.estimate_ns, found.discarded, found.percentile_ns) == (64 * MS, 0, 58 * MS)
    assert found.p99_ns is None
    # 197 allow ten: the tenth slowest.
    found = judged("single-stream", latencies(197))
    assert (found.estimate_ns, found.discarded) == (188 * MS, 9)
    assert judged("single-stream", latencies(196)).discarded == 8


def test_single_stream_also_estimates_p99_from_662_queries_on() -> None:
    assert judged("single-stream", latencies(661)).p99_ns is None
    assert judged("single-stream", latencies(662)).p99_ns == 662 * MS


def test_too_short_or_too_few_is_invalid_with_the_reason() -> None:
    found = judged("single-stream", latencies(63), lasted_s=12.5)
    assert not found.valid
    assert found.reasons == (
        "it lasted 12.5 s, but at least 600 s are needed",
        "it had 63 queries, but at least 64 are needed",
    )
    assert found.result is None
    few = judged("single-stream", latencies(20), min_queries=10)
    assert few.reasons == ("an early-stopping estimate of p90 needs 64 queries, not 20",)
    none = judged("single-stream", latencies(0))
    assert not none.valid
    assert none.percentile_ns is None


def test_a_shorter_test_may_be_valid_and_is_told_to_be_no_submission() -> None:
    found = judged("multi-stream", latencies(700), lasted_s=61, min_duration="1m", samples_per_query=4, percentile=0.95)
    assert found.valid
    assert found.notes == (
        "not a valid submission: the minimum duration is 60 s, not 600 s",
        "not a valid submission: 4 samples per query, not 8",
        "not a valid submission: the minimum is 130 queries, not 662",
        "judged at p95: the scenario's own is p99",
    )


def test_a_failed_query_makes_a_run_invalid_and_counts_as_endless() -> None:
    values = latencies(100)
    values[np.argmin(values)] = FAILED
    found = judged("single-stream", values)
    assert found.reasons == ("1 of 100 queries failed",)
    assert found.failed == 1
    assert found.percentile_ns == 92 * MS
    values[:50] = FAILED
    assert judged("single-stream", values).result is None


def test_a_query_ends_with_its_last_sample_and_begins_with_its_first() -> None:
    begin = np.array([0, 2, 1, 100, 101, 102], np.int64)
    end = np.array([10, 9, 30, 110, 150, 140], np.int64)
    good = np.array([True, True, True, True, False, True])
    assert query_latencies(begin, end, good, 3).tolist() == [30, FAILED]
    assert query_latencies(begin, end, good, 1).tolist() == [10, 7, 29, 10, FAILED, 38]
    assert query_latencies(begin[:4], end[:4], good[:4], 3).tolist() == [30, 10]
    assert query_latencies(begin[:0], end[:0], good[:0], 3).size == 0


def test_a_server_holds_its_limit_when_enough_queries_show_it() -> None:
    values = latencies(2010)
    # Ten over the limit need 2,010 queries.
    found = judged("server", values, limits=within(2000, values))
    assert found.valid
    assert found.result == pytest.approx(2009 / 600)
    assert found.unit == "1/s"
    assert found.estimate_ns is None
    fewer = latencies(2009)
    found = judged("server", fewer, limits=within(1999, fewer))
    assert found.reasons == ("End to end: with 10 queries over the limit, 1 more within it would be needed",)


def test_a_server_over_its_limit_is_invalid() -> None:
    values = latencies(1000)
    found = judged("server", values, limits=within(900, values))
    assert found.reasons == ("End to end at p99 is 991 ms, over the limit of 900",)


def test_a_server_of_tokens_holds_both_limits_or_none() -> None:
    ttft = MlperfLimit("ttft_ms", 450, np.full(1000, 100.0))
    tpot = MlperfLimit("tpot_ms", 40, np.append(np.full(900, 10.0), np.full(100, np.nan)))
    values = latencies(1000)
    assert judged("server", values, limits=(ttft,)).valid
    assert judged("server", values, limits=(ttft, tpot)).reasons == (
        "Time per token at p99 is inf ms, over the limit of 40",
    )
    assert judged("server", values, limits=(MlperfLimit("ttft_ms", 1, np.empty(0)),)).reasons == (
        "First token was not measured",
    )


def test_a_server_without_a_limit_shows_nothing() -> None:
    assert judged("server", latencies(1000)).reasons == ("the server scenario needs a limit at p99, but none is set",)


def test_offline_quotes_samples_a_second() -> None:
    found = judged("offline", latencies(24_576), lasted_s=614.4)
    assert found.valid
    assert found.result == pytest.approx(40)
    assert (found.unit, found.queries) == ("1/s", 1)
    assert found.notes == ("at most 1,024 of the samples were in flight at once",)
    short = judged("offline", latencies(100), lasted_s=700)
    assert short.reasons == ("it had 100 samples, but at least 24,576 are needed",)
    small = judged("offline", latencies(100), lasted_s=700, samples_per_query=100)
    assert small.valid
    assert small.notes == ("not a valid submission: 100 samples, not 24,576 (or a whole data set)",)
    assert judged("offline", latencies(0), lasted_s=0).result is None


@given(st.lists(st.integers(1, 10**9), min_size=64, max_size=400))
def test_the_estimate_is_never_below_the_percentile(values: list[int]) -> None:
    found = judged("single-stream", np.array(values, np.int64))
    assert found.valid
    assert found.estimate_ns is not None
    assert found.percentile_ns is not None
    assert found.estimate_ns >= found.percentile_ns
