"""The canary tells a slower machine from a slower program."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from prony.analyse.canaries import canary_medians, check_canary, machine_change
from prony.analyse.compare.compare import compare_entries
from prony.analyse.selection import Selection
from prony.analyse.verdict import Evidence
from prony.instruments.canary import Canary, read_canary
from prony.model.comparison import Conclusion, Terms
from prony.model.experiment_data import Entry
from prony.model.result import CanaryReading, Repetition

from .compare.sides import entry, noisy, side
from .jobs import AT

P50 = "inference_ms.p50"
MEMORY = "memory_mib.p50"


def repetitions(values: Sequence[float]) -> tuple[Repetition, ...]:
    return tuple(
        Repetition(
            index=index, started_at=AT, canary_before=CanaryReading(compute_ms=value, memory_ms=2.0),
            canary_after=CanaryReading(compute_ms=value, memory_ms=2.0),
        )
        for index, value in enumerate(values)
    )  # fmt: skip


def with_canary(one: Entry, values: Sequence[float]) -> Entry:
    return one.model_copy(update={"result": one.result.model_copy(update={"repetitions": repetitions(values)})})


def pair(level: float, canary: float, metric: str = P50) -> list[Entry]:
    before = entry({metric: noisy(10, 10, seed=1)})
    after = entry({metric: noisy(level, 10, seed=2)}, experiment="e2", hours=5)
    return [with_canary(before, noisy(1.0, 10, cv=0.003)), with_canary(after, noisy(canary, 10, cv=0.003, seed=3))]


def test_a_reading_takes_some_time_and_repeats() -> None:
    first, second = read_canary(), read_canary()
    assert min(first.compute_ms, first.memory_ms, second.compute_ms, second.memory_ms) > 0


def test_repetitions_that_follow_at_once_share_the_reading_between_them_and_later_ones_do_not() -> None:
    now_ns = [0]
    canary = Canary(lambda: now_ns[0])
    first = canary.read_before()
    after = canary.read_after()
    now_ns[0] += 50_000_000
    assert canary.read_before() is after
    now_ns[0] += 100_000_000
    assert canary.read_before() is not after
    assert first is not after


@pytest.mark.parametrize(("worst", "grades"), [(1.05, []), (1.15, ["valid"]), (1.4, ["suspect"])])
def test_a_run_beside_which_the_machine_was_slower_is_told(worst: float, grades: list[str]) -> None:
    used = repetitions([1.0, 1.0, 1.01, 0.99, worst])
    one = entry({P50: noisy(10, 5)})
    evidence = Evidence(one.job, one.result, Selection(used, (), {}, ()), (), None)
    found = list(check_canary(evidence))
    assert [reason.grade.value for reason in found] == grades
    assert all(reason.code == "machine_slower" for reason in found)
    assert canary_medians(used) == {"compute_ms": 1.0, "memory_ms": 2.0}


def test_a_machine_that_was_slower_in_several_ways_is_told_once() -> None:
    *usual, last = repetitions([1.0] * 5)
    slow = CanaryReading(compute_ms=1.2, memory_ms=3.0)
    used = (*usual, last.model_copy(update={"canary_before": slow, "canary_after": slow}))
    one = entry({P50: noisy(10, 5)})
    (reason,) = check_canary(Evidence(one.job, one.result, Selection(used, (), {}, ()), (), None))
    assert reason.grade.value == "suspect"
    assert reason.text == (
        "The machine itself was up to 50 % slower during one of these runs than during most: a fixed piece of work for "
        "the memory took 3 ms instead of 2 ms, and one for the processor 1.2 ms instead of 1 ms. Measure again on a "
        "quiet machine."
    )


def test_a_comparison_says_that_the_machine_changed_and_does_not_blame_the_program() -> None:
    before, after = pair(11, 1.1)
    found = compare_entries([side("A", before), side("B", after)], Terms(metrics=(P50,)))
    machine = found.matches[0].machine
    assert machine is not None
    assert machine.changed
    assert machine.ratios["compute_ms"] == pytest.approx(1.1, rel=0.02)
    assert machine.sentence in found.notes
    assert "slower" in machine.sentence
    (one,) = found.headlines
    assert (one.conclusion, one.apparent) == (Conclusion.INCONCLUSIVE, Conclusion.REGRESSION)


def test_a_slower_machine_is_no_excuse_for_more_memory() -> None:
    before, after = pair(13, 1.1, MEMORY)
    found = compare_entries([side("A", before), side("B", after)], Terms(metrics=(MEMORY,)))
    assert found.matches[0].machine is not None
    assert found.matches[0].machine.changed
    assert [one.conclusion for one in found.headlines] == [Conclusion.REGRESSION]
    assert found.fails(Conclusion.REGRESSION)


def test_a_slower_card_is_named_as_such() -> None:
    before, after = pair(11, 1.0)

    def on_card(one: Entry, gpu_ms: float) -> Entry:
        readings = [
            Repetition(index=item.index, started_at=AT, canary_before=CanaryReading(
                compute_ms=1.0, memory_ms=2.0, gpu_compute_ms=gpu_ms, gpu_memory_ms=0.2,
            ))
            for item in one.result.repetitions
        ]  # fmt: skip
        return one.model_copy(update={"result": one.result.model_copy(update={"repetitions": tuple(readings)})})

    machine = machine_change(on_card(before, 0.1), on_card(after, 0.11))
    assert machine is not None
    assert machine.changed
    assert machine.ratios["gpu_compute_ms"] == pytest.approx(1.1)
    assert "a fixed piece of work for the GPU took 0.11 ms" in machine.sentence


def test_a_slower_program_on_the_same_machine_is_to_blame() -> None:
    before, after = pair(11, 1.0)
    found = compare_entries([side("A", before), side("B", after)], Terms(metrics=(P50,)))
    assert found.matches[0].machine is not None
    assert not found.matches[0].machine.changed
    assert found.fails(Conclusion.REGRESSION)


def test_older_results_without_a_canary_say_nothing_of_the_machine() -> None:
    assert machine_change(entry({P50: [1.0]}), pair(11, 1.0)[1]) is None
