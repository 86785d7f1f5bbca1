"""From a matrix to jobs."""

# ruff: noqa: E501 (a table of messages reads best with one message a line)

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings

from lanes import count_examples
from prony.errors import RecipeError
from prony.kinds.model.schema import ModelWorkload
from prony.model.job import Job
from prony.recipe import expand, loads

from .strategies import documents, recipe_of

HEAD = "name: a\nworkload: {kind: model, model: m, engine: e}\n"


def jobs(matrix: str) -> list[Job]:
    return loads(HEAD + "matrix:\n" + matrix, name="r.yaml").jobs("x1")


def refusal(matrix: str) -> RecipeError:
    with pytest.raises(RecipeError) as caught:
        jobs(matrix)
    return caught.value


def test_no_matrix_is_one_job_with_everything_in_it() -> None:
    (job,) = loads(HEAD + "measure: {runs: 7}\nlimits: {memory: 1GiB}\nlabels: {a: b}\n").jobs("x1")
    assert (job.id, job.experiment_id, job.name, job.cell) == ("x1-001", "x1", "a", {})
    assert (job.measure.runs, job.limits.memory, job.labels) == (7, 2**30, {"a": "b"})


def test_the_product_keeps_the_written_order_and_the_last_axis_turns_fastest() -> None:
    made = jobs("  workload.engine: [p, q]\n  workload.threads: [1, 2]\n")
    assert [(job.id, job.work(ModelWorkload).engine, job.work(ModelWorkload).threads) for job in made] == [
        ("x1-001", "p", 1),
        ("x1-002", "p", 2),
        ("x1-003", "q", 1),
        ("x1-004", "q", 2),
    ]
    assert made[1].cell == {"workload.engine": "p", "workload.threads": 2}
    assert made[1].title == "engine=p, threads=2"


def test_units_are_an_axis_of_the_matrix() -> None:
    loaded = loads(f"{HEAD}units: [cuda-0, cuda-1]\nmatrix: {{workload.batch_size: [1, 8]}}\n")
    assert [job.cell for job in loaded.jobs("e")] == [
        {"workload.batch_size": size, "workload.unit": unit} for size in (1, 8) for unit in ("cuda-0", "cuda-1")
    ]
    assert [job.work(ModelWorkload).unit for job in loaded.jobs("e")] == 2 * ["cuda-0", "cuda-1"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("units: [cuda-0, cuda-1]\nmatrix: {workload.unit: [cuda-0]}", "say the same"),
        ("units: [cuda-0, cuda-0]", "is given twice"),
        ("units: cuda-0", "units"),
        ("units: [7]", "must be text"),
    ],
)
def test_units_that_make_no_sense_are_refused(text: str, message: str) -> None:
    with pytest.raises(RecipeError, match=message):
        loads(f"{HEAD}{text}\n").jobs("e")


def test_any_section_of_a_job_can_vary_even_one_that_is_not_written() -> None:
    (one, two) = jobs("  measure.until.ci: [2%, 5%]\n")
    assert one.measure.until is not None
    assert two.measure.until is not None
    assert (one.measure.until.ci, two.measure.until.ci) == (0.02, 0.05)
    assert [job.labels for job in jobs("  labels.side: [a, b]\n")] == [{"side": "a"}, {"side": "b"}]
    assert [job.work(ModelWorkload).options for job in jobs("  workload.options.a.b: [1, true]\n")] == [
        {"a.b": 1},
        {"a.b": True},
    ]


def test_exclude_takes_out_what_matches_in_all_its_keys() -> None:
    made = jobs(
        "  workload.engine: [p, q]\n  workload.threads: [1, 2]\n  exclude: [{workload.engine: q, workload.threads: 1}]\n"
    )
    assert [tuple(job.cell.values()) for job in made] == [("p", 1), ("p", 2), ("q", 2)]


def test_seeds_are_the_same_for_the_same_job_and_differ_between_jobs() -> None:
    recipe = loads(HEAD + "matrix: {workload.threads: [1, 2, 3]}\n").recipe
    first = [job.seed for job in expand(recipe, "x1")]
    assert first == [job.seed for job in expand(recipe, "x1")]
    assert len({*first, *(job.seed for job in expand(recipe, "x2"))}) == 6


@pytest.mark.parametrize(
    ("matrix", "message", "hint"),
    [
        ("  workload.bach_size: [1]", "r.yaml:4: matrix.workload.bach_size: no such key to vary", "did you mean workload.batch_size?"),
        ("  threads: [1]", "r.yaml:4: matrix.threads: no such key to vary", "it belongs in workload: workload.threads"),
        ("  name: [b]", "r.yaml:4: matrix.name: only workload, measure, load, limits, labels can vary", ""),
        ("  workload.threads:\n    - 1\n    - two", "r.yaml:6: matrix.workload.threads[1]: must be a whole number from 1 to 4096, not 'two'", ""),
        ("  workload.threads: [1, 1]", "r.yaml:4: matrix.workload.threads[1]: 1 is given twice in this axis", ""),
        ("  workload.inputs: [1]", "r.yaml:4: matrix.workload.inputs[0]: must be a map, not 1", ""),
        ("  workload.engine: [p]\n  exclude: [{workload.engine: q}]", "r.yaml:5: matrix.exclude[0].workload.engine: excludes nothing: the axis has no 'q'", "its values are p"),
        ("  workload.engine: [p]\n  exclude: [{workload.threads: 1}]", "r.yaml:5: matrix.exclude[0].workload.threads: excludes nothing: this is not an axis of the matrix", "the axes are: workload.engine"),
        ("  workload.engine: [p, q]\n  exclude: [{}]", "r.yaml:5: matrix.exclude[0]: is empty, and would exclude every combination", ""),
        ("  workload.engine: [p]\n  exclude: [{workload.engine: p}]", "r.yaml:5: matrix.exclude: leaves no combination to run", "exclude less"),
    ],
)  # fmt: skip
def test_a_mistake_in_the_matrix_points_at_its_line(matrix: str, message: str, hint: str) -> None:
    error = refusal(matrix + "\n")
    assert error.message == message
    assert error.hint == hint


def test_values_that_do_not_go_together_are_told_with_the_combination() -> None:
    error = refusal("  measure.repeats: [5, 9]\n  measure.until.max_repeats: [6, 12]\n  measure.until.ci: [2%]\n")
    assert error.message == (
        "r.yaml:3: matrix: with measure.repeats=9, measure.until.max_repeats=6, measure.until.ci=2%, "
        "measure: until.max_repeats (6) is less than repeats (9)"
    )
    assert error.hint == "exclude this combination"


def test_a_wrong_value_that_only_the_matrix_supplies_is_told_once() -> None:
    with pytest.raises(RecipeError) as caught:
        loads("name: a\nworkload: {kind: model, model: m}\nmatrix: {workload.engine: [1, e]}\n")
    assert [problem["path"] for problem in caught.value.problems] == ["matrix.workload.engine[0]"]


def test_two_spellings_of_one_job_are_told() -> None:
    assert "limits.timeout=1m is the same job as limits.timeout=60s" in refusal("  limits.timeout: [60s, 1m]\n").message


def test_too_many_jobs_are_refused_before_any_is_made() -> None:
    axes = "".join(f"  workload.options.o{n}: [{', '.join(map(str, range(100)))}]\n" for n in range(8))
    assert "10,000,000,000,000,000 combinations are too many" in refusal(axes).message


def test_a_recipe_made_in_python_is_checked_as_well() -> None:
    recipe = recipe_of(
        {"name": "a", "workload": {"kind": "model", "model": "m", "engine": "e"}, "matrix": {"workload.x": [1]}}
    )
    with pytest.raises(RecipeError, match=r"^matrix\.workload\.x: no such key to vary$"):
        expand(recipe, "x1")


@settings(max_examples=count_examples(60), deadline=None, derandomize=True)
@given(documents)
def test_every_job_survives_its_json_and_differs_from_its_siblings(document: dict[str, Any]) -> None:
    made = expand(recipe_of(document), "x1")
    assert [Job.read_json(job.model_dump_json()) for job in made] == made
    assert len({job.id for job in made}) == len({str(job.cell) for job in made}) == len(made)
