"""Lists of experiments are searched, sorted and cut into pages; ten thousand of them are no reason to wait."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import insert, update

from lanes import only_slowly
from prony.errors import InputError
from prony.model.estimate import Grade
from prony.model.experiment import ExperimentState
from prony.model.gate import GateState
from prony.model.listing import ExperimentRow, Filters, Sort
from prony.model.queue import JobState
from prony.store import history_tables, listing, tables
from prony.store.database import reading, writing
from prony.store.store import Store
from prony.store.tables import listed

from .nouns import NOW, experiment, jobs, recipe, summarise, write_folder


def keep(
    store: Store, experiment_id: str, *, minutes: int = 0, sizes: tuple[int, ...] = (1, 8), **changes: Any
) -> None:
    """Keep an experiment with a result for each size, which is its headline too."""
    made = experiment(experiment_id, minutes=minutes, job_count=len(sizes) or 1, **changes)
    its_jobs = jobs(experiment_id, sizes)
    store.save_experiment(made, its_jobs)
    for job in its_jobs:
        folder = write_folder(store.home.result_folder(made.id, job.id), job)
        store.record_result(folder, summarise(folder))


def found(store: Store, filters: Filters | None = None, sort: Sort = "newest") -> list[str]:
    return [row.id for row in rows(store, filters, sort)]


def rows(store: Store, filters: Filters | None = None, sort: Sort = "newest") -> Sequence[ExperimentRow]:
    with reading(store.engine) as connection:
        page, _ = listing.page(connection, filters or Filters(), sort, limit=100, cursor=None)
        return listing.show_rows(connection, page)


@pytest.fixture
def three(store: Store) -> Store:
    keep(store, "one", sizes=(8,))
    other = recipe(()).model_copy(update={"labels": {"team": "audio", "branch": "main_2"}})
    keep(store, "two", minutes=1, sizes=(2, 4), name="Other", recipe=other, submitted_by="Ada")
    keep(store, "six", minutes=2, sizes=(), state=ExperimentState.FAILED)
    return store


def test_a_headline_that_no_glossary_has_is_better_as_its_own_summary_says(store: Store) -> None:
    keep(store, "one", sizes=(8,))
    own = '{"metrics": {"score": {"name": "score", "unit": "", "better": "higher", "meaning": "its own"}}}'
    with writing(store.engine) as connection:
        connection.execute(update(tables.result).values(headline_metric="score.p50", summary=own))
    (row,) = rows(store)
    assert row.headline is not None
    assert (row.headline.metric, row.headline.better) == ("score.p50", "higher")


def test_several_kinds_are_asked_for_with_commas_between_them(three: Store) -> None:
    with reading(three.engine) as connection:
        assert listing.kinds(connection) == ("model",)
    assert found(three, Filters(kind="model,script")) == ["six", "two", "one"]
    assert found(three, Filters(kind="script")) == []


def test_a_row_has_the_number_that_stands_for_the_experiment(three: Store) -> None:
    _, row, _ = rows(three)
    assert (row.id, row.kind, row.labels, row.submitted_by) == (
        "two",
        "model",
        {"team": "audio", "branch": "main_2"},
        "Ada",
    )
    assert row.counts == {JobState.COMPLETE: 2}
    assert (row.grade, row.gates) == (Grade.VALID, None)
    headline = row.headline
    assert headline is not None
    assert (headline.value, headline.metric, headline.unit, headline.better) == (2.0, "inference_ms.p50", "ms", "lower")
    assert headline.low is not None
    assert headline.low < headline.value
    assert row.trend == (2.0,)


@pytest.mark.parametrize(
    ("filters", "ids"),
    [
        ({}, ["six", "two", "one"]),
        ({"search": "OTHER"}, ["two"]),
        ({"search": "ada team=audio"}, ["two"]),
        ({"search": "ada vision"}, []),
        ({"search": "%"}, []),
        ({"label": "team=vision"}, ["six", "one"]),
        ({"label": "team=vis"}, []),
        ({"label": "branch=main_2"}, ["two"]),
        ({"label": "branch=mainX2"}, []),
        ({"state": ExperimentState.FAILED}, ["six"]),
        ({"kind": "service"}, []),
        ({"grade": Grade.VALID}, ["two", "one"]),
        ({"gates": GateState.FAILED}, []),
        ({"schedule": "nobody"}, []),
    ],
)
def test_filters_leave_what_they_say(three: Store, filters: dict[str, Any], ids: list[str]) -> None:
    assert found(three, Filters(**filters)) == ids


@pytest.mark.parametrize(
    ("sort", "ids"),
    [
        ("newest", ["six", "two", "one"]),
        ("oldest", ["one", "two", "six"]),
        ("name", ["two", "one", "six"]),
        ("lowest", ["two", "one", "six"]),
        ("highest", ["one", "two", "six"]),
    ],
)
def test_every_sort_goes_on_where_the_last_page_ended(three: Store, sort: Sort, ids: list[str]) -> None:
    seen, cursor = [], None
    with reading(three.engine) as connection:
        while True:
            page, cursor = listing.page(connection, Filters(), sort, limit=1, cursor=cursor)
            seen += [row.id for row in page]
            if cursor is None:
                break
    assert seen == ids if sort != "name" else sorted(seen) == sorted(ids)


def test_what_is_no_cursor_is_refused(store: Store) -> None:
    for cursor in ("x", "WzFd", "WzEsMl0=", "WyIyMDI1LTAxLTAxIiwgIngiXQ=="):
        with reading(store.engine) as connection, pytest.raises(InputError, match="is not a"):
            listing.page(connection, Filters(), "newest", limit=1, cursor=cursor)


def test_states_and_labels_are_counted_over_all(three: Store) -> None:
    with reading(three.engine) as connection:
        asked = Filters(state=ExperimentState.FAILED)
        assert listing.states(connection, asked) == {ExperimentState.COMPLETE: 2, ExperimentState.FAILED: 1}
        assert listing.labels(connection)[0] == "team=vision"


def test_failed_gates_are_news_until_the_same_recipe_passes(store: Store) -> None:
    for number, name in enumerate(("one", "two")):
        keep(store, name, minutes=number, sizes=())

    def news() -> list[str]:
        with reading(store.engine) as connection:
            return [row.id for row in listing.failed_gates(connection, NOW - timedelta(days=1), 10)]

    def judge(name: str, state: GateState) -> None:
        with writing(store.engine) as connection:
            listing.keep_gates(connection, name, state, f"{name} is {state}")

    judge("one", GateState.FAILED)
    assert news() == ["one"]
    assert found(store, Filters(gates=GateState.FAILED)) == ["one"]
    judge("two", GateState.PASSED)
    assert news() == []
    judge("two", GateState.FAILED)
    assert news() == ["two", "one"]


@pytest.mark.parametrize("database_url", ["sqlite", *only_slowly("postgres")], indirect=True)
def test_of_ten_thousand_experiments_a_page_costs_little(store: Store) -> None:
    many(store, 10_000)
    costs = []
    for sort in ("newest", "lowest") * 4:
        begin = time.process_time()
        with reading(store.engine) as connection:
            page, _ = listing.page(connection, Filters(search="team=vision"), sort, limit=200, cursor=None)
            shown = listing.show_rows(connection, page)
            listing.states(connection, Filters(search="team=vision"))
            listing.labels(connection)
        costs.append(time.process_time() - begin)
        assert (len(shown), len(shown[0].trend)) == (200, 20)
    # The cheapest of each: other tests run beside this one.
    assert max(min(costs[::2]), min(costs[1::2])) < 0.4


def many(store: Store, count: int) -> None:
    """Keep so many experiments of one series, as rows alone."""
    document = experiment().model_dump_json(exclude={"state", "ended_at"})
    with writing(store.engine) as connection:
        made = [
            {"id": f"e{number:05d}", "name": f"quick-{number % 50}", "state": "complete", "job_count": 1,
             "created_at": NOW + timedelta(minutes=number), "document": document}
            for number in range(count)
        ]  # fmt: skip
        connection.execute(insert(tables.experiment), made)
        told = {"kind": "model", "labels": "\nteam=vision\n", "submitted_by": "ada"}
        connection.execute(insert(listed), [{"experiment_id": one["id"]} | told for one in made])
        one_job = [
            {"id": f"{one['id']}-1", "experiment_id": one["id"], "position": 0, "document": "{}"} for one in made
        ]
        connection.execute(insert(tables.job), one_job)
        plain = {
            "attempt": 1, "state": "complete", "stands": True, "hardware_id": "h", "software_id": "s", "folder": "f",
            "document": "{}", "summary": "{}", "title": "t", "grade": "valid", "headline_metric": "inference_ms.p50",
            "headline_low": 1.0, "headline_high": 3.0, "headline_unit": "ms",
        }  # fmt: skip
        measured = [
            plain | {"job_id": f"{one['id']}-1", "experiment_id": one["id"], "headline_value": 2.0 + place / count}
            for place, one in enumerate(made)
        ]
        connection.execute(insert(tables.result), measured)
        series = {"id": "s1", "name": "quick", "hardware_id": "h", "state": "learning", "document": "{}"}
        connection.execute(insert(history_tables.series).values(series))
        points = [
            {"job_id": f"{one['id']}-1", "series_id": "s1", "measured_at": one["created_at"], "judged": True,
             "document": "{}"}
            for one in made
        ]  # fmt: skip
        connection.execute(insert(history_tables.point), points)
