"""A comparison finds what a person names in the store, and fills in what an older Prony did not keep."""

from __future__ import annotations

from pathlib import Path

import pytest
from store.nouns import experiment, jobs, write_folder

from prony.app.analyses import compare_stored
from prony.app.results import renew_summary, summary_of
from prony.errors import InputError, NotFoundError
from prony.model.comparison import Conclusion, Terms
from prony.model.estimate import Estimate
from prony.store.home import Home
from prony.store.store import Store


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Two experiments of two jobs; the summaries of the first are those of a Prony that kept no runs."""
    made = Store.open(Home(tmp_path / "home"))
    for minutes, identity in enumerate(("aaa111", "bbb222")):
        mine = jobs(identity)
        made.save_experiment(experiment(identity, minutes=minutes), mine)
        for job in mine:
            folder = write_folder(made.home.result_folder(identity, job.id), job)
            summary = summary_of(folder)
            is_old = identity == "aaa111"
            made.record_result(folder, summary.model_copy(update={"runs": {}}) if is_old else summary)
    return made


def test_an_experiment_is_named_by_its_beginning_and_a_job_by_its_number(store: Store) -> None:
    assert len(compare_stored(store, ["aaa", "last"], Terms()).matches) == 2
    (match,) = compare_stored(store, ["aaa-1", "bbb-1"], Terms()).matches
    assert (match.baseline.job_id, match.candidate.job_id) == ("aaa111-1", "bbb222-1")


def test_runs_that_an_older_prony_did_not_keep_are_computed_again(store: Store) -> None:
    contrasts = compare_stored(store, ["aaa111", "bbb222"], Terms(metrics=("inference_ms",))).matches[0].contrasts
    assert contrasts[0].conclusion is Conclusion.INSUFFICIENT
    assert "no such number" not in contrasts[0].sentence


def test_a_summary_whose_percentiles_are_of_another_type_is_computed_again(store: Store) -> None:
    record = store.records("bbb222")[0]
    tail = Estimate(value=9.0, unit="ms", count=5, method="median of 5 runs; order statistics")
    stored = record.summary.model_copy(update={"estimates": record.summary.estimates | {"itl_ms.p99": tail}})
    assert renew_summary(stored, record.folder) == record.summary
    assert renew_summary(record.summary, record.folder) is record.summary


def test_what_is_not_there_is_told_by_its_name(store: Store) -> None:
    with pytest.raises(NotFoundError, match="no job 'aaa111-9'"):
        compare_stored(store, ["aaa-9", "bbb"], Terms())
    with pytest.raises(NotFoundError, match="zzz"):
        compare_stored(store, ["zzz", "bbb"], Terms())


def test_a_thing_is_not_compared_with_itself(store: Store) -> None:
    with pytest.raises(InputError, match="named twice"):
        compare_stored(store, ["aaa111", "aaa111"], Terms())
