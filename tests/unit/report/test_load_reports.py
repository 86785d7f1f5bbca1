"""Reports of loads: latencies by percentile, figures with intervals, and throughput against load."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from prony.model.experiment_data import ExperimentData
from prony.report import FORMATS, render
from prony.report.findings import findings
from prony.report.table import table
from prony.report.terminal.experiment import print_experiment
from report import load_experiments

from .test_html import Page, assert_harmless


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> ExperimentData:
    return load_experiments.one_load(tmp_path_factory.mktemp("one"), slo={"ttft_ms": 10})


@pytest.fixture(scope="module")
def sweep(tmp_path_factory: pytest.TempPathFactory) -> ExperimentData:
    return load_experiments.swept(tmp_path_factory.mktemp("sweep"))


@pytest.fixture(scope="module")
def pages(one: ExperimentData, sweep: ExperimentData) -> dict[str, str]:
    """The page of each, drawn once: drawing takes most of a test."""
    return {"one": str(render(one, "html")), "sweep": str(render(sweep, "html"))}


def printed(data: ExperimentData, width: int = 160) -> str:
    sink = io.StringIO()
    print_experiment(data, Console(file=sink, width=width, color_system=None))
    return sink.getvalue()


@pytest.mark.parametrize("format_name", [name for name in FORMATS if name != "html"])
@pytest.mark.parametrize("which", ["one", "sweep"])
def test_every_format_renders_loads(format_name: str, which: str, request: pytest.FixtureRequest) -> None:
    data: ExperimentData = request.getfixturevalue(which)
    document = render(data, format_name)
    assert "exp-2" in (document if isinstance(document, str) else document.decode())


def test_the_terminal_shows_latencies_and_figures_with_intervals(one: ExperimentData) -> None:
    text = printed(one)
    shown = (
        "End to end",
        "First token",
        "Between tokens",
        "p99.9",
        "Throughput",
        "Goodput share",
        "Errors",
        "end to end p50",
    )
    for word in shown:
        assert word in text
    assert "[" in next(line for line in text.splitlines() if line.startswith("Throughput "))


def test_a_table_rounds_the_ends_of_a_share_outwards(one: ExperimentData) -> None:
    entry = one.entries[0]
    rate = entry.summary.estimates["error_rate.mean"].model_copy(update={"value": 0.999, "low": 0.979, "high": 0.9992})
    summary = entry.summary.model_copy(update={"estimates": entry.summary.estimates | {"error_rate.mean": rate}})
    found = table(one.model_copy(update={"entries": (entry.model_copy(update={"summary": summary}),)}))
    assert [row.cells["error_rate"].interval for row in found.rows] == ["[97 %, 100 %]"]


def test_operations_are_shown_by_name_and_never_act(one: ExperimentData, pages: dict[str, str]) -> None:
    assert "End to end =embed|<b>" in printed(one)
    assert "End to end =embed|&lt;b&gt;" in pages["one"]
    assert "<b>.p50" not in pages["one"]


def test_a_sweep_shows_its_jobs_by_load(sweep: ExperimentData) -> None:
    assert sweep.sweep is not None
    assert [level.load for curve in sweep.sweep.curves for level in curve.levels] == [1, 4, 16]
    text = printed(sweep)
    rows = text.partition("Throughput against load")[2].splitlines()[3:6]
    assert [row.split()[0] for row in rows] == ["1", "4", "16"]
    assert all("valid" in row or "suspect" in row for row in rows)
    assert "## Throughput against load" in str(render(sweep, "md"))


def test_one_load_is_no_sweep(one: ExperimentData) -> None:
    assert one.sweep is None
    assert "Throughput against load" not in printed(one)


def test_the_page_draws_time_percentiles_and_the_sweep(one: ExperimentData, pages: dict[str, str]) -> None:
    alone, swept = pages["one"], pages["sweep"]
    for word in ("Second by second.", "Latency by percentile.", "99 %", "How requests ended"):
        assert word in alone
    assert "Against load." in swept
    assert "Against load." not in alone
    assert render(one, "html") == alone


@pytest.mark.parametrize("which", ["one", "sweep"])
def test_the_page_is_well_formed_and_harmless(which: str, pages: dict[str, str]) -> None:
    shown = Page(pages[which])
    assert "exp-2" in pages[which]
    assert shown.open == []
    assert len(shown.ids) == len(set(shown.ids))
    assert_harmless(shown)
    wanted = {value.removeprefix("#") for _, name, value in shown.attributes if name == "href"}
    assert wanted <= set(shown.ids)


def test_the_findings_say_what_went_through_and_what_failed(one: ExperimentData) -> None:
    told = " ".join(findings(one))
    assert "answered" in told
    assert "met every limit" in told
    assert "failed; they are not in the latencies" in told
    assert "for one request at the median" in told


def test_the_json_has_the_unit_of_every_number(one: ExperimentData) -> None:
    document = json.loads(str(render(one, "json")))
    estimates = document["jobs"][0]["estimates"]
    assert estimates["e2e_ms/chat.p50"]["unit"] == "ms"
    assert all(missing["unit"] for missing in document["jobs"][0]["missing"])


def test_a_page_without_its_requests_is_still_a_page(tmp_path: Path) -> None:
    made = load_experiments.one_load(tmp_path)
    (made.entries[0].folder / "samples.parquet").unlink()
    assert "Could not read requests" in str(render(made, "html"))
