"""Results of branches: whose history they join, in which order they stand there, and what a branch is held against."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from prony.app.change_decisions import confirm
from prony.app.experiment_data import read_experiment_data
from prony.app.gates import gate_report
from prony.app.local_histories import LocalHistories
from prony.errors import NotFoundError
from prony.model.calibration import Calibration
from prony.model.estimate import Estimate, Grade
from prony.model.git import Git, order_by_commit
from prony.model.history import Acknowledgement, History, NewBaseline, SeriesState
from prony.store.database import writing
from prony.store.store import Store

from .histories import numbers, record
from .nouns import NOW

ROOT, GATE = "r" * 40, "regression(inference_ms.p50) <= 5%"


def _hash(number: int) -> str:
    return f"{number:02d}" * 20


def commit(number: int, **changes: Any) -> Git:
    """Return a commit of the default branch; its number is its position."""
    usual = {"commit": _hash(number), "branch": "main", "dirty": False, "default_branch": "main"}
    return Git(**usual | {"position": number, "root": ROOT, "repository": "example.org/r"} | changes)


def branch(name: str, *, fork: int | None = 3, **changes: Any) -> Git:
    """Return a commit of another branch."""
    at = {"fork_point": None if fork is None else _hash(fork), "fork_position": fork}
    return commit(90, **{"commit": "f" * 40, "branch": name, "base": "main"} | at | changes)


def history(store: Store, branch: str = "") -> History:
    own = LocalHistories(store)
    (series,) = own.find("quick", branch=branch)
    return own.get(series.id)


def values(found: History) -> list[float]:
    return [point.values["inference_ms.p50"] for point in found.points]


def text_of_gate(store: Store, job_id: str) -> str:
    data = read_experiment_data(store, job_id.rpartition("-")[0])
    (outcome,) = gate_report(store, data, strict=False, more=[GATE]).outcomes
    return f"{outcome.state.value}: {outcome.text}"


def test_each_branch_has_a_series_and_results_without_git_stay_with_the_default_one(store: Store) -> None:
    record(store, 0, 1.0)
    record(store, 1, 2.0, git=Git(commit="a" * 40, branch="old-feature", dirty=False))  # as it was once kept
    record(store, 2, 3.0, git=commit(2))
    record(store, 3, 4.0, git=branch("feature"))
    record(store, 4, 5.0, git=branch("feature", commit="e" * 40))
    record(store, 5, 6.0, git=branch("other"))
    record(store, 6, 7.0, git=branch("feature", repository="example.org/another"))
    assert values(history(store)) == values(history(store, "main")) == [1.0, 2.0, 3.0]
    assert values(history(store, "other")) == [6.0]
    assert sorted(one.branch for one in LocalHistories(store).page().items) == ["", "feature", "feature", "other"]
    assert [one.branch for one in LocalHistories(store).page(branch="other").items] == ["other"]
    assert [one.branch for one in LocalHistories(store).page(branch="").items] == [""]
    with pytest.raises(NotFoundError, match="quick has no results on branch gone") as caught:
        LocalHistories(store).find("quick", branch="gone")
    assert "feature, main, other" in caught.value.hint


def test_a_rebuild_puts_results_where_they_were(store: Store) -> None:
    record(store, 0, 1.0, git=commit(1))
    record(store, 1, 2.0, git=branch("feature", fork=1))
    before = [one.id for one in LocalHistories(store).page().items]
    assert LocalHistories(store).rebuild(lambda *_: None) == 2
    assert [one.id for one in LocalHistories(store).page().items] == before


def test_results_are_ordered_by_commit_and_those_without_a_place_by_time(store: Store) -> None:
    for minute, (value, git) in enumerate(
        [
            (5.0, commit(5)), (0.0, None), (3.0, commit(3)), (4.0, commit(4)),
            (0.5, commit(1, root="s" * 40)),  # of another root: nothing is known of how they relate
            (3.5, commit(3)),
        ]
    ):  # fmt: skip
        record(store, minute, value, git=git)
    assert values(history(store)) == [3.0, 0.0, 3.5, 4.0, 0.5, 5.0]


def test_old_commits_that_are_measured_later_are_judged_where_they_belong(store: Store) -> None:
    measured = numbers(40, change=26)
    for minute, position in enumerate(reversed(range(40))):
        record(store, minute, measured[position], git=commit(position))
    (change,) = history(store).changes
    assert (change.kind, change.job_id) == ("regression", "run0013b1-0")


def measure(store: Store, minutes: int, positions: Iterable[int], value: Callable[[int], float]) -> None:
    """Record a result of each of these commits, one a minute from this minute on."""
    noise = [one / 2.5 for one in numbers(300)]
    for minute, position in enumerate(positions, minutes):
        record(store, minute, value(position) * noise[minute], git=commit(position))


def stand(store: Store) -> list[tuple[str, str, int]]:
    """Return kind, state and commit of each change."""
    found = history(store)
    places = {point.job_id: point.git.position for point in found.points if point.git is not None}
    return [(one.kind, one.state.value, places[one.job_id] or 0) for one in found.changes]


def test_older_commits_measured_later_do_not_close_a_regression(store: Store) -> None:
    measure(store, 0, range(40, 100), lambda position: 2.7 if position >= 70 else 2.5)
    assert stand(store) == [("regression", "found", 70)]
    measure(store, 60, range(40), lambda position: 2.7 if position < 25 else 2.5)
    assert stand(store) == [("improvement", "found", 25), ("regression", "found", 70)]
    assert history(store).series.state is SeriesState.REGRESSION
    assert history(store).series.last_at == NOW + timedelta(minutes=99)


def acknowledge(store: Store) -> None:
    own = LocalHistories(store)
    (change,) = own.changes().items
    own.ack(change.id, Acknowledgement(reason="known"))


def test_a_change_that_is_acknowledged_stays_so_when_its_commits_are_measured_again(store: Store) -> None:
    measure(store, 0, range(40, 100), lambda position: 2.7 if position >= 70 else 2.5)
    acknowledge(store)
    measure(store, 60, (71, 72, 73), lambda _: 2.7)
    assert stand(store) == [("regression", "acknowledged", 70)]


def test_commits_measured_between_tell_where_an_acknowledged_change_began(store: Store) -> None:
    measure(store, 0, (*range(31), *range(80, 92)), lambda position: 2.7 if position >= 45 else 2.5)
    acknowledge(store)
    measure(store, 60, range(31, 80), lambda position: 2.7 if position >= 45 else 2.5)
    assert stand(store) == [("regression", "acknowledged", 45)]


def ids(store: Store) -> dict[int, str]:
    """Return the id of each change, by its commit."""
    found = history(store)
    places = {point.job_id: point.git.position for point in found.points if point.git is not None}
    return {places[one.job_id] or 0: one.id for one in found.changes}


def two_steps(position: int) -> float:
    return 2.5 * 1.2 ** ((position >= 40) + (position >= 72))


def test_the_older_of_two_changes_is_no_known_one_although_it_was_measured_later(store: Store) -> None:
    newest_first = [*reversed(range(100))]
    measure(store, 0, newest_first[:50], two_steps)
    known = ids(store)
    assert [*known] == [72]
    acknowledge(store)
    measure(store, 50, newest_first[50:], two_steps)
    assert stand(store) == [("regression", "found", 40), ("regression", "acknowledged", 72)]
    found = ids(store)
    assert found[72] == known[72] != found[40]
    assert [one.noticed_at for one in history(store).changes] == [NOW + timedelta(minutes=at) for at in (99, 49)]


def test_changes_keep_their_names_where_the_newest_commit_was_measured_first(store: Store) -> None:
    measure(store, 0, (99, *range(56)), two_steps)
    known = ids(store)
    assert [*known] == [40, 99]  # so far the newest commit alone is at the third level
    measure(store, 57, range(56, 97), two_steps)
    assert ids(store) == {40: known[40], 72: known[99]}


@pytest.mark.parametrize("first", [(), (99,)])
def test_what_was_rejected_is_asked_again_with_twice_as_many_results(store: Store, first: tuple[int, ...]) -> None:
    measure(store, 0, (*first, *range(45)), lambda position: 2.7 if position >= 40 else 2.5)
    (change,) = LocalHistories(store).changes().items
    with writing(store.engine) as connection:
        confirm(connection, change.id, [(2.5, 2.5)] * 8, is_last=True)
    measure(store, 46, range(45, 60), lambda _: 2.7)
    assert ("regression", "found", 40) in stand(store)


def test_a_slower_machine_explains_results_of_older_commits_too(store: Store) -> None:
    for name, minutes, ms in (("before", -1, 10.0), ("then", 60, 11.0)):
        figure = Estimate(value=ms, unit="ms", low=ms - 0.1, high=ms + 0.1, count=9, method="t")
        taken = NOW + timedelta(minutes=minutes)
        store.save_calibration(
            Calibration(id=name, hardware_id="hw-1", software_id="sw", taken_at=taken, figures={"kernel_ms": figure})
        )
    measure(store, 0, range(20, 60), lambda _: 2.5)
    measure(store, 61, range(20), lambda _: 2.75)
    (change,) = history(store).changes
    assert (change.kind, change.facts[-1]) == ("environment", "canary kernel_ms from 10 to 11 ms")


def test_a_squashed_branch_stays_in_the_order_of_time(store: Store) -> None:
    record(store, 0, 1.0, git=branch("feature", position=95))
    record(store, 1, 2.0, git=branch("feature", position=91, commit="e" * 40))
    assert values(history(store, "feature")) == [1.0, 2.0]


def test_the_order_is_the_same_whichever_comes_first() -> None:
    at = datetime(2025, 1, 1, tzinfo=UTC)
    items = [(number, at + timedelta(minutes=number)) for number in (4, 2, 9, 7)]
    found = order_by_commit(items, lambda one: commit(one[0]), lambda one: one[1])
    assert [one[0] for one in found] == [2, 4, 7, 9]


def test_a_branch_is_held_against_the_latest_result_at_or_before_its_fork_point(store: Store) -> None:
    record(store, 0, 1.0, git=commit(1))
    held = record(store, 1, 2.0, git=commit(2))
    record(store, 2, 3.0, git=commit(3), grade=Grade.VOID)
    record(store, 3, 4.0, git=commit(4))
    mine = record(store, 4, 2.2, git=branch("feature", fork=3))
    fork = history(store, "feature").fork
    assert fork is not None
    assert (fork.job_id, fork.base, fork.commit, fork.is_known) == (held.id, "main", _hash(2), True)
    assert fork.against == pytest.approx(0.1)
    assert history(store).fork is None
    told = text_of_gate(store, mine.id)
    assert told.startswith("failed: Inference p50 got worse by 10 %")
    assert told.endswith(f"Compared with run0001b1, main at {_hash(2)[:12]}: before the fork point.")


def test_a_result_at_the_fork_point_counts_although_nobody_knows_its_place(store: Store) -> None:
    held = record(store, 0, 2.0, git=commit(3, position=None, root=None))
    record(store, 1, 9.0, git=commit(7, position=None, root=None))
    record(store, 2, 2.0, git=branch("feature", fork=3, fork_position=None, position=None, root=None))
    fork = history(store, "feature").fork
    assert fork is not None
    assert (fork.job_id, fork.is_known) == (held.id, True)


@pytest.mark.parametrize(
    ("fork", "why"),
    [(None, "is not known (a shallow clone?)"), (1, "no result of main is known to be at or before the fork point")],
)
def test_where_the_fork_point_has_no_result_the_latest_is_used_and_said(
    store: Store, fork: int | None, why: str
) -> None:
    record(store, 0, 4.0, git=commit(2))
    record(store, 1, 5.0, git=commit(3))
    mine = record(store, 2, 5.0, git=branch("feature", fork=fork))
    found = history(store, "feature").fork
    assert found is not None
    assert (found.commit, found.is_known) == (_hash(3), False)
    assert why in found.note
    assert why in text_of_gate(store, mine.id)


def test_a_pull_request_into_another_branch_is_held_against_that_one(store: Store) -> None:
    record(store, 0, 1.0, git=commit(3))
    held = record(store, 1, 2.0, git=branch("release", commit=_hash(80), position=80))
    mine = record(store, 2, 2.0, git=branch("fix", base="release", fork=80))
    found = history(store, "fix").fork
    assert found is not None
    assert (found.job_id, found.base) == (held.id, "release")
    assert text_of_gate(store, mine.id).startswith("passed: ")


def test_a_run_of_a_branch_is_no_reference_for_the_default_one(store: Store) -> None:
    record(store, 0, 2.0, git=commit(1))
    record(store, 1, 1.0, git=branch("feature", fork=1))
    mine = record(store, 2, 2.0, git=commit(2))
    told = text_of_gate(store, mine.id)
    assert told.startswith("passed: ")
    assert told.endswith(f"Compared with run0000b1, at {_hash(1)[:12]}.")


def test_a_branch_whose_base_was_never_measured_cannot_be_judged(store: Store) -> None:
    record(store, 0, 1.0, git=branch("feature"))
    mine = record(store, 1, 1.0, git=branch("feature", commit="e" * 40))
    told = text_of_gate(store, mine.id)
    assert told.startswith(
        "cannot tell: There is no earlier result to compare with: no complete experiment called quick of branch main"
    )
    assert told.endswith("Run it on main, or pin a baseline.")
    assert history(store, "feature").fork is None


def test_a_baseline_of_the_default_branch_holds_for_its_branches(store: Store) -> None:
    pinned = record(store, 0, 1.0, git=commit(1))
    record(store, 1, 2.0, git=commit(2))
    own = LocalHistories(store)
    (series,) = own.find("quick", branch="")
    own.set_baseline(series.id, NewBaseline(job_id=pinned.id))
    mine = record(store, 2, 2.0, git=branch("feature", fork=2))
    assert text_of_gate(store, mine.id).startswith("failed: Inference p50 got worse by 100 %")


def test_only_what_has_nothing_before_it_is_called_the_first_one(store: Store) -> None:
    first = record(store, 0, 1.0)
    assert text_of_gate(store, first.id).endswith("that is not void. This is the first one.")
    second = record(store, 1, 1.0, batch=2)
    assert text_of_gate(store, second.id).endswith("that is not void.")
