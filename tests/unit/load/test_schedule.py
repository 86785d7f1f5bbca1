"""Schedules: what is due when, from a seed and nothing else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lanes import count_examples
from prony.errors import InputError
from prony.load.schedule import LoadSchedule, RateStep, plan
from prony.model.load import Load
from prony.ports.driver import Stamps

S = 10**9
ARRIVALS = ("constant", "poisson", "gamma")


def planned(base: Path = Path(), **load: Any) -> LoadSchedule:
    return plan(Load.model_validate(load), base=base)


def dues(base: Path = Path(), **load: Any) -> Stamps:
    made = planned(base, **load).dues_ns
    assert made is not None
    return made


def stage(seconds: float, **level: Any) -> dict[str, Any]:
    return {"duration": f"{seconds:.9f}s", **level}


def test_a_closed_load_is_one_step_of_users() -> None:
    made = planned(closed={"concurrency": 8, "think": "5ms"}, duration="10s", requests=1000)
    assert made == LoadSchedule(steps=(RateStep(0, 8),), think_ns=5_000_000, duration_ns=10 * S, count=1000)
    assert made.total == 1000


def test_a_load_of_which_nothing_is_said_is_one_user_for_30_seconds() -> None:
    assert planned() == LoadSchedule(steps=(RateStep(0, 1),), duration_ns=30 * S)
    assert planned().total is None
    assert planned(requests=5) == LoadSchedule(steps=(RateStep(0, 1),), count=5)


def test_constant_arrivals_begin_at_0_and_are_evenly_spaced() -> None:
    made = dues(open={"rate": 4, "arrivals": "constant"}, duration="2s")
    assert made.tolist() == [0, 250_000_000, 500_000_000, 750_000_000, S, 1_250_000_000, 1_500_000_000, 1_750_000_000]
    assert made.dtype == np.int64


@pytest.mark.parametrize("rate", [0.1, 0.3, 3, 7, 1000 / 3, 12_345.678])
def test_constant_arrivals_do_not_drift(rate: float) -> None:
    made = dues(open={"rate": rate, "arrivals": "constant"}, requests=20_000)
    assert np.max(np.abs(made - np.arange(20_000) / rate * 1e9)) <= max(1, 1e-15 * made[-1])
    assert len(dues(open={"rate": rate, "arrivals": "constant"}, duration="30s")) == np.ceil(round(rate * 30, 9))


@pytest.mark.parametrize("arrivals", ARRIVALS)
def test_the_same_seed_gives_the_same_schedule_and_another_another(arrivals: str) -> None:
    def made(seed: int) -> Any:
        open_ = {"rate": 50, "arrivals": arrivals, "burstiness": 0.5 if arrivals == "gamma" else 1}
        return dues(open=open_, seeds={"arrivals": seed}, duration="20s").tolist()

    assert made(3) == made(3)
    assert (made(3) == made(4)) == (arrivals == "constant")


@pytest.mark.parametrize("arrivals", ARRIVALS)
def test_a_shorter_load_is_the_beginning_of_a_longer_one(arrivals: str) -> None:
    open_ = {"rate": 9000, "arrivals": arrivals}
    long = dues(open=open_, duration="20s")
    assert len(long) > 2 * 65_536
    assert dues(open=open_, duration="10s").tolist() == long[long < 10 * S].tolist()
    assert dues(open=open_, requests=100_000).tolist() == long[:100_000].tolist()
    assert dues(open=open_, requests=70, duration="20s").tolist() == long[:70].tolist()


def test_poisson_arrivals_have_the_moments_of_a_poisson_process() -> None:
    made = dues(open={"rate": 200}, requests=100_000)
    gaps = np.diff(made, prepend=0) / 1e9
    assert np.mean(gaps) == pytest.approx(1 / 200, rel=0.015)
    assert np.std(gaps) == pytest.approx(1 / 200, rel=0.02)
    counts = np.bincount(made // S)[:-1]
    assert np.var(counts) / np.mean(counts) == pytest.approx(1, abs=0.2)
    # No rescaling: the last is not due at exactly n / rate.
    assert made[-1] != 500 * S


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from([0.1, 0.5, 1.0, 4.0]))
def test_gamma_arrivals_have_the_mean_of_the_rate_and_the_spread_of_the_shape(seed: int, shape: float) -> None:
    open_ = {"rate": 100, "arrivals": "gamma", "burstiness": shape}
    gaps = np.diff(dues(open=open_, requests=40_000, seeds={"arrivals": seed}), prepend=0) / 1e9
    assert np.mean(gaps) == pytest.approx(0.01, rel=6 / np.sqrt(shape * 40_000))
    assert np.std(gaps) / np.mean(gaps) == pytest.approx(1 / np.sqrt(shape), rel=0.15)


def test_burstiness_without_gamma_is_refused() -> None:
    with pytest.raises(InputError, match="burstiness is only for gamma arrivals, but these are poisson"):
        planned(open={"rate": 10, "burstiness": 0.5})


def test_a_load_of_more_than_50_million_requests_is_refused() -> None:
    with pytest.raises(InputError, match="60,000,000 requests"):
        planned(open={"rate": 1e6}, duration="60s")
    with pytest.raises(InputError, match="60,000,000 requests"):
        planned(open={"rate": 1}, requests=60_000_000)
    with pytest.raises(InputError, match="54,000,000 requests"):
        planned(stages=[stage(3600, rate=30_000, ramp=True)])
    # A count that time does not let happen is no reason.
    assert len(dues(open={"rate": 10, "arrivals": "constant"}, duration="1s", requests=60_000_000)) == 10


def test_what_never_becomes_due_is_refused() -> None:
    with pytest.raises(InputError, match="too short to send a request"):
        planned(stages=[stage(10, rate=0)])
    with pytest.raises(InputError, match="years"):
        planned(open={"rate": 1e-12}, requests=10)


@settings(max_examples=count_examples(30), deadline=None)
@given(
    st.lists(st.tuples(st.floats(0.5, 20), st.floats(0, 300), st.booleans()), min_size=1, max_size=5),
    st.sampled_from(ARRIVALS),
    st.integers(0, 1000),
)
def test_stages_have_as_many_requests_as_the_rate_adds_up_to(
    drawn: list[tuple[float, float, bool]], arrivals: str, seed: int
) -> None:
    stages = [stage(lasting, rate=rate, ramp=ramp, arrivals=arrivals) for lasting, rate, ramp in drawn]
    before, total = 0.0, 0.0
    for lasting, rate, ramp in drawn:
        total += lasting * ((before if ramp else rate) + rate) / 2
        before = rate
    if total < 50:
        return
    made = dues(stages=stages, seeds={"arrivals": seed})
    assert len(made) == pytest.approx(total, abs=1 if arrivals == "constant" else 6 * np.sqrt(total))
    assert np.all(np.diff(made) >= 0)
    assert made[0] >= 0
    assert made[-1] < sum(lasting for lasting, _, _ in drawn) * 1e9 + 1


def test_a_ramp_of_constant_arrivals_is_the_inverse_of_its_integral() -> None:
    # From 0 to 10/s in 20 s: t²/4 requests have come after t seconds.
    made = dues(stages=[stage(20, rate=10, ramp=True, arrivals="constant")])
    assert len(made) == 100
    assert made / 1e9 == pytest.approx(2 * np.sqrt(np.arange(100)), abs=1e-9)


def test_a_ramp_down_to_nothing_mirrors_one_up() -> None:
    up = dues(stages=[stage(20, rate=10, ramp=True, arrivals="constant")])
    down = dues(stages=[stage(1, rate=10, arrivals="constant"), stage(20, rate=0, ramp=True, arrivals="constant")])
    assert (21 * S - down[11:])[::-1] == pytest.approx(up[1:], abs=2)


def test_poisson_arrivals_follow_a_ramp() -> None:
    made = dues(stages=[stage(100, rate=2000, ramp=True)])
    tenths = np.histogram(made, bins=10, range=(0, 100 * S))[0]
    assert tenths == pytest.approx(1000 * (2 * np.arange(10) + 1), rel=0.12)


def test_nothing_is_due_in_a_pause_and_constant_arrivals_go_on_after_it() -> None:
    stages = [stage(2, rate=0), stage(1, rate=4, arrivals="constant"), stage(3, rate=0, arrivals="constant")]
    made = dues(stages=[*stages, stage(1, rate=2, arrivals="constant")])
    assert (made / 1e9).tolist() == [2, 2.25, 2.5, 2.75, 6, 6.5]


def test_stages_of_different_arrivals_follow_each_other() -> None:
    stages = [stage(10, rate=100), stage(10, rate=100, arrivals="gamma", burstiness=0.2)]
    made = dues(stages=stages)
    first, second = np.diff(made[made < 10 * S]), np.diff(made[made >= 10 * S])
    assert np.std(first) / np.mean(first) == pytest.approx(1, abs=0.15)
    assert np.std(second) / np.mean(second) > 1.7
    # A stage's draws depend on nothing before it.
    assert dues(stages=[stages[0]]).tolist() == made[made < 10 * S].tolist()


def test_stages_are_cut_by_a_duration_and_by_a_count() -> None:
    stages = [stage(10, rate=10, arrivals="constant"), stage(10, rate=100, ramp=True, arrivals="constant")]
    whole = planned(stages=stages)
    assert whole.stages == ((0, 10 * S, "10/s"), (10 * S, 20 * S, "10 to 100/s"))
    assert whole.duration_ns == 20 * S
    cut = planned(stages=stages, duration="5s")
    assert cut.total == 50
    assert cut.duration_ns == 5 * S
    assert cut.stages == ((0, 5 * S, "10/s"),)
    assert planned(stages=stages, requests=7).total == 7
    assert planned(stages=stages, duration="1h").duration_ns == 20 * S


def test_stages_are_all_rates_or_all_concurrencies() -> None:
    with pytest.raises(InputError, match=r"load.stages\[1\] has a concurrency"):
        planned(stages=[stage(1, rate=10), stage(1, concurrency=2)])


def test_a_ramp_of_users_is_a_step_for_each() -> None:
    stages = [stage(1, concurrency=2), stage(4, concurrency=4, ramp=True), stage(2, concurrency=1, ramp=True)]
    made = planned(stages=stages, requests=10**6)
    steps = [(0.0, 2), (2.0, 3), (4.0, 4), (5 + 1 / 3, 3), (6.0, 2), (6 + 2 / 3, 1)]
    assert [step.users for step in made.steps] == [users for _, users in steps]
    assert [step.at_ns / 1e9 for step in made.steps] == pytest.approx([at for at, _ in steps], abs=1e-8)
    assert made.dues_ns is None
    assert made.duration_ns == 7 * S
    assert [label for _, _, label in made.stages] == ["2 users", "2 to 4 users", "4 to 1 users"]


@given(st.lists(st.tuples(st.integers(1, 30), st.integers(1, 200), st.booleans()), min_size=1, max_size=5))
def test_users_come_and_go_one_by_one_and_add_up_to_the_line(drawn: list[tuple[int, int, bool]]) -> None:
    made = planned(stages=[stage(lasting, concurrency=users, ramp=ramp) for lasting, users, ramp in drawn])
    assert made.steps[0].at_ns == 0
    at = [step.at_ns for step in made.steps] + [made.duration_ns or 0]
    users = [step.users for step in made.steps]
    assert at == sorted(at)
    assert min(users) >= 1
    before, area, slack = 0, 0.0, 0.0
    for number, (lasting, to, ramp) in enumerate(drawn):
        area += lasting * ((before if ramp else to) + to) / 2
        slack += lasting / to / 2 if number == 0 and ramp else 0
        before = to
    found = sum(count * (end - begin) / 1e9 for count, begin, end in zip(users, at, at[1:], strict=False))
    assert found == pytest.approx(area + slack, rel=1e-6)


def test_a_step_without_a_change_of_users_is_none() -> None:
    made = planned(stages=[stage(1, concurrency=3), stage(1, concurrency=3), stage(1, concurrency=3, ramp=True)])
    assert made.steps == (RateStep(0, 3),)


def test_a_replay_is_due_when_the_trace_was_at_its_speed(tmp_path: Path) -> None:
    rows = [{"timestamp": 1000 + 500 * i, "input_length": 10 + i, "output_length": 20 + i} for i in range(6)]
    (tmp_path / "trace.jsonl").write_text("\n".join(map(json.dumps, rows)))
    made = planned(tmp_path, replay={"file": "trace.jsonl", "speed": 2})
    assert made.dues_ns is not None
    assert made.dues_ns.tolist() == [0, 250_000_000, 500_000_000, 750_000_000, S, 1_250_000_000]
    assert made.lengths is not None
    assert made.lengths[2].tolist() == [12, 22]
    assert made.duration_ns is None
    for cut in ({"replay": {"file": "trace.jsonl", "requests": 3}}, {"replay": {"file": "trace.jsonl"}, "requests": 3}):
        short = planned(tmp_path, **cut)
        assert short.total == 3
        assert short.lengths is not None
        assert len(short.lengths) == 3
    timed = planned(tmp_path, replay={"file": "trace.jsonl"}, duration="1s")
    assert timed.total == 2
    assert timed.duration_ns == S


def test_a_search_has_no_schedule_of_its_own() -> None:
    with pytest.raises(InputError, match="a search has no schedule"):
        planned(search={}, slo={"e2e_ms.p99": 100})


def test_single_stream_is_one_user_until_time_and_count_are_reached() -> None:
    made = planned(mlperf={"scenario": "single-stream"})
    assert made == LoadSchedule(steps=(RateStep(0, 1),), duration_ns=600 * S, at_least=64)


def test_multi_stream_sends_eight_at_once_and_whole_queries_only() -> None:
    made = planned(mlperf={"scenario": "multi-stream", "min_duration": "1m"}, duration="2m", requests=6000)
    assert made.burst == 8
    assert made.at_least == 662 * 8
    assert made.duration_ns == 60 * S
    assert made.limit_ns == 120 * S
    assert made.count == 6000
    assert planned(mlperf={"scenario": "multi-stream"}, requests=6001).count == 6008


def test_the_last_query_of_a_server_is_due_after_the_least_time() -> None:
    made = dues(mlperf={"scenario": "server", "rate": 100, "min_duration": "20s"})
    assert made[0] == 0
    assert made[-1] >= 20 * S > made[-2]
    assert len(made) == pytest.approx(2000, abs=200)
    assert planned(mlperf={"scenario": "server", "rate": 100}).most_in_flight is None


def test_a_slow_server_is_asked_until_there_are_enough_queries() -> None:
    server = {"scenario": "server", "rate": 10, "min_duration": "1s"}
    assert len(dues(mlperf=server)) == 459
    assert len(dues(mlperf=server | {"min_queries": 700})) == 700
    assert len(dues(mlperf=server, requests=5)) == 5
    assert dues(mlperf=server | {"samples_per_query": 2})[:4].tolist() == np.repeat(dues(mlperf=server)[:2], 2).tolist()


def test_offline_is_all_samples_as_fast_as_they_are_taken() -> None:
    offline = {"scenario": "offline"}
    assert planned(mlperf=offline) == LoadSchedule(steps=(RateStep(0, 1024),), count=24_576)
    assert planned(mlperf=offline | {"rate": 1000, "most_in_flight": 64}).steps == (RateStep(0, 64),)
    assert planned(mlperf=offline | {"rate": 1000}).total == 660_000
    # With no more samples than may be in flight, all are sent at once.
    assert planned(mlperf=offline | {"samples_per_query": 50}) == LoadSchedule(steps=(RateStep(0, 50),), count=50)
    assert planned(mlperf=offline, requests=10, duration="5s") == LoadSchedule(
        steps=(RateStep(0, 10),), count=10, duration_ns=5 * S
    )
    with pytest.raises(InputError, match="requests"):
        planned(mlperf={"scenario": "offline", "rate": 1e6})
