"""Markdown shows every row, and no name can become a link, a tag or another row."""

from __future__ import annotations

from prony.model.dossier import Dossier
from prony.report import number, render
from prony.report.markdown_text import escaped
from prony.report.table import table


def lines(dossier: Dossier) -> list[str]:
    text = render(dossier, "md")
    assert isinstance(text, str)
    return text.splitlines()


def test_the_table_has_one_row_a_job_with_every_interval(full: Dossier) -> None:
    rows = [line for line in lines(full) if line.startswith("|")]
    shown = table(full)
    assert len(rows) == 2 + len(full.entries)
    for line, row in zip(rows[2:], shown.rows, strict=True):
        for cell in row.cells.values():
            assert escaped(cell.interval) in line
            assert escaped(cell.text) in line


def test_hostile_names_stay_text_and_in_their_row(hostile: Dossier) -> None:
    before_recipe = "\n".join(lines(hostile)).split("\n`````")[0]
    rows = [line for line in before_recipe.splitlines() if line.startswith("|")]
    assert len(rows) == 2 + len(hostile.entries)
    bars = {line.replace("\\|", "").count("|") for line in rows}
    assert len(bars) == 1
    assert "<script>" not in before_recipe
    assert "](b)" not in before_recipe.replace("\\]", "")


def test_the_recipe_is_fenced_beyond_its_own_backticks(hostile: Dossier) -> None:
    assert lines(hostile)[-1] == "`````"


def test_the_findings_come_before_the_table(full: Dossier) -> None:
    text = "\n".join(lines(full))
    assert text.index("## What was found") < text.index("## Results")
    best = full.entries[1].summary.estimates["inference_ms.p50"]
    assert escaped(number.text(best)) in text
