"""Print failures by cause on the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

from prony.error_codes import name_job
from prony.model.failures import FailureGroup, FailureReport
from prony.report.escaping import one_line

_HERE = "this machine"
_MOST_NAMES = 5
_LONGEST_MESSAGE = 300


def format_failures(report: FailureReport) -> str:
    """Return a text with a paragraph for each cause."""
    if not report.groups:
        return f"no failures since {_at(report.since)}"
    head = (
        f"{_count(report.failures, 'failure')} of {_count(report.jobs, 'job')} on {_count(report.agents, 'agent')} "
        f"since {_at(report.since)}, {_count(len(report.groups), 'cause')}"
    )
    cut = ["more failed: only the newest were counted, use a shorter --since"] if report.is_cut else []
    return "\n\n".join([head, *("\n".join(_paragraph(group)) for group in report.groups), *cut])


def _paragraph(group: FailureGroup) -> Iterator[str]:
    yield f"{group.failures}× {group.code}: {one_line(group.message)[:_LONGEST_MESSAGE]}"
    if group.hint:
        yield f"   hint     {one_line(name_job(group.hint, group.newest_job))}"
    yield f"   agents   {_names({name or _HERE: count for name, count in group.agents.items()})}"
    yield f"   recipes  {_names(group.recipes)}"
    yield f"   time     {_times(group)}"
    yield f"   newest   prony logs {group.newest_job}"


def _times(group: FailureGroup) -> str:
    if group.failures == 1:
        return _at(group.last_at)
    days = f" ({_names(group.days)})" if len(group.days) > 1 else ""
    return f"{_at(group.first_at)} to {_at(group.last_at)}{days}"


def _names(counts: Mapping[str, int]) -> str:
    shown = [f"{one_line(name)} {count}×" for name, count in list(counts.items())[:_MOST_NAMES]]
    left = len(counts) - len(shown)
    return ", ".join([*shown, f"{left} more"] if left else shown)


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _at(instant: datetime) -> str:
    return f"{instant.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
