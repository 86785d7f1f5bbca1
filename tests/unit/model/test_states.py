"""The state machines of a fleet: the tables are whole, and ends are ends."""

from __future__ import annotations

from enum import StrEnum
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prony.errors import ConflictError
from prony.model.agent import AgentState
from prony.model.experiment import ExperimentState
from prony.model.queue import JobState
from prony.model.result import ResultState
from prony.model.states import (
    AGENT,
    ENDED,
    EXPERIMENT,
    IDLE_ONLY,
    JOB,
    check_transition,
    experiment_outcome,
    outcome_of_results,
)

TABLES = [(JOB, JobState), (EXPERIMENT, ExperimentState), (AGENT, AgentState)]
ENDS = (JobState.COMPLETE, JobState.PARTIAL, JobState.FAILED, JobState.CANCELLED)


@pytest.mark.parametrize(("table", "states"), TABLES, ids=["job", "experiment", "agent"])
def test_every_state_says_what_may_follow_and_never_itself(
    table: dict[StrEnum, frozenset[StrEnum]], states: type[StrEnum]
) -> None:
    assert set(table) == set(states)
    assert all(following <= set(states) and state not in following for state, following in table.items())


@pytest.mark.parametrize(("table", "states"), TABLES, ids=["job", "experiment", "agent"])
def test_a_step_is_allowed_exactly_where_the_table_has_it(
    table: dict[StrEnum, frozenset[StrEnum]], states: type[StrEnum]
) -> None:
    for now in states:
        for wanted in states:
            if wanted in table[now]:
                check_transition(table, "it", now, wanted)
            else:
                with pytest.raises(ConflictError, match=f"it is {now} and cannot become {wanted}") as refused:
                    check_transition(table, "it", now, wanted)
                assert refused.value.hint


def test_a_complete_job_stays_so_and_a_complete_experiment_too_unless_it_runs_again() -> None:
    assert JOB[JobState.COMPLETE] == frozenset()
    assert EXPERIMENT[ExperimentState.COMPLETE] == {ExperimentState.RUNNING}
    with pytest.raises(ConflictError) as refused:
        check_transition(JOB, "job x", JobState.COMPLETE, JobState.WAITING)
    assert "nothing" in refused.value.hint


def test_what_ended_without_a_whole_result_may_be_tried_again() -> None:
    assert {state for state in ENDED if JobState.WAITING in JOB[state]} == ENDED - {JobState.COMPLETE}
    # An experiment is complete too when some of its jobs failed.
    assert all(ExperimentState.RUNNING in EXPERIMENT[state] for state in EXPERIMENT if state != "running")


def test_a_cancelled_job_is_not_brought_back_by_a_result() -> None:
    assert JOB[JobState.CANCELLED] == {JobState.WAITING}


def test_only_a_person_makes_a_faulty_agent_anything_else() -> None:
    assert AGENT[AgentState.FAULTY] == {AgentState.ACTIVE}
    assert AgentState.FAULTY in IDLE_ONLY
    assert AgentState.ACTIVE not in IDLE_ONLY


@pytest.mark.parametrize("present", [set(mix) for size in range(1, 5) for mix in combinations(ENDS, size)])
def test_how_an_experiment_ended_follows_from_its_jobs(present: set[JobState]) -> None:
    ended = experiment_outcome(dict.fromkeys(present, 2))
    if present in ({JobState.FAILED}, {JobState.CANCELLED}):
        assert ended.value == next(iter(present)).value
    elif present & {JobState.PARTIAL, JobState.CANCELLED}:
        assert ended is ExperimentState.PARTIAL
    else:
        assert ended is ExperimentState.COMPLETE
    assert experiment_outcome(dict.fromkeys(JobState, 0) | dict.fromkeys(present, 1)) is ended


@given(st.lists(st.sampled_from(ResultState), min_size=1, max_size=6))
def test_it_ends_the_same_with_a_server_as_without(results: list[ResultState]) -> None:
    counts = {JobState(state.value): results.count(state) for state in results}
    assert experiment_outcome(counts) is outcome_of_results(results, expected=len(results))


@given(st.dictionaries(st.sampled_from(ENDS), st.integers(1, 3), min_size=1), st.data())
def test_a_late_result_moves_an_experiment_only_to_where_its_table_allows(
    counts: dict[JobState, int], data: st.DataObject
) -> None:
    """One job ends better than was thought: the experiment stays what it is, or runs again to another end."""
    before = data.draw(st.sampled_from(sorted(counts)))
    better = data.draw(st.sampled_from(sorted(JOB[before] & ENDED) or [before]))
    after = dict(counts) | {before: counts[before] - 1}
    after[better] = after.get(better, 0) + 1
    was, now = experiment_outcome(counts), experiment_outcome(after)
    runs_again = ExperimentState.RUNNING in EXPERIMENT[was] and now in EXPERIMENT[ExperimentState.RUNNING]
    assert was is now or now in EXPERIMENT[was] or runs_again
