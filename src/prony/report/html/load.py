"""Render loads as part of an HTML page: percentiles, seconds and the sweep."""

from __future__ import annotations

from prony.model.experiment_data import Entry, ExperimentData
from prony.report import entry_fields, load_tables
from prony.report.html.sweep import sweep_blocks
from prony.report.html.tags import Html, add_caption, section
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
    text = "One curve for each run. The tail is on the right; each mark stands for ten times fewer requests."
    blocks.append(_drawn("Latency by percentile.", text, load.by_percentile(curves, "all")))
    return section("loads", "Under load", *blocks)


def load_samples(data: ExperimentData) -> dict[str, list[LoadRun]]:
    return {entry.job.id: load_runs(entry) for entry in load_tables.load_entries(data)}


def job_plots(entry: Entry, runs: list[LoadRun]) -> list[Html]:
    """Return the drawings of one load alone."""
    text = "Successes and failures by the second in which they ended, with their latency."
    drawn = _drawn("Second by second.", text, load.over_time(entry, runs))
    return [] if drawn is None else [drawn]


def _drawn(title: str, text: str, drawing: Html | None) -> Html | None:
    return None if drawing is None else add_caption(title, text, drawing)
