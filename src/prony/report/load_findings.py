"""State what loads achieved and how much of them failed, in plain sentences."""

from __future__ import annotations

from collections.abc import Sequence

from prony.model.estimate import Grade
from prony.model.experiment_data import Entry
from prony.report import entry_fields, number

_MOST = 6


def load_findings(entries: Sequence[Entry]) -> list[str]:
    """Return one sentence for each load that may be quoted, and one for each whose requests failed."""
    mine = [entry for entry in entries if entry_fields.is_load(entry) and entry.summary.verdict.grade is not Grade.VOID]
    told = [text for entry in mine[:_MOST] if (text := _through(entry))]
    return told + [text for entry in mine if (text := _describe_failure(entry))]


def _through(entry: Entry) -> str:
    rate, tokens = (entry_fields.estimate(entry.summary, key) for key in ("throughput_per_s", "output_tokens_per_s"))
    if rate is None:
        return ""
    also = "" if tokens is None else f" and {number.text(tokens)} of output tokens"
    good = entry_fields.estimate(entry.summary, "goodput_share")
    limits = "" if good is None else f"; {number.share(good.value)} of the requests met every limit"
    return f"{entry_fields.label(entry)} answered {number.text(rate)} of requests{also}{limits}."


def _describe_failure(entry: Entry) -> str:
    rate = entry_fields.estimate(entry.summary, "error_rate")
    if rate is None or not rate.value:
        return ""
    ends = number.interval_of(rate)
    between = "" if ends is None else f" ({number.share(ends[0])} to {number.share(ends[1])})"
    job = entry_fields.label(entry)
    return f"{number.share(rate.value)}{between} of the requests of {job} failed; no latency holds them."
