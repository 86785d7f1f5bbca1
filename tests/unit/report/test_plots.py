"""Plots are small, repeatable, and lose no extreme when they thin the samples out."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from analyse.jobs import job, repetition, result, samples

from prony.kinds.model.plots import plot_batches
from prony.kinds.model.schema import ModelWorkload
from prony.kinds.model.summary import ModelSummary, summarise
from prony.model.experiment_data import ExperimentData
from prony.model.job_plot import JobPlot, PlotLine, PlotPoint
from prony.report.html.tags import Html
from prony.report.plots import experiment as plots_of_experiment
from prony.report.plots import figure as draw
from prony.report.plots import job as plots_of_job
from prony.report.plots import together
from prony.report.plots.series import _run, bands, counters, runs
from report import experiments


def test_thinning_keeps_every_extreme() -> None:
    values = np.random.default_rng(3).lognormal(0, 1, 100_000)
    place, low, middle, high = bands(values, 500)
    assert place.size == 500
    assert low.min() == values.min()
    assert high.max() == values.max()
    assert np.all((low <= middle) & (middle <= high))


def test_a_hundred_thousand_samples_make_a_drawing_of_ordinary_size(tmp_path: Path) -> None:
    entry = experiments.Maker(tmp_path, repeats=4, runs=25_000).entry(0, {"workload.engine": "openvino"})
    found = runs(entry)
    assert sum(run.ms.size for run in found) > 100_000
    for plot in (plots_of_job.distribution(entry, found), plots_of_job.timeline(entry, found)):
        assert plot is not None
        assert len(plot) < 150_000


def test_no_drawing_has_more_than_five_thousand_points(full: ExperimentData) -> None:
    entry = full.entries[0]
    found = runs(entry)
    drawn = (
        plots_of_job.distribution(entry, found),
        plots_of_job.timeline(entry, found),
        plots_of_job.telemetry(entry),
    )
    for plot in drawn:
        assert plot is not None
        assert len(re.findall(r"[ML]\s?[\d.]+ [\d.]+", plot)) < 5000


def test_a_drawing_is_the_same_every_time(full: ExperimentData) -> None:
    samples = {entry.job.id: runs(entry) for entry in full.entries}
    assert plots_of_experiment.comparison(full.entries, samples) == plots_of_experiment.comparison(
        full.entries, samples
    )


def test_text_stays_text_and_colours_are_the_page_s(full: ExperimentData) -> None:
    plot = plots_of_experiment.cold_warm(full.entries)
    assert plot is not None
    assert "first inference</text>" in plot
    assert "var(--ink)" in plot
    assert "http" not in plot


@draw.with_style
def small_ticks() -> Html:
    figure, (axes,) = draw.canvas(4, 2, 5)
    axes.plot([0, 1], [0.004, 0.016])
    axes.set_yticks([0.005, 0.0125])
    return draw.svg(figure, "ticks", "ticks")


def test_every_digit_of_a_tick_is_kept_and_no_place_has_more_than_it_needs() -> None:
    plot = small_ticks()
    assert plot is not None
    assert "0.0050</text>" in plot
    assert "0.0125</text>" in plot
    assert not re.search(r'"[^"<>]*\d\.\d{3,}', plot)


def test_a_name_is_drawn_as_it_is_whatever_it_holds(full: ExperimentData) -> None:
    entry = full.entries[0]
    job = entry.job.model_copy(update={"cell": {"workload.model": "<a>\n$x^2$&"}})
    plot = plots_of_experiment.comparison([entry.model_copy(update={"job": job})], {})
    assert plot is not None
    assert "<a> $x^2$&" in [unescape(text) for text in re.findall(r">([^<]*)</text>", plot)]


def test_a_growing_counter_is_drawn_as_its_rate_and_broken_between_runs(full: ExperimentData) -> None:
    found, origins = counters(full.entries[0], 3)
    by_name = {one.name: one for one in found}
    power = by_name["energy_package"]
    assert power.unit == "W"
    assert float(np.nanmedian(power.value)) == pytest.approx(18.0)
    assert int(np.isnan(power.value).sum()) == len(origins) == 5


def test_nothing_is_drawn_from_nothing(partial: ExperimentData) -> None:
    failed = partial.entries[1]
    assert plots_of_experiment.comparison([failed], {}) is None
    assert plots_of_experiment.cold_warm([failed]) is None
    assert plots_of_experiment.memory([failed]) is None
    assert plots_of_job.distribution(failed, runs(failed)) is None
    assert plots_of_job.telemetry(failed) is None


def test_dots_and_medians_are_of_the_samples_that_the_estimate_is_made_of() -> None:
    """A run that is slow at first: its median in the plot is the one of the summary, and of the web page's chart."""
    early, late = np.full(200, 30_000_000), np.random.default_rng(1).normal(1e7, 1e5, 400).astype(np.int64)
    frame = samples({index: np.concatenate([early, late + index]) for index in range(3)})
    found = summarise(job(), result([repetition(index) for index in range(3)]), frame)
    assert all(found.steady_from.values())
    parts = frame.filter(pl.col("phase").cast(pl.String) == "measure").partition_by("repetition", maintain_order=True)
    drawn = [_run(part, found.steady_from) for part in parts]
    told = found.runs["inference_ms.p50"]
    assert [float(np.median(run.counted_ms)) for run in drawn] == pytest.approx(told)
    charted = ModelSummary().sample_values(job(), result([repetition(index) for index in range(3)]), frame, "")
    assert [float(np.median(charted[index])) for index in range(3)] == pytest.approx(told)


def test_jobs_together_are_drawn_with_one_name_for_all_bounds() -> None:
    point = PlotPoint(x=1, y=10, y_low=9, y_high=11, label="batch 1")
    points = (point, point.model_copy(update={"x": 8, "y": 70, "is_void": True}))
    lines = [PlotLine(name=name, role="line", points=points) for name in ("depth 0", "depth 64")]
    bounds = [PlotLine(name=f"memory allows, {one.name}", role="bound", points=points) for one in lines]
    plot = JobPlot(title="Decode over batch", x_title="sequences", y_title="tokens/s", lines=(*lines, *bounds))
    drawn = str(together.job_plot(plot, "0"))
    assert [drawn.count(f">{text}<") for text in ("depth 0", "depth 64", "memory allows, dashed")] == [1, 1, 1]
    scattered = PlotLine(name="configurations", role="points", points=points)
    plot = JobPlot(title="Quality", x_title="speed", y_title="KL", lines=(scattered,))
    assert str(together.job_plot(plot, "1")).count(">batch 1<") == 2


def test_models_of_several_batch_sizes_have_a_line_for_each_engine(full: ExperimentData) -> None:
    (picture,) = plot_batches(full.entries)
    assert picture.title == "Throughput over batch size"
    rated = [entry for entry in full.entries if "throughput_per_s.p50" in entry.summary.estimates]
    assert {line.name for line in picture.lines} <= {entry.job.work(ModelWorkload).engine for entry in rated}
    for line in picture.lines:
        assert [point.x for point in line.points] == [1, 4]
        assert all(point.y_low is not None and point.y_low <= point.y for point in line.points)


def test_one_batch_size_gives_no_picture_of_batches(full: ExperimentData) -> None:
    assert plot_batches([one for one in full.entries if one.job.work(ModelWorkload).batch_size == 1]) == ()
