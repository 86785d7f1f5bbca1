"""The verdict on loads that ended before they had sent all that was asked for."""

from __future__ import annotations

from typing import Any

import pytest

from prony.analyse.load.summary import summarise_load
from prony.model.estimate import Grade, Reason, Summary
from prony.model.result import Repetition

from . import made


def reasons(summary: Summary) -> dict[str, Reason]:
    return {reason.code: reason for reason in summary.verdict.reasons}


def judged(load: dict[str, Any], *changes: dict[str, Any]) -> Summary:
    """Return the summary of runs of ten seconds, each changed as told."""
    repetitions = [made.repetition(index).model_copy(update=change) for index, change in enumerate(changes)]
    runs = {one.index: made.closed_records(seed=one.index) for one in repetitions}
    return summarise_load(made.job(**load), made.result(repetitions), made.frame(runs))


EACH = {"closed": {"concurrency": 8, "requests": 100_000}, "duration": "10s", "repeats": 3}


def test_runs_that_the_time_limit_ended_are_told_with_what_was_sent() -> None:
    told = reasons(judged(EACH, {"stopped_by": "time"}, {"stopped_by": "time"}, {}))["cut_by_time"]
    assert told.grade is Grade.SUSPECT
    assert "The time limit of 10s cut 2 of 3 runs" in told.text
    assert "of 800,000 requests were sent" in told.text
    assert "cut_by_time" not in reasons(judged(EACH, {}, {}, {}))


def test_a_run_that_was_stopped_gives_the_numbers_where_no_whole_one_does() -> None:
    stopped = {"state": "cancelled", "stopped_by": "stop"}
    alone = judged(EACH, stopped)
    assert alone.used == (0,)
    assert alone.estimates["throughput_per_s.p50"].value > 0
    assert "It was stopped after 10 s" in reasons(alone)["stopped"].text
    beside = judged(EACH, {}, stopped)
    assert beside.used == (0,)
    assert 1 in beside.excluded
    assert "stopped" not in reasons(beside)


@pytest.mark.parametrize(("seconds", "there"), [(2, None), (3, 4)])
def test_users_who_never_were_there_together_are_told(seconds: int, there: int | None) -> None:
    load = {"closed": {"concurrency": 5, "requests": 100, "stagger": f"{seconds}s"}}
    told = reasons(judged(load, {}, {}, {})).get("users_apart")
    assert (told is None) == (there is None)
    if told is not None:
        assert told.grade is Grade.VOID
        assert f"Only {there} of 5 users had started when the first one was done" in told.text
        assert "load.closed.stagger=null" in told.text


def test_what_makes_a_load_longer_is_what_ended_it() -> None:
    short = [made.repetition(index, seconds=1) for index in range(3)]
    runs = {one.index: made.closed_records(seed=one.index, seconds=1) for one in short}

    def advice(load: dict[str, Any], repetitions: list[Repetition]) -> str:
        return reasons(summarise_load(made.job(**load), made.result(repetitions), made.frame(runs)))["too_short"].text

    assert advice({"duration": "1s"}, short).endswith("Make load.duration longer.")
    assert advice({"requests": 400}, short).endswith("Raise load.requests.")
    assert advice({"closed": {"concurrency": 8, "requests": 50}}, short).endswith("Raise load.closed.requests.")
    cut = [one.model_copy(update={"stopped_by": "time"}) for one in short]
    assert advice(EACH | {"duration": "1s"}, cut).endswith("Make load.duration longer.")
