"""A recipe with two sides: which jobs it makes, in which order, and what is wrong with one."""

from __future__ import annotations

from itertools import pairwise

import pytest

from prony.errors import RecipeError
from prony.kinds.model.schema import ModelWorkload
from prony.recipe import dump, loads

BASE = """
name: two
workload: {kind: model, model: "zoo:tiny", engine: "null"}
"""
SIDES = "duet: {a: {workload.threads: 1}, b: {workload.threads: 2}, pairs: 6}\n"


def test_a_duet_is_one_job_a_side_with_a_run_for_each_pair() -> None:
    first, second = loads(BASE + SIDES).jobs("e")
    assert (first.side, second.side) == ("a", "b")
    assert (first.work(ModelWorkload).threads, second.work(ModelWorkload).threads) == (1, 2)
    assert first.measure.repeats == second.measure.repeats == 6
    assert first.title == "side a: threads=1"


def test_handed_out_alone_each_run_is_a_job_and_every_second_pair_has_the_other_order() -> None:
    jobs = loads(BASE + SIDES).jobs("e", apart=True)
    assert [job.pair for job in jobs] == [pair for pair in range(6) for _ in "ab"]
    orders = ["".join(str(job.side) for job in jobs[at : at + 2]) for at in range(0, 12, 2)]
    assert set(orders) == {"ab", "ba"}
    assert all(one != other for one, other in pairwise(orders))
    assert {job.measure.repeats for job in jobs} == {1}
    assert len({job.id for job in jobs}) == 12


def test_which_side_begins_is_left_to_chance() -> None:
    begins = {loads(BASE + SIDES).jobs(f"e{number}", apart=True)[0].side for number in range(20)}
    assert begins == {"a", "b"}


def test_every_combination_of_the_matrix_has_both_sides() -> None:
    jobs = loads(BASE + SIDES + "matrix: {workload.batch_size: [1, 4]}\n").jobs("e")
    assert [(job.work(ModelWorkload).batch_size, job.side) for job in jobs] == [(1, "a"), (1, "b"), (4, "a"), (4, "b")]


def test_one_side_may_be_the_recipe_as_written() -> None:
    first, second = loads(BASE + "duet: {b: {workload.threads: 2}}\n").jobs("e")
    assert first.title == "side a: as written"
    assert second.cell == {"workload.threads": 2}


def test_a_load_has_as_many_runs_as_there_are_pairs() -> None:
    users = "load.closed.concurrency"
    text = f"name: s\nworkload: {{kind: service, service: redis}}\nduet: {{a: {{{users}: 1}}, b: {{{users}: 2}}}}"
    assert [job.load.repeats for job in loads(text).jobs("e")] == [10, 10]


@pytest.mark.parametrize(
    ("section", "told"),
    [
        ("duet: {a: {workload.thread: 1}, b: {workload.threads: 2}}", "duet.a.workload.thread: no such key"),
        ("duet: {a: {workload.threads: none}, b: {}}", "duet.a.workload.threads"),
        ("duet: {a: {workload.threads: 1}, b: {workload.threads: 1}}", "both sides are the same"),
        ("duet: {a: {workload.unit: cpu}, b: {}}", "is the same job as"),
        ("duet: {a: {workload.threads: 1}}\nmeasure: {until: {ci: 2%}}", "a fixed number of pairs"),
        ("duet: {a: {place.priority: 1}, b: {}}", "can vary"),
        ("duet: {a: {workload.threads: 1}, pairs: 2}", "duet.pairs"),
    ],
)
def test_a_duet_that_cannot_be_is_refused_with_its_place(section: str, told: str) -> None:
    with pytest.raises(RecipeError) as caught:
        loads(BASE + section)
    assert told in str(caught.value)


def test_a_duet_survives_being_written_out() -> None:
    recipe = loads(BASE + SIDES).recipe
    assert loads(dump(recipe)).recipe == recipe
