"""Members of a gang wait for each other, and the instant at which all go on leaves time for the farthest."""

from __future__ import annotations

import asyncio
import time

import pytest

from prony.app.meetings import Meetings, start_lead_ns
from prony.model.gang import Meeting, Met


@pytest.mark.parametrize(
    ("round_trips_ms", "lead_ms"),
    [((), 300), ((1, 2), 300), ((1, 80), 800), ((1, 60_000), 30_000)],
)
def test_the_lead_grows_with_the_slowest_round_trip(round_trips_ms: tuple[int, ...], lead_ms: int) -> None:
    assert start_lead_ns([one * 1_000_000 for one in round_trips_ms]) == lead_ms * 1_000_000


def test_all_go_on_at_one_instant_that_the_farthest_member_can_keep() -> None:
    async def meet() -> tuple[Met | None, Met | None]:
        meetings = Meetings()
        near, far = Meeting(name="run-0", says="near"), Meeting(name="run-0", says="far", round_trip_ns=10**8)
        return await asyncio.gather(meetings.come("job.1", far, 1, 2), meetings.come("job.1", near, 0, 2))

    before_ns = time.perf_counter_ns()
    first, second = asyncio.run(meet())
    assert first is not None
    assert first == second
    assert first.said == ("near", "far")
    assert first.at_ns >= before_ns + 10**9


def test_who_is_alone_at_a_meeting_hears_nothing_and_may_ask_again() -> None:
    meetings = Meetings()
    assert asyncio.run(meetings.come("job.1", Meeting(name="run-0", wait_s=0), 0, 2)) is None
