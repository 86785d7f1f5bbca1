"""Say in sentences how the rates of a language model grow with its batch, and what quality the fastest job has."""

from __future__ import annotations

from collections.abc import Sequence

from prony.kinds.llm.plots import QUALITIES, group_by_line
from prony.kinds.llm.schema import LlmWorkload
from prony.model.estimate import Estimate
from prony.model.experiment_data import Entry
from prony.report import compare, entry_fields, number

_SPEED = "decode_tok_s.p50"
_RATES = (("decode_tok_s", "Decode"), ("prefill_tok_s", "Prefill"))


def describe_batches(entries: Sequence[Entry]) -> list[str]:
    """Return for each line of the pictures over batch what the largest batch brings against the smallest."""
    known = [one for one in entries if one.job.work(LlmWorkload).task is None and compare.quotable(one) is not None]
    return [
        _describe_growth(f"{title} of {name}", mine[0], mine[-1], f"{metric}.p50")
        for metric, title in _RATES
        for name, mine in group_by_line(known, "batch", metric).items()
    ]


def _describe_growth(what: str, first: Entry, last: Entry, key: str) -> str:
    low, high = first.summary.estimates[key], last.summary.estimates[key]
    small, large = (one.job.work(LlmWorkload).batch for one in (first, last))
    begin = f"{what}: {number.format_number(low)} at batch {small}, {number.format_number(high)} at batch {large}"
    if _overlap(low, high):
        return f"{begin}; the two are not distinguishable."
    return f"{begin}, {number.format_ratio(high.value / low.value)} as much."


def describe_quality(entries: Sequence[Entry]) -> list[str]:
    """Return for each task, or each model without one, how good the answers of the fastest job are beside the best."""
    groups = [[one for one in group if compare.quotable(one, _SPEED) is not None] for group in compare.peers(entries)]
    return [sentence for group in groups if (sentence := _describe_group(group)) is not None]


def _describe_group(group: Sequence[Entry]) -> str | None:
    for key, title, less_is_better in QUALITIES:
        known = [one for one in group if key in one.summary.estimates]
        if len(known) > 1:
            choose = min if less_is_better else max
            best = choose(known, key=lambda one: one.summary.estimates[key].value)
            fastest = max(known, key=lambda one: one.summary.estimates[_SPEED].value)
            name = title.partition(",")[0]  # its unit stands with the number
            return _describe_price(fastest, best, key, name[0].upper() + name[1:])
    return None


def _describe_price(fastest: Entry, best: Entry, key: str, title: str) -> str:
    ours, theirs = fastest.summary.estimates[key], best.summary.estimates[key]
    begin = f"{title} of the fastest, {entry_fields.label(fastest)}: {number.format_number(ours)}"
    if fastest is best:
        return f"{begin}, the best of all."
    other = f"the best, {entry_fields.label(best)}, with {number.format_number(theirs)}"
    if _overlap(ours, theirs):
        return f"{begin}, not distinguishable from {other}."
    slower = number.format_number(best.summary.estimates[_SPEED])
    return f"{begin}, worse than {other} at {slower}."


def _overlap(one: Estimate, other: Estimate) -> bool:
    """Tell whether two numbers may be equal; without intervals nobody knows that they are not."""
    first, second = number.interval_of(one), number.interval_of(other)
    return first is None or second is None or (first[0] <= second[1] and second[0] <= first[1])
