"""A matrix marks the best only where intervals are apart, averages nothing unlike, and tells what things cost."""

from __future__ import annotations

from typing import Any

import pytest

from prony.analyse.cost import price_of
from prony.analyse.matrix import Priced, matrix_report
from prony.errors import InputError
from prony.kinds.llm.schema import LlmWorkload
from prony.kinds.model.schema import ModelWorkload
from prony.model.estimate import Grade
from prony.model.experiment_data import Entry
from prony.model.matrix import MatrixReport, MatrixTerms
from prony.model.recipe import Cost

from .made_sweeps import model_entry

FAST, SLOW, NEAR = [9.9, 10, 10.1, 10, 9.95, 10.05], [20, 20.5, 21, 20.2, 20.1, 20.4], [10, 10.1, 10.2, 10, 9.9, 10.3]


def runs(times: list[float]) -> dict[str, list[float]]:
    return {"inference_ms.p50": times, "throughput_per_s.p50": [1000 / time for time in times]}


def report(*entries: Entry, price: float | None = None, **terms: Any) -> MatrixReport:
    cost = None if price is None else Cost(per_hour=price)
    return matrix_report([Priced(entry, cost) for entry in entries], MatrixTerms.model_validate(terms))


def test_the_best_is_marked_where_its_interval_is_apart() -> None:
    found = report(model_entry(0, runs(FAST), engine="a"), model_entry(1, runs(SLOW), engine="b"))
    assert [(cell.column, cell.mark) for cell in found.cells] == [("a", "best"), ("b", "")]


def test_those_that_cannot_be_told_apart_are_as_good() -> None:
    entries = [model_entry(n, runs(times), engine=name) for n, (name, times) in enumerate([("a", FAST), ("b", NEAR)])]
    assert {cell.mark for cell in report(*entries).cells} == {"as good"}


def test_higher_is_better_for_a_rate() -> None:
    entries = [model_entry(0, runs(FAST), engine="a"), model_entry(1, runs(SLOW), engine="b")]
    found = report(*entries, metric="throughput_per_s")
    assert [cell.mark for cell in found.cells] == ["best", ""]


def test_void_competes_for_nothing_and_is_told() -> None:
    void = model_entry(0, runs(FAST), engine="a", grade=Grade.VOID)
    found = report(void, model_entry(1, runs(SLOW), engine="b"), model_entry(2, runs(SLOW), engine="c"))
    assert next(cell.mark for cell in found.cells if cell.column == "a") == ""
    assert any("Excluded void results" in note for note in found.notes)


def test_a_batch_is_an_axis_of_language_models_too() -> None:
    def asked(place: int, batch: int) -> Entry:
        entry = model_entry(place, runs(FAST))
        workload = LlmWorkload(kind="llm", model="zoo:llm-1m", engine="llamacpp", batch=batch)
        return entry.model_copy(update={"job": entry.job.model_copy(update={"workload": workload})})

    found = report(asked(0, 1), asked(1, 4), rows="batch", columns="model")
    assert [cell.row for cell in found.cells] == ["1", "4"]


def test_jobs_that_are_not_alike_are_not_averaged() -> None:
    found = report(model_entry(0, runs(FAST)), model_entry(1, runs(SLOW), batch=8))
    (cell,) = found.cells
    assert cell.estimate is None
    assert "batch_size is 1, 8" in cell.note


def test_the_same_job_measured_again_is_put_together() -> None:
    (cell,) = report(model_entry(0, runs(FAST)), model_entry(1, runs(NEAR))).cells
    assert cell.estimate is not None
    assert cell.estimate.count == 12


def test_another_batch_size_is_other_work_for_a_time_and_the_same_for_a_rate() -> None:
    entries = [model_entry(0, runs(FAST)), model_entry(1, runs(SLOW), batch=8)]
    by_time = report(*entries, rows="batch", columns="engine")
    assert [cell.mark for cell in by_time.cells] == ["", ""]
    by_rate = report(*entries, rows="batch", columns="engine", metric="throughput_per_s")
    assert [cell.mark for cell in by_rate.cells] == ["best", ""]


@pytest.mark.parametrize(
    ("terms", "said"),
    [({"rows": "colour"}, "'colour'"), ({"metric": "inference"}, "did you mean inference_ms?")],
)
def test_a_word_that_no_job_has_is_refused(terms: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError) as caught:
        report(model_entry(0, runs(FAST)), **terms)
    assert said in caught.value.message + caught.value.hint


def test_the_recipes_price_wins_over_the_label_and_says_so() -> None:
    labels = {"cost_per_hour": "3.5", "currency": "EUR"}
    mine = price_of(Cost(per_hour=2.5), labels)
    assert mine is not None
    assert (mine.per_hour, mine.currency) == (2.5, "USD")
    assert "the machine's label says 3.5 EUR" in mine.source
    label = price_of(None, labels)
    assert label is not None
    assert (label.per_hour, label.currency) == (3.5, "EUR")
    assert price_of(None, {"cost_per_hour": "cheap"}) is None


def test_a_million_costs_what_the_hour_costs_by_the_rate() -> None:
    (cell,) = report(model_entry(0, runs([10.0] * 6)), price=3.6).cells
    (worth,) = cell.worths
    assert worth.per_million is not None
    assert worth.per_million.value == pytest.approx(10.0)  # 0.001 a second, a hundred items a second
    assert worth.per_money is not None
    assert worth.per_money.value == pytest.approx(100_000)
    assert (worth.power_w, worth.note) == (None, "no energy counter on this machine")


def test_watts_are_those_of_measured_energy() -> None:
    (cell,) = report(model_entry(0, runs([10.0] * 6), energy=50.0)).cells
    (worth,) = cell.worths
    assert worth.power_w is not None
    assert worth.power_w.value == pytest.approx(50)
    assert worth.per_joule is not None
    assert worth.per_joule.value == pytest.approx(2)
    assert worth.joules_each is not None
    assert worth.joules_each.value == pytest.approx(0.5)
    assert worth.joules_each.unit == "J"
    assert worth.per_million is None


def test_a_missing_counter_is_told_of_the_cells_that_lack_it() -> None:
    entries = [model_entry(0, runs(FAST), engine="a", energy=50.0), model_entry(1, runs(SLOW), engine="b")]
    (note,) = (one for one in report(*entries, price=1.0).notes if "energy counter" in one)
    assert note == "vm × b: no energy counter on this machine."


def test_the_front_may_be_against_the_energy_of_one_item() -> None:
    entries = [
        model_entry(n, runs(times), engine=name, energy=watts)
        for n, (name, times, watts) in enumerate([("a", FAST, 50.0), ("b", SLOW, 50.0)])
    ]
    found = report(*entries, against="energy")
    assert {point.against.unit for point in found.pareto} == {"J"}
    assert {point.column: point.is_front for point in found.pareto} == {"a": True, "b": False}


def test_the_front_holds_what_nothing_beats_in_both() -> None:
    cheap = model_entry(0, runs(SLOW), device="laptop", labels={"cost_per_hour": "0.1"})
    quick = model_entry(1, runs(FAST), device="server", labels={"cost_per_hour": "5"})
    poor = model_entry(2, runs([30.0, 30.1, 30.2, 30, 29.9, 30.3]), device="old", labels={"cost_per_hour": "9"})
    found = report(cheap, quick, poor, rows="device")
    assert {point.row: point.is_front for point in found.pareto} == {"laptop": True, "server": True, "old": False}


def test_watts_of_a_job_on_a_card_are_those_of_its_card() -> None:
    entry = model_entry(0, runs([10.0] * 6), energy=50.0)
    work = entry.job.work(ModelWorkload).model_copy(update={"unit": "cuda"})
    repetitions = tuple(
        one.model_copy(update={"energy_j": {"gpu0": 300.0} | one.energy_j}) for one in entry.result.repetitions
    )
    result = entry.result.model_copy(update={"repetitions": repetitions})
    moved = entry.model_copy(update={"job": entry.job.model_copy(update={"workload": work}), "result": result})
    (worth,) = report(moved).cells[0].worths
    assert worth.power_w is not None
    assert worth.power_w.value == pytest.approx(300)
