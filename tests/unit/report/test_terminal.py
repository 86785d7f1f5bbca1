"""The table fits its terminal, keeps every interval that it shows, and needs no colour to be understood."""

from __future__ import annotations

import io
import re

import pytest
from rich.console import Console

from prony.model.estimate import Grade, Reason
from prony.model.experiment_data import ExperimentData
from prony.model.result import InputFacts
from prony.report import number
from prony.report.terminal.experiment import print_experiment


def shown(
    data: ExperimentData, width: int, *, encoding: str = "utf-8", is_wide: bool = False, is_kept: bool = True
) -> str:
    raw = io.BytesIO()
    file = io.TextIOWrapper(raw, encoding=encoding, errors="replace")
    console = Console(file=file, width=width, color_system=None)
    print_experiment(data, console, is_wide=is_wide, is_kept=is_kept)
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


@pytest.mark.parametrize("width", [60, 80, 130])
def test_a_narrow_terminal_says_how_many_columns_it_has_no_room_for(full: ExperimentData, width: int) -> None:
    (told,) = [line for line in shown(full, width).splitlines() if "more column" in line]
    found = re.fullmatch(r"(\d+) more columns?(?: \(([^)]*)\))?: prony show (\S+) --wide", told.strip())
    assert found is not None
    assert found[3] == full.experiment.id
    assert found[2] is None or len(found[2].split(", ")) == int(found[1])


def test_nothing_is_said_of_columns_where_all_fit_or_nothing_is_kept(full: ExperimentData) -> None:
    assert "more column" not in shown(full, 220)
    assert "--wide" not in shown(full, 80, is_kept=False)


def test_every_column_is_shown_on_demand_whatever_the_width(full: ExperimentData) -> None:
    lines = shown(full, 60, is_wide=True).splitlines()
    header = next(line for line in lines if "verdict" in line)
    for word in ("p50 ms", "p90", "throughput", "memory", "threads"):
        assert word in header
    # What is no table still fits.
    assert max(len(line) for line in lines[-3:]) <= 60


def give_reasons(data: ExperimentData, *texts: str) -> ExperimentData:
    """Return the experiment with one reason a job."""
    entries = []
    for entry, text in zip(data.entries, texts, strict=True):
        reason = Reason(code="wide_interval", text=text, grade=Grade.SUSPECT)
        verdict = entry.summary.verdict.model_copy(update={"reasons": (reason,)})
        entries.append(entry.model_copy(update={"summary": entry.summary.model_copy(update={"verdict": verdict})}))
    return data.model_copy(update={"entries": tuple(entries)})


def test_what_differs_only_in_numbers_is_said_once_and_counted(full: ExperimentData) -> None:
    said = "4 of 5 runs took fp16 (the busiest: a 3.5 %) and ±{} % of p99."
    wide = give_reasons(
        full, said.format("12.5"), said.format("9"), said.format("30").replace("a 3.5", "b 70"), "Not so."
    )
    text = " ".join(shown(wide, 200).split())
    assert "3 of 4 jobs (" in text
    assert "4 of 5 runs took fp16 (the busiest: b 70 %) and ±9 to 30 % of p99." in text
    assert text.count("took fp16") == 1
    assert text.index("took fp16") < text.index("Not so.")


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
