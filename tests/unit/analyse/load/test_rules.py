"""The verdict on a load says when the client was the limit, how much failed, and what to do about it."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import pytest

from prony.analyse.load import cache_rules, external_rules, rules, sending_rules
from prony.analyse.load.summary import summarise_load
from prony.model.estimate import Grade, Summary
from prony.ports.driver import Cause

from . import made

DOCS = Path(__file__).parents[4] / "docs" / "metrics.md"


def judged(count: int = 3, *, seconds: float = 10, **side: Any) -> Summary:
    """Return three good runs whose clients were as told."""
    client = made.GOOD_SIDE.model_copy(update=side)
    runs = {i: made.closed_records(seed=i, seconds=seconds) for i in range(count)}
    repetitions = [made.repetition(i, seconds=seconds, client=client) for i in runs]
    return summarise_load(made.job(), made.result(repetitions), made.frame(runs))


def grade_of(summary: Summary, code: str) -> Grade | None:
    return next((reason.grade for reason in summary.verdict.reasons if reason.code == code), None)


@pytest.mark.parametrize(
    ("side", "code", "grade"),
    [
        ({"delivered_concurrency": 7.9}, "client_bound", None),
        ({"delivered_concurrency": 7.5}, "client_bound", Grade.SUSPECT),
        ({"delivered_concurrency": 4.1}, "client_bound", Grade.SUSPECT),
        ({"delivered_concurrency": 3.9}, "client_bound", Grade.VOID),
        ({"asked_concurrency": None, "delivered_concurrency": 3.0}, "client_bound", None),
        ({"asked_concurrency": None, "asked_rate_per_s": 100, "delivered_rate_per_s": 95}, "client_bound",
         Grade.SUSPECT),
        ({"asked_concurrency": None, "asked_rate_per_s": 100, "delivered_rate_per_s": 85}, "client_bound", Grade.VOID),
        ({"kernel_lag_p99_ms": 0.15}, "client_late", None),
        ({"kernel_lag_p99_ms": 9.0}, "client_late", None),
        ({"kernel_lag_p99_ms": 11.0}, "client_late", Grade.SUSPECT),
        ({"kernel_lag_p99_ms": None, "loop_lag_p99_ms": 11.0}, "client_late", Grade.VOID),
        ({"kernel_lag_p99_ms": None, "loop_lag_p99_ms": 2.0}, "client_late", Grade.SUSPECT),
        ({"kernel_lag_p99_ms": 0.01, "loop_lag_p99_ms": 2.0}, "client_late", None),
        ({"sent_late_p99_ms": 0.5}, "sent_late", None),
        ({"sent_late_p99_ms": 1.5}, "sent_late", Grade.SUSPECT),
        ({"cpu_shares": (0.2, 0.9)}, "client_busy", Grade.SUSPECT),
        ({"cpu_shares": (0.8, 0.8)}, "client_busy", None),
        ({"connections_opened": 7}, "connections", Grade.SUSPECT),
    ],
)  # fmt: skip
def test_the_client_side_is_judged(side: dict[str, Any], code: str, grade: Grade | None) -> None:
    assert grade_of(judged(**side), code) == grade


def test_the_worst_run_decides_on_the_client() -> None:
    runs = {i: made.closed_records(seed=i) for i in range(3)}
    worse = made.GOOD_SIDE.model_copy(update={"delivered_concurrency": 3.0})
    repetitions = [made.repetition(i, client=worse if i == 1 else made.GOOD_SIDE) for i in runs]
    summary = summarise_load(made.job(), made.result(repetitions), made.frame(runs))
    assert summary.verdict.grade is Grade.VOID


def test_a_client_of_whom_nothing_is_known_may_have_been_the_limit() -> None:
    runs = {i: made.closed_records(seed=i) for i in range(3)}
    repetitions = [made.repetition(i, client=None) for i in runs]
    summary = summarise_load(made.job(), made.result(repetitions), made.frame(runs))
    assert grade_of(summary, "client_unknown") is Grade.SUSPECT


def test_two_runs_are_few_and_three_are_enough() -> None:
    assert grade_of(judged(2), "few_runs") is Grade.SUSPECT
    assert grade_of(judged(3), "few_runs") is None


def test_a_window_of_a_second_is_too_short() -> None:
    assert grade_of(judged(seconds=1), "too_short") is Grade.SUSPECT
    assert grade_of(judged(seconds=5), "too_short") is None


def test_the_causes_are_named_with_their_counts() -> None:
    columns = made.closed_records()
    broken = made.failing(
        made.failing(columns, columns["index"][:200], Cause.TIMEOUT), columns["index"][-5:], Cause.RESET
    )
    runs = dict.fromkeys(range(3), broken)
    summary = summarise_load(made.job(), made.result([made.repetition(i) for i in runs]), made.frame(runs))
    text = next(reason.text for reason in summary.verdict.reasons if reason.code in ("errors", "some_errors"))
    assert "600 timeout, 15 reset" in text


def test_every_reason_tells_a_person_what_it_means() -> None:
    for reason in judged(cpu_shares=(0.95,), kernel_lag_p99_ms=3.0).verdict.reasons:
        assert reason.text.endswith(".")
        assert len(reason.text.split()) > 8


def test_the_page_about_metrics_has_every_reason_with_its_grade() -> None:
    grades = {"void": "void", "suspect": "suspect", "note": "note"}
    found = set()
    trees = [
        ast.parse(Path(str(module.__file__)).read_text())
        for module in (rules, cache_rules, sending_rules, external_rules)
    ]
    for node in (node for tree in trees for node in ast.walk(tree)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in grades:
            assert isinstance(node.args[0], ast.Constant)
            found.add((str(node.args[0].value), grades[node.func.id]))
    page = DOCS.read_text().partition("## The verdict on a load")[2].partition("\n## ")[0]
    told = set(re.findall(r"^\| `(\w+)` \| (\w+) \|", page, re.MULTILINE))
    assert told == found
