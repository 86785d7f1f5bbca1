"""How a report names a level of load: one alone in the singular, with the same words in every format."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from prony.model.estimate import Grade
from prony.model.sweep import Bottleneck, Claim, Curve, Level, SweepReport, format_levels
from prony.report.html import sweep as html
from prony.report.markdown import sweep as markdown


@pytest.mark.parametrize(
    ("loads", "noun", "text"),
    [
        ([1], "users", "1 user"),
        ([1.0], "requests a second", "1 request a second"),
        ([1.5], "requests a second", "1.5 requests a second"),
        ([1, 4], "users", "1, 4 users"),
    ],
)
def test_a_single_one_is_in_the_singular(loads: list[float], noun: str, text: str) -> None:
    assert format_levels(loads, noun) == text


@pytest.mark.parametrize("render", [markdown.render, html.render])
def test_every_report_says_it_in_the_same_words(render: Callable[[SweepReport], str]) -> None:
    limit = Bottleneck(where="none", text="Nothing was busy.")
    levels = tuple(Level(load=load, jobs=("x",), grade=Grade.VALID, bottleneck=limit) for load in (1, 2))
    refused = Claim(state="refused", text="Too few levels.")
    curve = Curve(title="", noun="requests a second", levels=levels, knee=refused, limit=refused)
    text = render(SweepReport(experiments=("x",), gain_share=0.5, curves=(curve,)))
    assert "1 request a second" in text
    assert "2 requests a second" in text
    assert not re.search(r"\b1 requests", text)
