"""A comparison is told in sentences first, the same in every form, and no name can break out of it."""

from __future__ import annotations

import io
import re
from itertools import pairwise

import pytest
from analyse.compare.sides import entry, noisy, side
from rich.console import Console

from prony.analyse.compare.compare import compare_entries
from prony.model.comparison import Comparison, Terms
from prony.report.comparison import HEADINGS
from prony.report.html import comparison as comparison_html
from prony.report.markdown import comparison as comparison_markdown
from prony.report.terminal import comparison as comparison_terminal

from .conftest import HOSTILE


def made(name: str = "B", **terms: object) -> Comparison:
    """One job that got slower, one that did not, and one that only the baseline has."""

    def job(experiment: str, number: int, level: float) -> object:
        runs = {
            "inference_ms.p50": noisy(level, 10, seed=number + len(experiment)),
            "inference_ms.p95": noisy(level * 1.2, 10, seed=number),
            "cold_start_ms.p50": noisy(90, 3, seed=number),
        }
        return entry(runs, experiment=experiment, number=number, cell={"workload.threads": number})

    before = side("A", job("e1", 1, 10), job("e1", 2, 20), job("e1", 4, 5))  # type: ignore[arg-type]
    after = side(name, job("e22", 1, 11), job("e22", 2, 20))  # type: ignore[arg-type]
    return compare_entries([before, after], Terms.model_validate(terms))


def printed(comparison: Comparison, width: int, encoding: str = "utf-8") -> str:
    stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding, errors="replace", write_through=True)
    comparison_terminal.print_comparison(comparison, Console(file=stream, width=width, force_terminal=False))
    buffer = stream.buffer
    assert isinstance(buffer, io.BytesIO)
    return buffer.getvalue().decode(encoding)


class TestTerminal:
    def test_the_gravest_sentence_comes_first_and_every_metric_has_its_row(self) -> None:
        text = printed(made(), 160)
        first = next(line for line in text.splitlines() if line.startswith("· "))
        assert first.startswith("· threads=1: Inference p50 got worse, ")
        assert "▼ regression" in text
        assert "  Inference p95" in text
        assert "threads=4 is only in A" in text

    def test_a_narrow_terminal_keeps_the_metric_whole_and_the_interval(self) -> None:
        text = printed(made(), 80)
        row = next(line for line in text.splitlines() if line.startswith("Inference p50"))
        assert "[" in row
        assert all(len(line) <= 80 for line in text.splitlines())

    def test_a_narrow_terminal_names_the_columns_that_it_has_no_room_for(self) -> None:
        text = printed(made(), 80)
        (told,) = [line for line in text.splitlines() if "more column" in line]
        header = next(line for line in text.splitlines() if line.startswith("metric"))
        names = told.partition("(")[2].partition(")")[0].split(", ")
        assert told.startswith(f"{len(names)} more column")
        assert set(names) | set(header.split()) == set(HEADINGS)
        assert "more column" not in printed(made(), 160)

    def test_a_terminal_without_unicode_gets_marks_that_it_has(self) -> None:
        assert "v regression" in printed(made(), 160, "ascii")


class TestMarkdown:
    def test_headlines_are_open_and_the_rest_is_folded(self) -> None:
        text = comparison_markdown.render(made())
        assert text.startswith("### B against A: regression\n")
        opened, _, folded = text.partition("<details>")
        assert "Inference p95" not in opened
        assert "Inference p95" in folded

    def test_what_is_not_comparable_stands_on_top(self) -> None:
        other = entry({"inference_ms.p50": noisy(10, 6)}, experiment="e2", threads=3)
        found = compare_entries(
            [side("A", entry({"inference_ms.p50": noisy(10, 6)})), side("B", other)], Terms(anyway=True)
        )
        text = comparison_markdown.render(found)
        assert text.index("Not comparable, compared anyway") < text.index("Inference p50")
        assert "workload.threads: nothing → 3" in text


class TestHtml:
    def test_the_page_has_the_plot_with_its_band_and_is_the_same_every_time(self) -> None:
        page = comparison_html.render(made())
        assert page == comparison_html.render(made())
        assert "<svg" in page
        assert "candidate / baseline" in page
        assert "http://" not in page.replace("http://www.w3.org", "")

    def test_a_ratio_far_from_one_is_drawn_on_an_axis_that_can_be_read(self) -> None:
        levels = {"A": 178.0, "B": 1.04}
        sides = [side(name, entry({"inference_ms.p50": noisy(levels[name], 10)}, experiment=name)) for name in levels]
        page = comparison_html.render(compare_entries(sides, Terms()))
        places = [float(one) for one in re.findall(r'<text[^>]* x="([\d.]+)"[^>]*>[\d.]+</text>', page)]
        assert len(places) > 3
        assert min(second - first for first, second in pairwise(places)) > 20  # no number lies on another

    def test_nothing_to_draw_is_no_plot_and_no_crash(self) -> None:
        sides = [side(name, entry({"inference_ms.p50": [1.0]}, experiment=name)) for name in ("A", "B")]
        found = compare_entries(sides, Terms())
        assert "<svg" not in comparison_html.render(found)

    @pytest.mark.parametrize("render", [comparison_html.render, comparison_markdown.render])
    def test_a_hostile_name_stays_text(self, render: object) -> None:
        text = render(made(HOSTILE))  # type: ignore[operator]
        assert "<script>" not in text
        assert "\x1b" not in text
