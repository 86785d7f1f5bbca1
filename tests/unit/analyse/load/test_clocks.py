"""The verdict on a load of several agents says when their clocks or their start were not good enough."""

from __future__ import annotations

import pytest

from prony.analyse.load.summary import summarise_load
from prony.model.clients import ClientTiming, Member
from prony.model.estimate import Grade, Reason

from . import made


def graded(code: str, *timings: ClientTiming, agents: int = 2) -> Grade | None:
    """Return the grade of a reason, of three good runs whose agents had these clocks."""
    reason = reason_of(code, *timings, agents=agents)
    return None if reason is None else reason.grade


def reason_of(code: str, *timings: ClientTiming, agents: int) -> Reason | None:
    members = tuple(Member(agent=f"a{number}", requests=100, timing=one) for number, one in enumerate(timings))
    client = made.GOOD_SIDE.model_copy(update={"members": members})
    runs = {i: made.closed_records(seed=i, seconds=10) for i in range(3)}
    repetitions = [made.repetition(i, seconds=10, client=client) for i in runs]
    job = made.job(clients={"agents": agents})
    verdict = summarise_load(job, made.result(repetitions), made.frame(runs)).verdict
    return next((reason for reason in verdict.reasons if reason.code == code), None)


GOOD = ClientTiming(offset_ns=10**12, uncertainty_ns=200_000, drift_ns=50_000)


@pytest.mark.parametrize(
    ("change", "code", "grade"),
    [
        ({}, "clock_unsure", None),
        ({}, "late_start", None),
        ({}, "member_lost", None),
        ({"uncertainty_ns": 1_900_000, "drift_ns": 0}, "clock_unsure", None),
        ({"uncertainty_ns": 2_500_000}, "clock_unsure", Grade.SUSPECT),
        ({"drift_ns": -2_500_000}, "clock_unsure", Grade.SUSPECT),
        ({"drift_ns": None}, "clock_unsure", None),
        ({"late_ns": 900_000}, "late_start", None),
        ({"late_ns": 5_000_000}, "late_start", Grade.SUSPECT),
    ],
)
def test_one_bad_clock_is_told(change: dict[str, int | None], code: str, grade: Grade | None) -> None:
    assert graded(code, GOOD, GOOD.model_copy(update=change)) == grade


def test_a_run_that_lacks_a_member_is_void() -> None:
    lost = reason_of("member_lost", GOOD, agents=2)
    assert lost is not None
    assert lost.grade is Grade.VOID
    assert lost.text.endswith("Check the others (`prony agents`), and run it again.")


def test_a_load_of_one_agent_has_no_members_and_nothing_to_tell_of_them() -> None:
    assert graded("member_lost", agents=1) is None
