"""Whose turn it is among lots that wait."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from prony.dispatch.fairness import order
from prony.model.place import Demand
from prony.model.queue import Lot

AT = datetime(2025, 1, 1, tzinfo=UTC)


def lot(name: str, *, priority: int = 0, minutes: int = 0, number: int = 0) -> Lot:
    return Lot(
        id=f"{name}.{number}",
        experiment_id=name,
        demand=Demand(),
        priority=priority,
        created_at=AT + timedelta(minutes=minutes),
    )


def names(lots: list[Lot]) -> list[str]:
    return [one.experiment_id for one in lots]


def test_the_higher_priority_goes_before_everything_else() -> None:
    lots = [lot("old", minutes=-9), lot("high", priority=1), lot("low", priority=-1, minutes=-99)]
    assert names(order(lots, {"high": 50}, {"high": 50})) == ["high", "old", "low"]


def test_of_equals_the_one_with_the_fewest_running_goes_first() -> None:
    lots = [lot("two"), lot("none", minutes=5), lot("one", minutes=-5)]
    assert names(order(lots, {"one": 1, "two": 2}, {})) == ["none", "one", "two"]


def test_then_the_one_whose_last_turn_is_longest_ago_and_then_the_oldest() -> None:
    lots = [lot("young", minutes=3), lot("served", minutes=-3), lot("old"), lot("served-before", minutes=-9)]
    served = {"served": 7, "served-before": 3}
    assert names(order(lots, {}, served)) == ["old", "young", "served-before", "served"]


def test_lots_of_one_experiment_keep_their_order() -> None:
    lots = [lot("one", number=number) for number in (2, 0, 1)]
    assert [one.id for one in order(lots, {}, {})] == ["one.0", "one.1", "one.2"]


@given(st.lists(st.integers(1, 30), min_size=2, max_size=5), st.integers(1, 8))
def test_nobody_waits_for_the_whole_of_another(sizes: list[int], devices: int) -> None:
    """Serve experiments of any sizes: until one is through, no two differ by more than one turn for each device."""
    left = {f"e{number}": size for number, size in enumerate(sizes)}
    turns: Counter[str] = Counter()
    running: list[str] = []
    served: dict[str, int] = {}
    for turn in range(1, sum(sizes) + 1):
        if len(running) == devices:
            running.pop(0)
        waiting = [lot(name) for name, count in left.items() if count]
        first = order(waiting, Counter(running), served)[0].experiment_id
        running.append(first)
        served[first] = turn
        turns[first] += 1
        left[first] -= 1
        if all(left.values()):
            assert max(turns.values()) - min(turns[name] for name in left) <= devices
