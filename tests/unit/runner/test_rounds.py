"""What a job needs next, and whose turn it is."""

from __future__ import annotations

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from prony.kinds.script.runner.script_job_run import is_pointless
from prony.model.recipe import Measure, Until
from prony.model.result import Failure, Noise, Phase, Repetition
from prony.runner.turns import count_repetitions, next_step, shuffle_round, take_turns, wants_replacement

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def ok(index: int = 0, *, contaminated: bool = False, kind: str = "measure") -> Repetition:
    return Repetition.read(
        {"index": index, "kind": kind, "started_at": NOW, "contamination": ("foreign CPU",) if contaminated else ()}
    )


def failed(whose: str = "sut") -> Repetition:
    failure = Failure.read({"code": "crash", "message": "it crashed", "whose": whose})
    return Repetition(index=0, state="failed", started_at=NOW, failure=failure)


def test_a_job_runs_as_often_as_it_was_asked_to() -> None:
    measure = Measure(repeats=3)
    assert [next_step(measure, [ok()] * done, []) for done in range(4)] == ["measure", "measure", "measure", None]


def test_a_contaminated_repetition_is_repeated() -> None:
    assert next_step(Measure(repeats=2), [ok(), ok(contaminated=True)], []) == "measure"


def test_a_load_or_script_makes_a_disturbed_run_again_where_a_comparison_needs_it() -> None:
    clean, disturbed = ok(), ok(contaminated=True)
    assert wants_replacement(5, [clean] * 4 + [disturbed])
    assert wants_replacement(5, [clean] * 3 + [disturbed] * 3)
    assert not wants_replacement(5, [clean] * 5 + [disturbed])
    assert not wants_replacement(5, [clean] * 3 + [disturbed] * 4)  # half as many again at most
    assert not wants_replacement(5, [clean] * 4 + [failed()])  # it would fail again
    assert not wants_replacement(5, [disturbed] * 5)  # never quiet
    assert not wants_replacement(3, [clean, clean, disturbed])  # too few for a comparison anyway


def test_a_machine_that_is_never_quiet_does_not_keep_us_for_ever() -> None:
    assert next_step(Measure(repeats=3), [ok(contaminated=True)] * 6, []) is None


def test_no_replacements_are_made_while_every_run_is_disturbed() -> None:
    disturbed, measure = ok(contaminated=True), Measure(repeats=5)
    assert next_step(measure, [disturbed] * 4, []) == "measure"
    assert next_step(measure, [disturbed] * 5, []) is None
    assert next_step(measure, [ok(), *[disturbed] * 4], []) == "measure"  # it is quiet at times
    assert next_step(measure, [ok(), *[disturbed] * 5], []) is None  # but no longer
    assert next_step(Measure(until=Until(ci="2%")), [disturbed] * 6, []) is None


def long(foreign_cpu: float, minutes: float = 0.5, told: int = 0) -> Repetition:
    phase = Phase(begin_ns=0, end_ns=int(minutes * 60e9), cpu_ns=0, count=told)
    changes = {"noise": Noise(foreign_cpu=foreign_cpu), "phases": {"measure": phase}}
    return ok(contaminated=True).model_copy(update=changes)


def test_long_runs_on_a_machine_that_is_never_quiet_stop_after_three() -> None:
    measure = Measure(repeats=10)
    assert next_step(measure, [long(0.4)] * 2, []) == "measure"
    assert next_step(measure, [long(0.4)] * 3, []) is None
    assert next_step(measure, [long(0.4, minutes=0.1)] * 3, []) == "measure"  # not long enough to give up
    assert next_step(measure, [long(0.1)] * 3, []) == "measure"  # what comes out is not void
    assert next_step(measure, [ok(), *[long(0.4)] * 3], []) == "measure"


def test_a_command_stops_early_too_unless_it_computes_something() -> None:
    measure = Measure(repeats=10)
    assert is_pointless(measure, [long(0.4)] * 3)
    assert not is_pointless(measure, [long(0.4)] * 2)
    assert not is_pointless(measure, [long(0.4), long(0.4), ok()])  # it is quiet at times
    assert not is_pointless(measure, [long(0.4, told=2)] * 10)  # a loss is the same on a busy machine


def test_a_crash_counts_as_a_repetition_and_the_rest_go_on() -> None:
    assert next_step(Measure(repeats=3), [ok(), failed()], []) == "measure"
    assert next_step(Measure(repeats=3), [ok(), failed(), ok()], []) is None


def test_two_failures_from_the_start_end_the_job() -> None:
    assert next_step(Measure(repeats=5), [failed()], []) == "measure"
    assert next_step(Measure(repeats=5), [failed(), failed()], []) is None


def test_a_missing_unit_ends_the_job_at_once() -> None:
    assert next_step(Measure(repeats=5), [failed("capacity")], []) is None
    assert next_step(Measure(repeats=5), [failed("input")], []) is None


def test_more_cold_starts_than_repeats_are_loads_of_their_own() -> None:
    measure = Measure(repeats=1, cold_starts=3)
    done = [ok()]
    assert next_step(measure, done, []) == "load"
    done += [ok(1, kind="load"), ok(2, kind="load")]
    assert next_step(measure, done, []) is None


def test_until_goes_on_while_the_interval_is_wide() -> None:
    measure = Measure(until=Until(ci="2%", max_repeats=30))
    wide = [10.0, 12.0, 9.0, 14.0, 8.0, 11.0, 13.0]
    assert next_step(measure, [ok()] * 7, wide) == "measure"
    assert next_step(measure, [ok()] * 30, wide) is None


def test_until_stops_when_the_interval_is_tight() -> None:
    measure = Measure(until=Until(ci="2%"))
    tight = [10.0, 10.01, 9.99, 10.02, 9.98, 10.0, 10.01, 9.99, 10.0, 10.02]
    assert next_step(measure, [ok()] * 5, tight[:5]) == "measure"
    assert next_step(measure, [ok()] * 10, tight) is None


@given(st.lists(st.integers(), unique=True), st.integers(0, 100), st.integers(0, 1000))
def test_a_round_holds_every_job_once_in_an_order_that_the_seed_decides(jobs: list[int], turn: int, seed: int) -> None:
    order = shuffle_round(jobs, round_number=turn, seed=seed)
    assert sorted(order) == sorted(jobs)
    assert order == shuffle_round(jobs, round_number=turn, seed=seed)


def test_rounds_differ_in_their_order() -> None:
    orders = {tuple(shuffle_round(range(6), round_number=turn, seed=1)) for turn in range(10)}
    assert len(orders) > 5


@given(st.lists(st.integers(), unique=True), st.integers(0, 100), st.integers(0, 1000))
def test_every_second_round_reverses_the_one_before(jobs: list[int], turn: int, seed: int) -> None:
    there = shuffle_round(jobs, round_number=2 * turn, seed=seed)
    assert shuffle_round(jobs, round_number=2 * turn + 1, seed=seed) == there[::-1]


def test_jobs_take_turns_until_none_wants_more() -> None:
    left, taken = {"a": 2, "b": 0, "c": 1}, []

    def again(name: str) -> bool:
        if not left[name]:
            return False
        left[name] -= 1
        taken.append(name)
        return True

    take_turns([*left], again, seed=1, stop_asked=lambda: False)
    assert sorted(taken) == ["a", "a", "c"]
    assert set(taken[:2]) == {"a", "c"}


def test_no_turn_is_taken_after_a_stop() -> None:
    taken: list[str] = []

    def again(name: str) -> bool:
        taken.append(name)
        return True

    take_turns(["a", "b", "c"], again, seed=1, stop_asked=lambda: len(taken) == 2)
    assert len(taken) == 2


def test_the_plan_counts_what_will_be_run() -> None:
    assert count_repetitions(Measure(repeats=5)) == 5
    assert count_repetitions(Measure(repeats=2, cold_starts=7)) == 7
    assert count_repetitions(Measure(until=Until(ci="2%"))) == 6
    assert count_repetitions(Measure(repeats=10, until=Until(ci="2%"))) == 10
