"""What is claimed of several loads: knee, limit and SLO, never without the runs to show it."""

from __future__ import annotations

from typing import Any

import pytest

from prony.analyse.sweep.curves import LoadedJob
from prony.analyse.sweep.report import sweep_report
from prony.app.sweeps import slo_of, sweep_over
from prony.errors import InputError
from prony.model.clients import ClientSide
from prony.model.estimate import Estimate, Grade
from prony.model.experiment_data import Entry
from prony.model.load import Load
from prony.model.sweep import Curve, LimitState

from .made_sweeps import load_entry, sweep

LEVELS = [1, 2, 4, 8, 16, 32]


def curve(jobs: list[LoadedJob], slo: dict[str, float] | None = None) -> Curve:
    (found,) = sweep_report(jobs, slo or {}).curves
    return found


def p99(values: list[list[float]]) -> list[LoadedJob]:
    """Return levels 1, 2, 4, ... with these tails; throughput is of no interest."""
    return [
        LoadedJob(load_entry(2**n, {"throughput_per_s.p50": [100.0] * len(tail), "e2e_ms.p99": tail}))
        for n, tail in enumerate(values)
    ]


def test_a_plateau_gives_a_knee_and_a_limit_with_intervals() -> None:
    found = curve(sweep(LEVELS, lambda x: 1000 * min(x, 8)))
    assert (found.knee.state, found.limit.state) == ("found", "found")
    assert found.knee.estimate is not None
    assert found.knee.estimate.value == pytest.approx(8, rel=0.05)
    assert found.limit.estimate is not None
    assert found.limit.estimate.low is not None
    assert found.limit.estimate.low <= 8000 <= (found.limit.estimate.high or 0)
    assert found.limit.estimate.count == 9


def test_a_knee_that_is_the_clients_is_said_to_be() -> None:
    jobs = sweep(LEVELS, lambda x: 1000 * min(x, 8))
    full = ClientSide(cpu_shares=(0.99,))
    busy = [
        LoadedJob(load_entry(job.level, job.entry.summary.runs, side=full if job.level >= 4 else None)) for job in jobs
    ]
    found = curve(busy)
    for claim in (found.knee, found.limit):
        assert claim.state == "found"
        assert claim.text.endswith("not of the server: at 8, 16, 32 users the client could not send more.")
    assert "client" not in curve(jobs).knee.text


def test_a_straight_line_gives_no_saturation_and_no_limit() -> None:
    found = curve(sweep(LEVELS, lambda x: 1000 * x))
    assert (found.knee.state, found.limit.state) == ("not found", "not found")
    assert found.knee.text.startswith("No saturation found up to 32 users")


def test_a_collapse_is_told() -> None:
    found = curve(sweep(LEVELS, lambda x: 1000 * x if x <= 8 else 32000 / x))
    assert found.knee.state == "found"
    assert "At 32 users it falls to" in found.limit.text


@pytest.mark.parametrize(("levels", "runs"), [([1, 2, 4], 3), (LEVELS, 1)])
def test_three_levels_and_single_runs_are_refused(levels: list[int], runs: int) -> None:
    assert curve(sweep(levels, lambda x: 1000 * min(x, 2), runs=runs)).knee.state == "refused"


def test_void_levels_are_shown_and_take_no_part() -> None:
    jobs = sweep(LEVELS, lambda x: 1000 * min(x, 8))
    void = [LoadedJob(load_entry(job.level, job.entry.summary.runs, grade=Grade.VOID)) for job in jobs[:3]]
    found = curve([*void, *jobs[3:]])
    assert [bool(level.excluded) for level in found.levels] == [True] * 3 + [False] * 3
    assert found.knee.state == "refused"
    assert "Left out: 1, 2, 4 (its numbers are void" in found.knee.text


def test_the_slo_limit_never_skips_a_level_that_violates_it() -> None:
    found = curve(p99([[5, 5.1, 5.2], [20, 21, 22], [5, 5.1, 5.2], [30, 31, 32]]), {"e2e_ms.p99": 10})
    assert [level.checks[0].state for level in found.levels] == ["held", "violated", "held", "violated"]
    assert found.slo is not None
    assert found.slo.estimate is not None
    assert (found.slo.estimate.value, found.slo.estimate.high) == (1, 2)


def test_a_limit_inside_the_interval_cannot_be_told() -> None:
    found = curve(p99([[5, 5.1, 5.2], [9, 10.5, 11]]), {"e2e_ms.p99": 10})
    assert found.levels[1].checks[0].state is LimitState.CANNOT_TELL
    assert found.slo is not None
    assert "2 users cannot be judged" in found.slo.text
    assert found.slo.estimate is not None
    assert found.slo.estimate.high is None


def test_no_level_holding_it_is_no_limit() -> None:
    found = curve(p99([[50, 51, 52], [60, 61, 62]]), {"e2e_ms.p99": 10})
    assert found.slo is not None
    assert (found.slo.state, found.slo.estimate) == ("not found", None)


def test_the_same_level_of_two_experiments_is_one_level_of_all_runs() -> None:
    first, second = (load_entry(4, {"throughput_per_s.p50": [100, 101, 102]}, experiment=name) for name in ("a", "b"))
    other = load_entry(8, {"throughput_per_s.p50": [200, 201, 202]}, experiment="a")
    found = curve([LoadedJob(first), LoadedJob(second), LoadedJob(other)])
    assert [level.load for level in found.levels] == [4, 8]
    assert found.levels[0].throughput is not None
    assert found.levels[0].throughput.count == 6


def test_another_setting_is_another_curve() -> None:
    one = load_entry(4, {"throughput_per_s.p50": [100, 101, 102]})
    workload = one.job.workload.model_copy(update={"options": {"value_size": 9}})
    cell = {"load.closed.concurrency": 4, "workload.options.value_size": 9}
    other = one.model_copy(update={"job": one.job.model_copy(update={"workload": workload, "cell": cell})})
    assert [found.title for found in sweep_report([LoadedJob(one), LoadedJob(other)], {}).curves] == [
        "",
        "value size 9",
    ]


def lasting(level: int, load: dict[str, Any], **cell: Any) -> LoadedJob:
    """Return a level that lasted as told."""
    entry = load_entry(level, {"throughput_per_s.p50": [100.0 * level] * 3}, experiment=f"e{level}")
    closed = {"concurrency": level} | load.pop("closed", {})
    changes = {"load": Load.model_validate({"closed": closed} | load), "cell": entry.job.cell | cell}
    return LoadedJob(entry.model_copy(update={"job": entry.job.model_copy(update=changes)}))


@pytest.mark.parametrize(
    "loads",
    [
        [{"requests": 1000}, {"requests": 2000}, {"requests": 4000}],
        [{"closed": {"requests": 1000}}, {"closed": {"requests": 1000}}, {"closed": {"requests": 990}}],
        [{"duration": "10s"}, {"duration": "20s"}, {"requests": 10}],
    ],
)
def test_levels_that_lasted_differently_are_of_one_curve(loads: list[dict[str, Any]]) -> None:
    found = sweep_report([lasting(level, dict(load)) for level, load in zip((1, 2, 4), loads, strict=True)])
    (curve,) = found.curves
    assert [level.load for level in curve.levels] == [1, 2, 4]


def test_a_length_that_the_matrix_varies_tells_curves_apart() -> None:
    levels = [
        lasting(level, {"requests": count}, **{"load.requests": count}) for level in (1, 2) for count in (100, 200)
    ]
    assert [curve.title for curve in sweep_report(levels).curves] == ["requests 100", "requests 200"]


@pytest.mark.parametrize(
    ("text", "told"), [("ttft_ms.p99", "a limit is missing"), ("ttft_ms.p99=x", "is not a number")]
)
def test_an_slo_without_a_limit_is_told_from_one_that_is_no_number(text: str, told: str) -> None:
    with pytest.raises(InputError, match=told):
        slo_of([text])


def _with_load(load: dict[str, Any]) -> Entry:
    made = load_entry(1, {"throughput_per_s.p50": [1.0]})
    job = made.job.model_copy(update={"load": Load.model_validate(load)})
    return made.model_copy(update={"job": job})


def test_why_there_is_no_sweep_fits_the_loads() -> None:
    staged, steady = _with_load({"stages": [{"duration": "1s", "rate": 1}]}), _with_load({"open": {"rate": 5}})
    with pytest.raises(InputError) as caught:
        sweep_over([staged])
    assert caught.value.message == ("no job has a level of load (1 has no level: load.stages), so there is no sweep")
    assert "--clients" in caught.value.hint
    with pytest.raises(InputError) as caught:
        sweep_over([steady, staged])
    assert "(1 more has no level: load.stages)" in caught.value.message
    assert "matrix.load.open.rate" in caught.value.hint


def test_a_limit_on_a_number_without_an_interval_says_why_it_cannot_be_judged() -> None:
    job = load_entry(1, {"throughput_per_s.p50": [100.0] * 3})
    why = "of skewed runs Student's t needs 30; the median has one"
    mean = Estimate(value=5.0, unit="ms", count=10, method=f"mean of 10 runs; no interval: {why}")
    summary = job.summary.model_copy(update={"estimates": job.summary.estimates | {"e2e_ms.mean": mean}})
    other = LoadedJob(load_entry(2, {"throughput_per_s.p50": [100.0] * 3}))
    found = curve([LoadedJob(job.model_copy(update={"summary": summary})), other], {"e2e_ms.mean": 10})
    assert found.levels[0].checks[0].text.endswith(f"is 5 ms without an interval: {why}")
