"""An account adds to an experiment what is known beyond its own numbers."""

from __future__ import annotations

from pathlib import Path

import pytest
from store.nouns import experiment, jobs, write_folder

from prony.app.analyses import analyse_experiment
from prony.app.experiment_data import read_experiment_data
from prony.app.local_histories import LocalHistories
from prony.app.results import summary_of
from prony.model.experiment_data import AnalysedExperiment
from prony.model.history import NewBaseline
from prony.model.recipe import Cost
from prony.report.findings import findings
from prony.store.home import Home
from prony.store.store import Store

_NAMES = ("aaa111", "bbb222", "ccc333")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Three experiments of the same two jobs."""
    made = Store.open(Home(tmp_path / "home"))
    for minutes, identity in enumerate(_NAMES):
        mine = jobs(identity)
        one = experiment(identity, minutes=minutes)
        recipe = one.recipe.model_copy(update={"cost": Cost(per_hour=3.6, currency="EUR")})
        made.save_experiment(one.model_copy(update={"recipe": recipe}), mine)
        for job in mine:
            folder = write_folder(made.home.result_folder(identity, job.id), job)
            made.record_result(folder, summary_of(folder))
    return made


def _account(store: Store, name: str) -> AnalysedExperiment:
    LocalHistories(store).judge()
    return analyse_experiment(store, read_experiment_data(store, name))


def test_an_experiment_with_earlier_results_has_its_place_in_their_history(store: Store) -> None:
    account = _account(store, "ccc333")
    assert [len(one.points) for one in account.histories] == [3] * len(account.histories)
    assert account.histories
    assert any("permutation test" in text for text in account.methods)


def test_a_first_experiment_has_no_history_to_tell_of(store: Store) -> None:
    for name in _NAMES[1:]:
        store.delete_experiment(name)
    assert _account(store, "aaa111").histories == ()


def test_what_a_million_costs_is_told_from_the_recipes_price(store: Store) -> None:
    account = _account(store, "aaa111")
    assert {worth.price.currency for worths in account.worths.values() for worth in worths if worth.price} == {"EUR"}


def test_a_pinned_result_is_what_this_one_is_held_against(store: Store) -> None:
    series = _account(store, "bbb222").histories[0].series.id
    LocalHistories(store).set_baseline(series, NewBaseline(job_id=None))
    pinned = _account(store, "bbb222").histories[0].baseline
    assert pinned is not None
    told = findings(_account(store, "aaa111"))
    assert any(f"against its baseline, job {pinned.job_id}" in sentence for sentence in told)
    assert not any("against its baseline" in sentence for sentence in findings(_account(store, pinned.experiment_id)))
