"""The table fits its terminal, keeps every interval that it shows, and needs no colour to be understood."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from prony.model.experiment_data import ExperimentData
from prony.model.result import InputFacts
from prony.report import number
from prony.report.terminal.experiment import print_experiment


def shown(data: ExperimentData, width: int, *, encoding: str = "utf-8") -> str:
    raw = io.BytesIO()
    file = io.TextIOWrapper(raw, encoding=encoding, errors="replace")
    print_experiment(data, Console(file=file, width=width, color_system=None))
    file.flush()
    return raw.getvalue().decode(encoding)


@pytest.mark.parametrize("width", [60, 80, 140, 220])
def test_no_line_is_wider_than_the_terminal(full: ExperimentData, width: int) -> None:
    assert max(map(len, shown(full, width).splitlines())) <= width


@pytest.mark.parametrize("width", [80, 140, 220])
def test_the_median_is_always_shown_with_its_interval_and_verdict(full: ExperimentData, width: int) -> None:
    text = shown(full, width)
    for entry in full.entries:
        assert number.written(entry.summary.estimates["inference_ms.p50"]).interval in text
    assert text.count("● valid") == 3
    assert text.count("▲ suspect") == 1


def test_a_wide_terminal_shows_every_column(full: ExperimentData) -> None:
    header = next(line for line in shown(full, 220).splitlines() if "verdict" in line)
    for word in ("engine", "batch size", "p50 ms", "ratio", "p90", "throughput", "load", "first", "memory", "threads"):
        assert word in header


def test_a_terminal_without_unicode_gets_plain_marks(full: ExperimentData) -> None:
    text = shown(full, 80, encoding="ascii")
    assert "o valid" in text
    assert "! suspect" in text


def test_a_failed_job_has_its_row_and_its_reason(partial: ExperimentData) -> None:
    text = " ".join(shown(partial, 140).split())
    assert "✖ void" in text
    assert "in load: the engine's process was killed (SIGKILL)" in text
    assert "not calibrated when this was measured" in text


def test_an_empty_experiment_is_said_to_be(empty: ExperimentData) -> None:
    assert "No job has a result yet." in shown(empty, 80)


def test_markup_in_a_name_is_shown_and_not_obeyed(hostile: ExperimentData) -> None:
    text = shown(hostile, 400)
    assert "[a](b)" in text
    assert "\x1b" not in text
    assert "\x00" not in text


@pytest.mark.parametrize("width", [60, 200])
def test_a_size_that_prony_chose_is_marked_in_the_table_with_what_changes_it(full: ExperimentData, width: int) -> None:
    fed = InputFacts(
        name="image", dtype="float32", shape=(1, 3, 224, 224), values_source="", sha256="0" * 64,
        shape_source="batch_size; rule: height -> 224; rule: width -> 224",
    )  # fmt: skip
    assert "(guess)" not in shown(full, width)
    entries = tuple(
        one.model_copy(update={"result": one.result.model_copy(update={"inputs": (fed,)})}) for one in full.entries
    )
    text = " ".join(shown(full.model_copy(update={"entries": entries}), width).split())
    assert "guess" in text
    assert "height = 224, width = 224" in text
    assert "--shape image=1x3x224x224" in text
