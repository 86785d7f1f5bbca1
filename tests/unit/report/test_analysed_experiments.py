"""What is known beyond an experiment's own numbers is said first, shown next, and explained last."""

from __future__ import annotations

import json
import re

import pytest

from prony.model.experiment_data import AnalysedExperiment, ExperimentData
from prony.report import render
from prony.report.findings import findings
from prony.report.history_tables import change_lines, lines
from prony.report.method_sentences import decision_sentences
from report.analysed_experiments import analysis
from report.conftest import HOSTILE
from report.test_html import Page


@pytest.fixture(scope="module")
def told(full: ExperimentData) -> AnalysedExperiment:
    return analysis(full)


def _text(data: ExperimentData, format_name: str) -> str:
    document = render(data, format_name)
    return document if isinstance(document, str) else document.decode()


def test_the_change_and_the_sides_are_told_before_the_numbers(told: AnalysedExperiment) -> None:
    sentences = findings(told)
    assert sentences[1] == "Inference p50 of yolo on rack7 got worse by +10.0 % [+9.1 %, +10.9 %]."
    assert sentences[2] == "yolo: Inference p50 got worse, +20.0 % [+15.0 %, +25.0 %]."
    assert "Not compared: yolo." in sentences


def test_sides_that_took_turns_are_not_also_ranked_by_overlap(told: AnalysedExperiment) -> None:
    assert not any("is the fastest" in sentence or "are not distinguishable" in sentence for sentence in findings(told))


def test_the_table_says_where_this_one_stands_in_its_series(told: AnalysedExperiment) -> None:
    (row,) = lines(told.histories, told.experiment.id)
    assert row.cells[:4] == ("Inference p50", "regression", "30, 5 later", "10.90 ms")
    (change,) = change_lines(told.histories)
    assert change.cells[3:] == ("+10.0 %", "[+9.1 %, +10.9 %]", "j24", "kernel from 6.1 to 6.5")


def test_the_method_names_test_level_and_threshold(told: AnalysedExperiment) -> None:
    words = " ".join(decision_sentences(told))
    for part in (
        "type 8",
        "sign-flip test",
        "Level of one test 1 %",
        "below 3 %",
        "permutation test",
        "calibrate --deep",
    ):
        assert part in words


def test_the_page_draws_history_and_ratios_and_refers_to_nothing_outside(told: AnalysedExperiment) -> None:
    page = Page(_text(told, "html"))
    assert {"sides", "history", "cost", "method"} <= set(page.ids)
    assert "history of yolo" in page.text
    assert not page.open
    assert len(page.ids) == len(set(page.ids))
    for tag, name, value in page.attributes:
        assert tag not in {"script", "link", "img", "iframe"}
        assert name not in {"href", "src"} or value.startswith("#")


def test_markdown_and_json_hold_the_same(told: AnalysedExperiment) -> None:
    text = _text(told, "md")
    for heading in ("## The two sides", "## In its history", "## Cost and energy", "## How it was decided"):
        assert heading in text
    document = json.loads(_text(told, "json"))
    assert document["histories"][0]["changes"][0]["kind"] == "regression"
    assert document["comparison"]["conclusion"] == "regression"


@pytest.mark.parametrize("format_name", ["html", "md", "github"])
def test_no_name_of_a_series_or_a_side_becomes_markup(hostile: ExperimentData, format_name: str) -> None:
    # The recipe, at the end of Markdown, stands in a fence and is shown as it is.
    text = _text(analysis(hostile, HOSTILE), format_name).partition("## Where and how")[0]
    assert not re.search(r"(?<!\\)<script", text)
    assert "\x1b" not in text
    assert format_name == "html" or not re.search(r"(?<!\\)\[a", text)
