"""Entries in, plain sentences on their loads out: what went through, and how much of it failed."""

from __future__ import annotations

from collections.abc import Sequence

from prony.model.dossier import Entry
from prony.model.estimate import Grade
from prony.report import number, pick

_MOST = 6


def load_findings(entries: Sequence[Entry]) -> list[str]:
    """Return one sentence for each load that may be quoted, and one for each whose requests failed."""
    mine = [entry for entry in entries if pick.is_load(entry) and entry.summary.verdict.grade is not Grade.VOID]
    told = [text for entry in mine[:_MOST] if (text := _through(entry))]
    return told + [text for entry in mine if (text := _describe_failure(entry))]


def _through(entry: Entry) -> str:
    rate, tokens = (pick.estimate(entry.summary, key) for key in ("throughput_per_s", "output_tokens_per_s"))
    if rate is None:
        return ""
    also = "" if tokens is None else f" and {number.text(tokens)} of output tokens"
    good = pick.estimate(entry.summary, "goodput_share")
    limits = "" if good is None else f"; {number.share(good.value)} of the requests met every limit"
    return f"{pick.label(entry)} answered {number.text(rate)} of requests{also}{limits}."


def _describe_failure(entry: Entry) -> str:
    rate = pick.estimate(entry.summary, "error_rate")
    if rate is None or not rate.value:
        return ""
    ends = number.interval_of(rate)
    between = "" if ends is None else f" ({number.share(ends[0])} to {number.share(ends[1])})"
    return f"{number.share(rate.value)}{between} of the requests of {pick.label(entry)} failed; no latency holds them."
