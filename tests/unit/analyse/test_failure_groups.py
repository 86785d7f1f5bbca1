"""Failures of many jobs, by cause."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from prony.analyse.failure_groups import report_failures
from prony.model.failures import JobFailure
from prony.report.terminal.failures import format_failures

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def failure(number: int, message: str, *, code: str = "timeout", agent: str = "a", hours: float = 0) -> JobFailure:
    return JobFailure(
        job_id=f"exp{number}-001", experiment_id=f"exp{number}", recipe="nightly", agent=agent,
        at=NOON + timedelta(hours=hours), code=code, message=message, hint=f"hint {number}", whose="sut",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("no answer after 30 s", "no answer after 31.5 s"),
        ("cannot read /srv/models/a.onnx: denied", "cannot read /tmp/x/b.onnx: denied"),
        ("http://10.0.0.1:8000/v1 does not answer", "https://host/v2 does not answer"),
        ("digest 0af7651916cd43dd differs", "digest b7ad6b7169203331 differs"),
        ("job exp1-001 of exp1 was stopped", "job exp2-001 of exp2 was stopped"),
    ],
)
def test_messages_of_one_cause_differ_in_numbers_paths_and_names_only(one: str, other: str) -> None:
    (group,) = report_failures([failure(1, one), failure(2, other)], since=NOON).groups
    assert (group.failures, group.jobs) == (2, 2)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (failure(1, "no answer"), failure(2, "no answer", code="lease_lost")),
        (failure(1, "the model crashed"), failure(2, "the model was refused")),
        (failure(1, "unknown engine 'abc'"), failure(2, "unknown engine 'deadbeef'")),
    ],
)
def test_other_codes_and_other_words_are_other_causes(one: JobFailure, other: JobFailure) -> None:
    assert len(report_failures([one, other], since=NOON).groups) == 2


def test_a_cause_tells_where_and_when_and_quotes_the_newest() -> None:
    found = [
        failure(1, "no answer after 30 s", agent="a", hours=0),
        failure(2, "no answer after 31 s", agent="b", hours=30),
        failure(2, "no answer after 32 s", agent="b", hours=20),
        failure(3, "crashed", code="sut", agent="", hours=1),
    ]
    report = report_failures(found, since=NOON)
    assert (report.failures, report.jobs, report.agents) == (4, 3, 3)
    first, second = report.groups
    assert first.agents == {"b": 2, "a": 1}
    assert first.days == {"2026-03-01": 1, "2026-03-02": 2}
    assert (first.message, first.hint, first.newest_job) == ("no answer after 31 s", "hint 2", "exp2-001")
    assert (first.first_at, first.last_at) == (NOON, NOON + timedelta(hours=30))
    assert second.failures == 1
    text = format_failures(report)
    assert text.startswith(
        "4 failures of 3 jobs on 3 agents since 2026-03-01 12:00 UTC, 2 causes\n\n3× timeout: no answer"
    )
    assert "   agents   this machine 1×\n" in text
    assert "   time     2026-03-01 12:00 UTC to 2026-03-02 18:00 UTC (2026-03-01 1×, 2026-03-02 2×)\n" in text


def test_a_message_cannot_act_on_a_terminal() -> None:
    text = format_failures(report_failures([failure(1, "bad \x1b[31m\nline")], since=NOON))
    assert "\x1b" not in text
    assert len(text.splitlines()) == 8


def test_no_failures_and_too_many_are_said() -> None:
    assert format_failures(report_failures([], since=NOON)) == "no failures since 2026-03-01 12:00 UTC"
    text = format_failures(report_failures([failure(1, "x")], since=NOON, is_cut=True))
    assert text.endswith("more failed: only the newest were counted, use a shorter --since")
