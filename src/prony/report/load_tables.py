"""Show what loads achieved and how much of them failed, as table rows and in plain sentences.

The tables have latencies by percentile, figures, causes of failure and agents.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from prony.model.clients import Member
from prony.model.estimate import Estimate, Grade
from prony.model.experiment_data import Entry, ExperimentData
from prony.model.metric import QUALITY_METRICS, key_of, key_text
from prony.ports.metric_titles import metric_title
from prony.report import entry_fields, number

PERCENTILES = ("p50", "p90", "p95", "p99", "p99.9", "max")
_LATENCIES = ("e2e_ms", "service_ms", "ttfb_ms", "ttft_ms", "ttft_content_ms", "itl_ms", "tpot_ms", "sent_late_ms",
              "e2e_with_failures_ms")  # fmt: skip
_FIGURES = (
    "throughput_per_s", "goodput_per_s", "goodput_share", "output_tokens_per_s", "input_tokens_per_s",
    "total_tokens_per_s", "tokens_per_s_per_user", "cached_share", "cache_hit_share", "items_per_s", "bytes_per_s",
    "request_rate_per_s", "in_flight", "quality", *QUALITY_METRICS, "cut_share", "highest_load", "error_rate",
)  # fmt: skip
_MEANS = ("error_rate", "quality", "cut_share", *QUALITY_METRICS)


SHARES = ("error_rate", "goodput_share", "cached_share", "cache_hit_share", "cut_share")


@dataclass(frozen=True)
class FigureLine:
    """One metric: its name, and a text for each column; `note` says how the first one was made."""

    name: str
    cells: tuple[str, ...]
    note: str = ""


def load_entries(data: ExperimentData) -> list[Entry]:
    return [entry for entry in data.entries if entry_fields.is_load(entry)]


def latency_lines(entry: Entry) -> list[FigureLine]:
    """Return a line for each latency that was measured, by operation too; all in milliseconds."""
    found = []
    errors = entry_fields.find_estimate(entry.summary, "error_rate")
    same = () if errors is not None and errors.value else ("e2e_with_failures_ms",)
    for metric in (one for one in _LATENCIES if one not in same):
        for operation in ["", *_operations(entry, metric)]:
            cells = [_cell(entry, key_text(metric, name, operation)) for name in PERCENTILES]
            if any(cell != number.DASH for cell in cells):
                found.append(FigureLine(metric_title(f"{metric}/{operation}" if operation else metric), tuple(cells)))
    return found


def figure_lines(entry: Entry) -> list[FigureLine]:
    """Return a line for each number that a run has once: value, and interval."""
    found = []
    for metric in _FIGURES:
        for operation in ["", *_operations(entry, metric)]:
            name = f"{metric}/{operation}" if operation else metric
            one = entry_fields.find_estimate(entry.summary, f"{name}.{'mean' if metric in _MEANS else 'p50'}")
            if one is not None:
                found.append(
                    FigureLine(metric_title(name), (_figure(metric, one), _interval(metric, one)), number.footnote(one))
                )
    return found


def cause_lines(entry: Entry) -> list[FigureLine]:
    """Return how many requests of each run ended how."""
    sides = [(one.index, one.client.causes) for one in entry.result.repetitions if one.client is not None]
    names = list(dict.fromkeys(name for _, causes in sides for name in causes))
    return [FigureLine(f"run {index}", tuple(str(causes.get(name, 0)) for name in names)) for index, causes in sides]


def cause_names(entry: Entry) -> list[str]:
    sides = [one.client.causes for one in entry.result.repetitions if one.client is not None]
    return list(dict.fromkeys(name for causes in sides for name in causes))


MEMBERS = ("agent", "run", "requests", "sent late p99", "read late p99", "loop late p99", "CPU of each", "connections",
           "clock known within", "drift", "late at the start")  # fmt: skip


def member_lines(entry: Entry) -> list[FigureLine]:
    """Return a line for each agent of each run, where several sent the load together."""
    sides = [(one.index, one.client.members) for one in entry.result.repetitions if one.client is not None]
    return [FigureLine(member.agent, (str(index), *_member(member))) for index, members in sides for member in members]


def _member(one: Member) -> tuple[str, ...]:
    timing = one.timing
    clock = (None, None, None) if timing is None else (timing.uncertainty_ns, timing.drift_ns, timing.late_ns)
    return (
        str(one.requests), *map(_ms, (one.sent_late_p99_ms, one.kernel_lag_p99_ms, one.loop_lag_p99_ms)),
        ", ".join(number.format_share(share) for share in one.cpu_shares) or number.DASH,
        number.DASH if one.connections_asked is None else f"{one.connections_opened} of {one.connections_asked}",
        *(_ms(None if value is None else value / 1e6) for value in clock),
    )  # fmt: skip


def _ms(value: float | None) -> str:
    return number.DASH if value is None else number.format_observed(value, "ms")


def _operations(entry: Entry, metric: str) -> list[str]:
    keys: Sequence[str] = list(entry.summary.estimates)
    found = [key_of(key).operation for key in keys if key.startswith(f"{metric}/")]
    return list(dict.fromkeys(found))


def _cell(entry: Entry, key: str) -> str:
    found = entry.summary.estimates.get(key)
    return number.DASH if found is None else number.format_number(found, number.Scale("", 1.0)).strip()


def _figure(metric: str, one: Estimate) -> str:
    if metric in SHARES:
        return number.format_share(one.value)
    written = number.written(one)
    return f"{written.value} {written.unit}".strip()


def _interval(metric: str, one: Estimate) -> str:
    return number.format_share_interval(one) if metric in SHARES else number.written(one).interval


_MOST = 6


def load_findings(entries: Sequence[Entry]) -> list[str]:
    """Return one sentence for each load that may be quoted, and one for each whose requests failed."""
    mine = [entry for entry in entries if entry_fields.is_load(entry) and entry.summary.verdict.grade is not Grade.VOID]
    told = [text for entry in mine[:_MOST] if (text := _through(entry))]
    return told + [text for entry in mine if (text := _describe_failure(entry))]


def _through(entry: Entry) -> str:
    rate, tokens = (
        entry_fields.find_estimate(entry.summary, key) for key in ("throughput_per_s", "output_tokens_per_s")
    )
    if rate is None:
        return ""
    also = "" if tokens is None else f" and {number.format_number(tokens)} of output tokens"
    good = entry_fields.find_estimate(entry.summary, "goodput_share")
    limits = "" if good is None else f"; {number.format_share(good.value)} of the requests met every limit"
    return f"{entry_fields.label(entry)} answered {number.format_number(rate)} of requests{also}{limits}."


def _describe_failure(entry: Entry) -> str:
    rate = entry_fields.find_estimate(entry.summary, "error_rate")
    if rate is None or not rate.value:
        return ""
    ends = number.interval_of(rate)
    between = "" if ends is None or ends[0] == ends[1] else f" ({' to '.join(number.format_share_ends(*ends))})"
    job = entry_fields.label(entry)
    return f"{number.format_share(rate.value)}{between} of the requests of {job} failed; they are not in the latencies."
