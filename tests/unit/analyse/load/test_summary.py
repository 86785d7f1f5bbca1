"""A load is summarised by one number a run; what failed counts in no latency and in no throughput."""

from __future__ import annotations

import re
import time
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lanes import count_examples
from prony.analyse.load.summary import summarise_load
from prony.errors import InputError
from prony.instruments.requests import CAUSES, Digests
from prony.model.estimate import Grade, Summary
from prony.model.load import Load
from prony.model.metric import METRICS, key_of
from prony.ports.driver import Cause, Digest

from . import made
from .made import MS, START, S


def closed(count: int = 3, **changes: Any) -> Summary:
    runs = {i: made.closed_records(seed=i, **changes) for i in range(count)}
    return summarise_load(made.job(), made.result([made.repetition(i) for i in runs]), made.frame(runs))


def reasons(summary: Summary) -> dict[str, Grade]:
    return {reason.code: reason.grade for reason in summary.verdict.reasons}


class TestClosed:
    def test_a_quiet_load_is_valid_and_has_the_medians_that_went_in(self) -> None:
        summary = closed()
        assert summary.verdict.grade is Grade.VALID, summary.verdict
        assert summary.estimates["e2e_ms.p50"].value == pytest.approx(20, rel=0.02)
        assert summary.estimates["throughput_per_s.p50"].value == pytest.approx(8 / 0.0201, rel=0.02)
        assert summary.estimates["in_flight.p50"].value == pytest.approx(8, rel=0.01)
        assert summary.estimates["ttfb_ms.p50"].value == pytest.approx(10, rel=0.02)
        assert summary.estimates["error_rate.mean"].value == 0
        assert summary.used == (0, 1, 2)

    def test_every_estimate_is_one_of_a_metric_with_its_unit(self) -> None:
        for key, estimate in closed().estimates.items():
            assert estimate.unit == METRICS[key_of(key).metric].unit, key

    def test_three_runs_give_the_interval_of_their_medians(self) -> None:
        found = closed().estimates["e2e_ms.p99"]
        assert (found.count, found.level, found.confidence) == (3, "run", 0.48)

    def test_one_run_says_that_its_interval_is_of_that_run_alone(self) -> None:
        summary = closed(1)
        found = summary.estimates["e2e_ms.p50"]
        assert found.level == "sample"
        assert "within one run" in found.method
        assert reasons(summary)["one_run"] is Grade.SUSPECT

    def test_a_closed_load_has_no_lateness_and_no_second_latency(self) -> None:
        assert not any(key.startswith(("service_ms", "sent_late_ms")) for key in closed().estimates)

    def test_percentiles_need_their_requests(self) -> None:
        summary = closed(3, users=1, seconds=10, latency_ms=100)
        assert "e2e_ms.p90" in summary.estimates
        assert "e2e_ms.p99" not in summary.estimates
        assert next(one for one in summary.missing if one.metric == "e2e_ms.p99").needed == 368

    def test_samples_of_another_job_are_refused(self) -> None:
        with pytest.raises(InputError, match="the result is of job"):
            summarise_load(made.job(), made.result([], job_id="j2"), made.frame({}))

    def test_nothing_at_all_is_void(self) -> None:
        summary = summarise_load(made.job(), made.result([]), made.frame({}))
        assert reasons(summary)["no_success"] is Grade.VOID
        assert summary.estimates == {}


class TestOpen:
    def test_latency_begins_when_a_request_was_due(self) -> None:
        runs = {i: made.open_records(seed=i, late_ms=5) for i in range(3)}
        sent = made.result([made.repetition(i) for i in runs])
        summary = summarise_load(made.open_job(), sent, made.frame(runs, is_open=True))
        e2e, service = summary.estimates["e2e_ms.p50"].value, summary.estimates["service_ms.p50"].value
        assert e2e - service == pytest.approx(5, abs=0.01)
        assert summary.estimates["sent_late_ms.p50"].value == pytest.approx(5)
        assert summary.estimates["request_rate_per_s.p50"].value == pytest.approx(200, rel=0.05)

    def test_latency_that_only_grows_is_no_steady_state(self) -> None:
        columns = made.open_records()
        behind = (columns["due_ns"] - START) // 2
        grown = columns | {"end_ns": columns["end_ns"] + behind, "sent_ns": columns["sent_ns"]}
        sent = made.result([made.repetition(0)])
        summary = summarise_load(made.open_job(), sent, made.frame({0: grown}, is_open=True))
        assert reasons(summary)["no_steady_state"] is Grade.SUSPECT


class TestFailures:
    def failed(self, share: float, cause: Cause = Cause.STATUS) -> Summary:
        columns = made.closed_records()
        rows = np.flatnonzero(np.random.default_rng(1).random(columns["index"].size) < share)
        runs = dict.fromkeys(range(3), made.failing(columns, rows, cause))
        return summarise_load(made.job(), made.result([made.repetition(i) for i in runs]), made.frame(runs))

    def test_few_are_told_and_many_make_the_number_suspect(self) -> None:
        assert reasons(self.failed(0.002))["some_errors"] is Grade.VALID
        assert reasons(self.failed(0.05))["errors"] is Grade.SUSPECT

    def test_a_server_that_refuses_everything_has_no_numbers(self) -> None:
        summary = self.failed(1.1, Cause.REFUSED)
        assert reasons(summary)["all_failed"] is Grade.VOID
        assert summary.verdict.reasons[0].text.endswith(
            "Check the address; if Prony started the service, `prony logs ID` prints the log."
        )
        assert summary.estimates.keys() == {"error_rate.mean"}
        assert summary.estimates["error_rate.mean"].value == 1

    def test_as_requests_that_never_end_they_take_the_tail_with_them(self) -> None:
        summary = self.failed(0.05)
        assert summary.estimates["e2e_with_failures_ms.p90"].value > summary.estimates["e2e_ms.p90"].value
        assert "e2e_with_failures_ms.p99" not in summary.estimates
        assert "never end" in next(one.text for one in summary.verdict.reasons if one.code == "errors")

    def test_requests_that_were_cut_off_make_the_tail_suspect(self) -> None:
        assert reasons(self.failed(0.001, Cause.CUT))["cut"] is Grade.SUSPECT


class TestTokens:
    def test_gaps_first_token_and_pace_are_those_of_the_stamps(self) -> None:
        runs = {i: made.closed_records(seed=i, spread=0.0) for i in range(3)}
        digests = {i: made.streamed(columns) for i, columns in runs.items()}
        sent = made.result([made.repetition(i) for i in runs])
        summary = summarise_load(made.job(), sent, made.frame(runs, digests=digests))
        values = {key: one.value for key, one in summary.estimates.items()}
        assert values["ttft_ms.p50"] == pytest.approx(10)
        assert values["ttft_content_ms.p50"] == pytest.approx(12.5)
        assert values["itl_ms.p50"] == values["tpot_ms.p50"] == pytest.approx(2.5)
        assert values["tokens_per_s_per_user.p50"] == pytest.approx(400)
        assert values["output_tokens_per_s.p50"] == pytest.approx(5 * values["throughput_per_s.p50"])
        assert values["total_tokens_per_s.p50"] == pytest.approx(105 * values["throughput_per_s.p50"])

    def test_a_stall_is_seen_in_the_gaps_and_hidden_in_the_pace(self) -> None:
        columns = made.closed_records(users=1, spread=0.0)
        digests = Digests()
        for row, (begin, end) in enumerate(zip(columns["sent_ns"], columns["end_ns"], strict=True)):
            stamps = begin + np.array([1, 2, 3, 4, 5, 6, 7, 8, 9, 18]) * MS
            assert stamps[-1] < end
            digests.add(row, Digest(output_tokens=10, token_ns=stamps))
        sent = made.result([made.repetition(0)])
        values = summarise_load(made.job(), sent, made.frame({0: columns}, digests={0: digests})).estimates
        assert values["itl_ms.p99"].value == pytest.approx(9)
        assert values["tpot_ms.p99"].value == pytest.approx(19 / 9)

    def test_pieces_are_never_called_tokens(self) -> None:
        runs = {i: made.closed_records(seed=i) for i in range(3)}
        digests = {i: made.streamed(columns, counted=False) for i, columns in runs.items()}
        sent = made.result([made.repetition(i) for i in runs])
        summary = summarise_load(made.job(), sent, made.frame(runs, digests=digests))
        assert "itl_ms.p50" in summary.estimates
        assert not any(key.startswith(("output_tokens", "tpot", "total_tokens")) for key in summary.estimates)
        assert reasons(summary)["tokens_uncounted"] is Grade.VALID


class TestLimits:
    def goodput(self, **slo: float) -> Summary:
        runs = {i: made.closed_records(seed=i) for i in range(3)}
        digests = {i: made.streamed(columns) for i, columns in runs.items()}
        sent = made.result([made.repetition(i) for i in runs])
        return summarise_load(made.job(slo=slo), sent, made.frame(runs, digests=digests))

    def test_those_within_every_limit_are_counted(self) -> None:
        half = self.goodput(e2e_ms=20)
        assert half.estimates["goodput_share.p50"].value == pytest.approx(0.5, abs=0.05)
        both = self.goodput(e2e_ms=20, ttft_ms=8)
        assert both.estimates["goodput_share.p50"].value < 0.2
        assert both.estimates["goodput_per_s.p50"].value < half.estimates["goodput_per_s.p50"].value

    def test_the_share_of_one_run_alone_has_an_interval_within_it(self) -> None:
        sent = made.result([made.repetition(0)])
        summary = summarise_load(made.job(slo={"e2e_ms": 20}), sent, made.frame({0: made.closed_records(seed=0)}))
        share = summary.estimates["goodput_share.p50"]
        assert (share.level, share.confidence) == ("sample", 0.95)
        assert share.low is not None
        assert share.high is not None
        assert 0 < share.low < share.value < share.high < 1
        assert share.method.endswith("requests; Wilson, within this run")
        assert self.goodput(e2e_ms=20).estimates["goodput_share.p50"].level == "run"

    def test_a_limit_on_what_no_request_has_is_met_by_none_and_told(self) -> None:
        runs = {i: made.closed_records(seed=i) for i in range(3)}  # of replies in which nobody looked for tokens
        sent = made.result([made.repetition(i) for i in runs])
        summary = summarise_load(made.job(slo={"ttft_ms": 20}), sent, made.frame(runs))
        assert summary.estimates["goodput_per_s.p50"].value == 0
        assert reasons(summary)["slo_unjudged"] is Grade.SUSPECT

    def test_a_limit_of_a_run_is_told_and_takes_nothing_from_the_number(self) -> None:
        held = self.goodput(**{"e2e_ms.p99": 1000.0, "throughput_per_s.p50": 10.0})
        assert [reason.code for reason in held.verdict.reasons].count("slo_held") == 2
        missed = self.goodput(**{"e2e_ms.p99": 1.0})
        assert reasons(missed)["slo_missed"] is Grade.VALID
        (text,) = (reason.text for reason in missed.verdict.reasons if reason.code == "slo_missed")
        assert re.fullmatch(r"The limit on End to end p99 was missed: [\d.]+ ms against 1 ms\.", text)


def test_operations_have_numbers_of_their_own() -> None:
    runs = {}
    for i in range(3):
        columns = made.closed_records(seed=i)
        which = columns["index"] % 2
        slower = columns["end_ns"] + which * 20 * MS
        runs[i] = columns | {"request": which, "end_ns": slower}
    sent = made.result([made.repetition(i) for i in runs])
    summary = summarise_load(made.job(), sent, made.frame(runs, operations=["get /a.b", "insert"]))
    assert summary.estimates["e2e_ms/get /a.b.p50"].value == pytest.approx(20, rel=0.02)
    assert summary.estimates["e2e_ms/insert.p50"].value == pytest.approx(40, rel=0.02)
    parts = [summary.estimates[f"throughput_per_s/{name}.p50"].value for name in ("get /a.b", "insert")]
    assert sum(parts) == pytest.approx(summary.estimates["throughput_per_s.p50"].value, rel=0.02)
    assert summary.estimates["error_rate/insert.mean"].value == 0


def test_a_search_is_summarised_at_the_highest_load_that_held() -> None:
    runs, repetitions = {}, []
    for index, (level, latency_ms) in enumerate([(8, 20), (16, 20), (32, 60), (24, 60)]):
        runs[index] = made.closed_records(users=level, latency_ms=latency_ms, seed=index)
        repetitions.append(made.repetition(index, level=float(level)))
    load = Load.model_validate({"search": {"low": 8}, "slo": {"e2e_ms.p99": 40}})
    job = made.job().model_copy(update={"load": load})
    summary = summarise_load(job, made.result(repetitions), made.frame(runs))
    found = summary.estimates["highest_load.p50"]
    assert (found.value, found.low, found.high) == (16, 16, 24)
    assert summary.used == (1,)
    assert summary.excluded[2] == "a probe at 32 users"
    assert reasons(summary)["search_found"] is Grade.VALID


def test_a_search_that_found_nothing_says_which_load_was_the_lowest() -> None:
    load = Load.model_validate({"search": {"low": 8}, "slo": {"e2e_ms.p99": 40}})
    runs = {0: made.closed_records(users=8, latency_ms=60)}
    job = made.job().model_copy(update={"load": load})
    summary = summarise_load(job, made.result([made.repetition(0, level=8.0)]), made.frame(runs))
    told = {one.code: one.text for one in summary.verdict.reasons}
    assert told["search_empty"] == "No load met the SLO, not even the lowest of the search: 8 users."


def test_a_scenario_that_breaks_the_rules_is_told_to_be_invalid() -> None:
    load = Load.model_validate({"mlperf": {"scenario": "single-stream"}})
    job = made.job().model_copy(update={"load": load})
    runs = {0: made.closed_records(users=1)}
    summary = summarise_load(job, made.result([made.repetition(0)]), made.frame(runs))
    assert reasons(summary)["mlperf_invalid"] is Grade.SUSPECT
    assert "at least 600 s are needed" in summary.verdict.reasons[0].text


def test_warm_up_is_left_out() -> None:
    columns = made.closed_records(spread=0.02)
    slow = columns["sent_ns"] < START + 2 * S
    late = columns | {"end_ns": columns["end_ns"] + slow * 30 * MS}
    sent = made.result([made.repetition(0)])
    summary = summarise_load(made.job(), sent, made.frame({0: late}))
    assert summary.estimates["e2e_ms.max"].value < 30
    assert summary.steady_from[0] is not None


CAUSE_LISTS = st.lists(st.sampled_from(list(Cause)), min_size=20, max_size=60)


@settings(max_examples=count_examples(40), deadline=None)
@given(CAUSE_LISTS, st.randoms(use_true_random=False))
def test_whatever_fails_counts_nowhere_and_order_does_not_matter(causes: list[Cause], random: Any) -> None:
    begins = START + np.arange(len(causes)) * 100 * MS
    columns = made.records(begins, begins + 50 * MS, cause=np.array(causes))
    sent = made.result([made.repetition(0, seconds=len(causes) / 10)])
    samples = made.frame({0: columns})
    job = made.job(closed={"concurrency": 1}, warmup="none")
    summary = summarise_load(job, sent, samples)
    good = sum(cause is Cause.OK for cause in causes)
    assert samples["cause"].value_counts()["count"].sum() == len(causes)
    assert {str(name) for name in samples["cause"].unique()} <= set(CAUSES)
    rate = summary.estimates["error_rate.mean"]
    assert round(rate.value * rate.count) == len(causes) - good
    if good:
        assert summary.estimates["throughput_per_s.p50"].value == pytest.approx(good / (len(causes) / 10))
    else:
        assert "throughput_per_s.p50" not in summary.estimates
    order = list(range(samples.height))
    random.shuffle(order)
    assert summarise_load(job, sent, samples[order]) == summary


def test_a_million_requests_take_about_a_second() -> None:
    columns = made.open_records(rate=100_000, seconds=10)
    samples = made.frame({0: columns}, is_open=True)
    sent = made.result([made.repetition(0)])
    begin = time.process_time()
    summary = summarise_load(made.open_job(), sent, samples)
    assert time.process_time() - begin < 4
    assert summary.estimates["e2e_ms.p99.9"].count > 900_000


class TestRuns:
    def test_one_number_a_run_is_kept_beside_each_estimate_of_runs(self) -> None:
        summary = closed()
        assert len(summary.runs["e2e_ms.p50"]) == len(summary.runs["throughput_per_s.p50"]) == 3
        assert np.median(summary.runs["e2e_ms.p99"]) == summary.estimates["e2e_ms.p99"].value
        assert summary.runs.keys() <= summary.estimates.keys()

    def test_a_share_of_failures_is_kept_as_its_counts(self) -> None:
        summary = closed()
        total = summary.estimates["error_rate.mean"].count
        assert summary.counts == {"error_rate.mean": (0, total)}
        assert "error_rate.mean" not in summary.runs
