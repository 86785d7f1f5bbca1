"""Show what engines made of models: settings asked for and effective, plots of runs, and who moves most items."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from prony.kinds.model.plots import plot_batches
from prony.kinds.model.schema import ModelWorkload
from prony.model.estimate import Estimate
from prony.model.experiment_data import Entry, ExperimentData
from prony.model.job_plot import JobPlot, OtherReading
from prony.model.result import OutputCheck
from prony.model.section import Fact, Section, SectionTable
from prony.ports.workload import SETTINGS, Drawings, Report, ReportPage
from prony.report import compare, entry_fields, number
from prony.report.findings import join_names
from prony.report.html.job import BESIDE
from prony.report.html.method import HOW
from prony.report.html.tags import Html, add_caption, section, tag
from prony.report.plots import experiment, job
from prony.report.plots.series import PlottedRun, runs


class ModelReport(Report):
    """What reports show of models."""

    method = HOW
    example = "quickstart.yaml"

    def sections(self, entry: Entry) -> tuple[Section, ...]:
        asked, effective = entry.job.work(ModelWorkload), entry.result.effective
        told: list[tuple[str, str | None]] = [
            ("requested engine", asked.engine),
            ("requested unit", asked.unit),
            ("batch size", str(asked.batch_size)),
            ("requested threads", str(asked.threads) if asked.threads else "default"),
            ("requested precision", asked.precision),
        ]
        told += [(f"option {name}", str(value)) for name, value in asked.options.items()]
        if effective is not None:
            coverage = ", ".join(
                f"{name} {number.format_share(value)}" for name, value in effective.provider_coverage.items()
            )
            told += [
                ("effective engine", f"{effective.engine} {effective.engine_version}"),
                ("effective device", effective.device),
                ("effective precision", effective.precision),
                ("effective threads", None if effective.threads is None else str(effective.threads)),
                ("interpreter", effective.python),
                ("nodes by provider", coverage or None),
            ]
            told += list(effective.details.items())
        more = (_inputs(entry), _output_check(entry.result.check))
        return (Section(title=SETTINGS, facts=tuple(told)), *(one for one in more if one is not None))

    def programs(self, entry: Entry) -> tuple[Fact, ...]:
        return entry_fields.engine_facts(entry)

    def settings(self, workload: ModelWorkload) -> dict[str, str]:
        return {
            "unit": workload.unit,
            "batch_size": str(workload.batch_size),
            "threads_asked": "" if workload.threads is None else str(workload.threads),
            "precision_asked": workload.precision,
        }

    def draw(self, data: ExperimentData, apart: Collection[str]) -> Drawings:
        samples = {entry.job.id: runs(entry) for entry in data.entries}
        mine = [entry for entry in data.entries if entry.job.id in apart]
        drawn = {one.job.id: _plots(one, samples[one.job.id]) for one in mine}
        return Drawings((ReportPage("plots", "Plots", _together(data.entries, samples)),), drawn)

    def same_work(self, entry: Entry) -> str:
        work = entry.job.work(ModelWorkload)
        return f"{work.model}\n{work.checksum}\n{work.batch_size}\n{work.inputs.model_dump_json()}"

    def plots(self, entries: Sequence[Entry], readings: Sequence[OtherReading]) -> tuple[JobPlot, ...]:
        del readings
        return plot_batches(entries)

    def answers(self, entries: Sequence[Entry]) -> list[str]:
        return self.findings(entries)

    def findings(self, entries: Sequence[Entry]) -> list[str]:
        """Return who moves most items, for each model that was run with several batch sizes."""
        told = []
        for model in dict.fromkeys(entry.job.work(ModelWorkload).model for entry in entries):
            mine = [one for one in entries if one.job.work(ModelWorkload).model == model]
            rated = [(found, one) for one in mine if (found := compare.quotable(one, "throughput_per_s")) is not None]
            if len({one.job.work(ModelWorkload).batch_size for _, one in rated}) > 1:
                told.append(_most(model, rated))
        return told


def _inputs(entry: Entry) -> Section | None:
    """Return what the model is, and what it was fed."""
    model = entry.result.model
    rows = tuple(
        (one.name, one.dtype, " × ".join(map(str, one.shape)) or "scalar", one.shape_source, one.values_source)
        for one in entry.result.inputs
    )
    if model is None and not rows:
        return None
    about: tuple[Fact, ...] = ()
    if model is not None:
        types = ", ".join(f"{name} ({count})" for name, count in model.weight_types.items())
        about = (
            ("source", model.source), ("format", model.format), ("size", number.format_observed(model.size_bytes, "B")),
            ("parameters", None if model.parameters is None else f"{model.parameters:,}"),
            ("opset", None if model.opset is None else str(model.opset)), ("weight types", types or None),
            ("files", ", ".join(model.files)), ("sha256", model.sha256),
        )  # fmt: skip
    headings = ("input", "type", "shape", "source of the shape", "source of the values")
    fed = (SectionTable(headings=headings, rows=rows),) if rows else ()
    return Section(title="Model and inputs", facts=about, tables=fed)


def _output_check(check: OutputCheck | None) -> Section | None:
    if check is None:
        return None
    of_range = check.max_error_of_range
    unknown = None if check.compared else "not compared"
    same = "this job is the reference" if check.is_reference else ("yes" if check.compared else "no")
    facts: tuple[Fact, ...] = (
        ("all outputs finite", "yes" if check.finite else "no"), ("outputs", str(check.outputs)),
        ("reference", check.reference), ("compared", same),
        ("largest error", unknown if check.max_abs_error is None else number.format_observed(check.max_abs_error)),
        ("largest error, share of range", unknown if of_range is None else number.format_share(of_range)),
        ("cosine", unknown if check.cosine is None else f"{check.cosine:.6f}"), ("note", check.note or "none"),
    )  # fmt: skip
    return Section(title="Output check", facts=facts)


def _together(entries: Sequence[Entry], samples: dict[str, list[PlottedRun]]) -> Html:
    drawn = (
        ("Median inference.", "The mark is the median of runs, the bar is its interval, the pale dots are the medians "
         "of single runs (grey: excluded). ● valid, ▲ suspect, ✖ void; hollow: no interval.",
         experiment.comparison(entries, samples)),
        ("Cold against warm.", "Loading the model, the first inference after it, and the warm median.",
         experiment.cold_warm(entries)),
        ("Memory by phase.", "Resident memory at the end of each phase, anonymous and file-backed; the tick is "
         "the process after importing the engine, the diamond the kernel's high-water mark.",
         experiment.memory(entries)),
    )  # fmt: skip
    shown = [add_caption(title, text, plot) for title, text, plot in drawn if plot is not None]
    return section("plots", "Plots", *(shown or [tag("p", "No plots: no job has a result.")]))


def _plots(entry: Entry, runs: list[PlottedRun]) -> Html:
    drawn = (
        ("Runs.", "One row per fresh process: its samples, their density and median. Excluded runs are red.",
         job.distribution(entry, runs)),
        ("In order.", "Samples as they were taken, run after run; outliers are circled.",
         job.timeline(entry, runs)),
        (*BESIDE, job.telemetry(entry)),
    )  # fmt: skip
    shown = [add_caption(title, text, plot) for title, text, plot in drawn if plot is not None]
    if not runs and not entry_fields.has_failed(entry):
        shown.append(tag("p", f"Could not read samples in {entry.folder}.", class_="muted"))
    return tag("div", *shown, class_="pair")


def _most(model: str, rated: list[tuple[Estimate, Entry]]) -> str:
    ranked = sorted(rated, key=lambda pair: -pair[0].value)
    best, entry = ranked[0]
    ours = number.interval_of(best)
    tied = []
    for found, one in ranked[1:]:
        theirs = number.interval_of(found)
        if ours is None or theirs is None or theirs[1] >= ours[0]:
            tied.append(entry_fields.label(one))
    begin = f"The highest throughput of {model} is {number.format_number(best)}, with {entry_fields.label(entry)}"
    return f"{begin}; {join_names(tied)} are not measurably different." if tied else f"{begin}."


PART = ModelReport()
