"""Render loads as part of an HTML page: percentiles, figures, failures, clients and the sweep."""

from __future__ import annotations

from prony.model.clients import ClientSide
from prony.model.experiment_data import Entry, ExperimentData
from prony.report import entry_fields, load_tables, number
from prony.report.html.sweep import sweep_blocks
from prony.report.html.tags import Html, add_caption, fold, grid, join_html, pairs, section, tag
from prony.report.plots import load
from prony.report.plots.load_series import LoadRun, load_runs

_MOST_CURVES = 12


def load_section(data: ExperimentData, samples: dict[str, list[LoadRun]]) -> Html | None:
    """Return what all loads show side by side: latency by percentile, and throughput against load."""
    mine = load_tables.load_entries(data)
    if not mine:
        return None
    blocks: list[Html | None] = []
    if data.sweep is not None:
        blocks += sweep_blocks(data.sweep, claims=False)
    curves = [(entry_fields.label(entry), samples.get(entry.job.id, [])) for entry in mine[:_MOST_CURVES]]
    text = "One curve a run. A tail that is hidden in an average stands on the right; ten times fewer requests a mark."
    blocks.append(_drawn("Latency by percentile.", text, load.by_percentile(curves, "all")))
    return section("loads", "Under load", *blocks)


def load_samples(data: ExperimentData) -> dict[str, list[LoadRun]]:
    return {entry.job.id: load_runs(entry) for entry in load_tables.load_entries(data)}


def job_plots(entry: Entry, runs: list[LoadRun]) -> list[Html]:
    """Return the drawings of one load alone."""
    text = "Successes and failures by the second in which they ended, with the latency of those that ended then."
    drawn = _drawn("Second by second.", text, load.over_time(entry, runs))
    return [] if drawn is None else [drawn]


def job_tables(entry: Entry) -> Html:
    """Return the tables of one load: latencies, figures, causes, and the clients."""
    latencies = [[line.name, *line.cells] for line in load_tables.latency_lines(entry)]
    figures = [[line.name, *line.cells, line.note] for line in load_tables.figure_lines(entry)]
    causes = [[line.name, *line.cells] for line in load_tables.cause_lines(entry)]
    names = load_tables.cause_names(entry)
    return join_html((
        tag("h4", "Latency, ms"),
        grid(["metric", *load_tables.PERCENTILES], latencies, numeric=range(1, 7)) if latencies else None,
        grid(["metric", "value", "interval", "method"], figures, numeric=(1, 2)) if figures else None,
        fold("How requests ended", grid(["run", *names], causes, numeric=range(1, len(names) + 1)))
        if causes else None,
        fold("The clients", _clients(entry)), _members(entry), _service(entry),
    ))  # fmt: skip


def _drawn(title: str, text: str, drawing: Html | None) -> Html | None:
    return None if drawing is None else add_caption(title, text, drawing)


def _clients(entry: Entry) -> Html:
    rows = [[str(one.index), *_side(one.client)] for one in entry.result.repetitions if one.client is not None]
    headings = ["run", "asked", "delivered", "sent late p99, max", "read late p99", "loop late p99", "CPU of each",
                "connections"]  # fmt: skip
    return grid(headings, rows, numeric=(0,)) if rows else tag("p", "Nothing is known of them.")


def _members(entry: Entry) -> Html | None:
    rows = [[line.name, *line.cells] for line in load_tables.member_lines(entry)]
    return fold("The agents that sent it together", grid(load_tables.MEMBERS, rows, numeric=(1, 2))) if rows else None


def _side(side: ClientSide) -> list[str]:
    rate, users = side.asked_rate_per_s, side.asked_concurrency
    asked = f"{rate:.4g} /s" if rate is not None else (number.DASH if users is None else f"{users} users")
    got, flying = side.delivered_rate_per_s, side.delivered_concurrency
    delivered = f"{got:.4g} /s" if got is not None else (number.DASH if flying is None else f"{flying:.4g} in flight")
    opened = f"{side.connections_opened} of {side.connections_asked}" if side.connections_asked is not None else ""
    return [
        asked, delivered, f"{_ms(side.sent_late_p99_ms)}, {_ms(side.sent_late_max_ms)}", _ms(side.kernel_lag_p99_ms),
        _ms(side.loop_lag_p99_ms), ", ".join(number.format_share(one) for one in side.cpu_shares) or number.DASH,
        opened or number.DASH,
    ]  # fmt: skip


def _ms(value: float | None) -> str:
    return number.DASH if value is None else number.format_observed(value, "ms")


def _service(entry: Entry) -> Html | None:
    facts = entry.result.service
    if facts is None:
        return None
    told: list[tuple[str, str | None]] = [
        ("service", facts.name or None), ("version", facts.version or None), ("endpoint", facts.endpoint or None),
        ("command", " ".join(facts.command) or None),
    ]  # fmt: skip
    told += [(f"setting {name}", value) for name, value in facts.settings.items()]
    told += list(facts.notes.items())
    return fold("The service, as it told itself", pairs(told))
