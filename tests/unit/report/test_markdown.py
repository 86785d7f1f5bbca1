"""Markdown shows every row, and no name can become a link, a tag or another row."""

from __future__ import annotations

from prony.model.experiment_data import ExperimentData
from prony.report import number, render
from prony.report.markdown.text import escape_markdown
from prony.report.table import table


def lines(data: ExperimentData) -> list[str]:
    text = render(data, "md")
    assert isinstance(text, str)
    return text.splitlines()


def test_the_table_has_one_row_a_job_with_every_interval(full: ExperimentData) -> None:
    rows = [line for line in lines(full) if line.startswith("|")]
    shown = table(full)
    assert len(rows) == 2 + len(full.entries)
    for line, row in zip(rows[2:], shown.rows, strict=True):
        for cell in row.cells.values():
            assert escape_markdown(cell.interval) in line
            assert escape_markdown(cell.text) in line


def test_hostile_names_stay_text_and_in_their_row(hostile: ExperimentData) -> None:
    before_recipe = "\n".join(lines(hostile)).split("\n`````")[0]
    rows = [line for line in before_recipe.splitlines() if line.startswith("|")]
    assert len(rows) == 2 + len(hostile.entries)
    bars = {line.replace("\\|", "").count("|") for line in rows}
    assert len(bars) == 1
    assert "<script>" not in before_recipe
    assert "](b)" not in before_recipe.replace("\\]", "")


def test_the_recipe_is_fenced_beyond_its_own_backticks(hostile: ExperimentData) -> None:
    assert lines(hostile)[-1] == "`````"


def test_the_findings_come_before_the_table(full: ExperimentData) -> None:
    text = "\n".join(lines(full))
    assert text.index("## What was found") < text.index("## Results")
    best = full.entries[1].summary.estimates["inference_ms.p50"]
    assert escape_markdown(number.format_number(best)) in text
