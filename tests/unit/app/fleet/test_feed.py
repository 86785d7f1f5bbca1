"""The stream of changes: gathered, resumed where one was cut off, and honest about what it no longer knows."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from prony.app.fleet.events import Feed
from prony.model.event import Changed
from prony.store.writer import ChangeNote

Told = tuple[str, Changed | None]


def told(*notes: list[ChangeNote], last_id: str = "") -> list[Told]:
    """Return what one who follows hears: first of all, and then after each batch of notes."""

    async def follow() -> list[Told]:
        feed = Feed(gather_s=0)
        stream: AsyncIterator[Told] = feed.follow(last_id)
        heard = [await anext(stream)]
        for batch in notes:
            feed.hear(batch)
            heard.append(await anext(stream))
        return heard

    return asyncio.run(follow())


def test_who_comes_first_is_told_to_look_at_everything() -> None:
    ((_, changed),) = told()
    assert changed is None


def test_what_changed_is_told_once_with_its_id_and_nothing_that_pages_do_not_show() -> None:
    notes = [
        ChangeNote("job", "x1/x1-001"),
        ChangeNote("job", "x1/x1-002"),
        ChangeNote("freed", "l1"),
        ChangeNote("agent", "a1"),
        ChangeNote("alarms", ""),
    ]
    _, (_, changed) = told(notes)
    assert changed == Changed(experiments=("x1",), agents=("a1",), topics=("alarms",))


def test_who_comes_back_is_told_what_was_missed() -> None:
    async def follow() -> Changed | None:
        feed = Feed(gather_s=0)
        place, _ = await anext(feed.follow(""))
        feed.hear([ChangeNote("job", "x1/")])
        _, changed = await anext(feed.follow(place))
        return changed

    assert asyncio.run(follow()) == Changed(experiments=("x1",))


def test_who_comes_back_to_another_server_looks_at_everything() -> None:
    ((_, changed),) = told(last_id="0badcafe-3")
    assert changed is None


def test_who_missed_more_than_is_remembered_looks_at_everything() -> None:
    async def follow() -> Changed | None:
        feed = Feed(gather_s=0)
        place, _ = await anext(feed.follow(""))
        feed.hear([ChangeNote("job", f"x{number}/") for number in range(6000)])
        _, changed = await anext(feed.follow(place))
        return changed

    assert asyncio.run(follow()) is None
