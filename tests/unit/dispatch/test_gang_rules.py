"""Which lots an agent is offered, with whom, and which member of a gang is why it came to no end."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from prony.dispatch.gangs import choose_offers, find_cause, pick_gang

AT = datetime(2025, 6, 1, tzinfo=UTC)


def offered(
    sizes: list[int], *, gangs: dict[int, tuple[str, ...]] | None = None, devices: int = 0
) -> list[tuple[int, tuple[str, ...]]]:
    """Ask for lots that are their sizes."""
    known = gangs or {}
    return choose_offers(
        sizes, size=lambda lot: lot, find_gang=lambda lot: known.get(lot, ()), count_devices=lambda _: devices
    )


def test_small_lots_are_offered_in_order() -> None:
    assert offered([1, 1]) == [(1, ()), (1, ())]


def test_a_gang_that_is_free_is_offered_its_lot_together() -> None:
    assert offered([2, 1], gangs={2: ("a", "b")}) == [(2, ("a", "b")), (1, ())]


def test_an_agent_is_kept_free_for_a_gang_that_could_be_had_later() -> None:
    assert offered([1, 3, 1], devices=3) == [(1, ())]


def test_a_gang_that_cannot_be_had_at_all_keeps_nobody_free() -> None:
    assert offered([1, 3, 1], devices=2) == [(1, ()), (1, ())]


def test_a_gang_has_one_agent_a_device_and_begins_with_who_asked() -> None:
    assert pick_gang("a1", ["a2", "b1", "b2", "c1"], 3, lambda one: one[0]) == ("a1", "b1", "c1")
    assert pick_gang("a1", ["a2", "b1"], 3, lambda one: one[0]) == ()


@pytest.mark.parametrize(
    ("ends", "cause"),
    [
        ([("complete", 1), ("cancelled", 2)], None),
        ([("failed", 5), ("failed", 3), ("cancelled", 1)], 1),
        ([("failed", 1), ("lost", 9)], 1),
        ([("returned", 4), ("lost", 3)], 1),
    ],
)
def test_the_first_that_came_to_no_end_is_the_cause_and_one_that_vanished_before_all(
    ends: list[tuple[str, int]], cause: int | None
) -> None:
    members = list(range(len(ends)))
    assert find_cause(members, lambda one: (ends[one][0], AT + timedelta(seconds=ends[one][1]))) == cause
