"""Decide which lots an agent is offered alone or together with others, and why a gang came to no end."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import TypeVar

L = TypeVar("L")
A = TypeVar("A")
# How a member's lease ended, where that is why the job came to no end; the others were stopped because of it.
_CAUSES = ("failed", "lost", "returned")


def choose_offers(
    lots: Iterable[L],
    *,
    size: Callable[[L], int],
    find_gang: Callable[[L], tuple[A, ...]],
    count_devices: Callable[[L], int],
) -> list[tuple[L, tuple[A, ...]]]:
    """Return the lots to ask for an agent, in order, each with those who would be lent it together: nobody but this
    agent, or a gang of which all are free.

    A gang that cannot be had yet, but could be when others have ended what they do, keeps the agent free for it: else
    small jobs would never let a large one begin. All agents see the lots in one order, so no two gangs hold half of
    each other's.

    Args:
        lots: what the agent could serve, in the order in which it should.
        size: how many agents a lot wants at once.
        find_gang: who could run a lot together now; nobody where they are too few.
        count_devices: on how many devices a part of the lot could run, busy or not.
    """
    found: list[tuple[L, tuple[A, ...]]] = []
    for lot in lots:
        if size(lot) == 1:
            found.append((lot, ()))
        elif members := find_gang(lot):
            found.append((lot, members))
        elif count_devices(lot) >= size(lot):
            break
    return found


def pick_gang(first: A, others: Iterable[A], size: int, device_of: Callable[[A], str]) -> tuple[A, ...]:
    """Return so many agents, each on a device of its own, the first one first; none where they are too few."""
    found = {device_of(first): first}
    for other in others:
        found.setdefault(device_of(other), other)
        if len(found) == size:
            return tuple(found.values())
    return ()


def find_cause(members: Iterable[A], end_of: Callable[[A], tuple[str, datetime]]) -> A | None:
    """Return the member that was the first to come to no end of its own, by how and when each ended.

    One that vanished comes before any that failed: without it the others could not do better, and it is only missed
    when its lease has run out.
    """
    bad = [one for one in members if end_of(one)[0] in _CAUSES]
    return min(bad, key=lambda one: (end_of(one)[0] == "failed", end_of(one)[1]), default=None)
