"""Show results of any kind of workload: its columns, sections and programs, and what pages offer of each kind."""

from __future__ import annotations

from collections.abc import Iterable

from prony.model.experiment_data import Entry, ExperimentData
from prony.model.kind_card import KindCard
from prony.model.section import FigureType, JobSections, Section, SectionFigure
from prony.model.shown_results import ShownResults
from prony.model.workload import workload_class
from prony.ports.workload import describe_missing, kind_names, shown_kind
from prony.report.findings import answers
from prony.report.result_columns import result_columns

_FIGURE_TITLES: dict[FigureType, str] = {
    "distribution": "Distribution",
    "timeline": "Over time",
    "starts": "Cold and warm starts",
    "lines": "Step by step",
}


def show_results(data: ExperimentData) -> ShownResults:
    """Return the results with their columns, programs and exports, as the kinds of their jobs say."""
    kinds = dict.fromkeys(entry.job.workload.kind for entry in data.entries)
    exports = [one for name in kinds for one in shown_kind(name).report.exports(data.experiment.recipe)]
    fields = {name: getattr(data, name) for name in ExperimentData.model_fields}
    return ShownResults.model_construct(
        **fields,
        answers=tuple(answers(data)),
        columns=result_columns(data),
        programs={one.job.id: shown_kind(one.job.workload.kind).report.programs(one) for one in data.entries},
        exports=tuple(dict.fromkeys(exports)),
    )


def job_sections(entry: Entry) -> JobSections:
    """Return the sections of one job: the figures of its samples, and what its kind says beside its numbers."""
    kind = shown_kind(entry.job.workload.kind)
    figures = tuple(SectionFigure(type=one, title=_FIGURE_TITLES[one]) for one in kind.summary.figures)
    samples = (Section(title="Samples", figures=figures),) if figures else ()
    return JobSections(
        job_id=entry.job.id,
        title=entry.job.title,
        kind=entry.job.workload.kind,
        sections=(*samples, *kind.report.sections(entry)),
    )


def kind_cards(stored: Iterable[str] = ()) -> tuple[KindCard, ...]:
    """Return a card for every kind that is installed, and for those that only stored experiments have."""
    # First what every agent runs.
    installed = sorted(kind_names(), key=lambda name: not workload_class(name).is_allowed_by_default)
    missing = sorted(set(stored) - set(installed))
    return (
        *(_card(name) for name in installed),
        *(KindCard(name=name, is_installed=False, note=describe_missing(name)) for name in missing),
    )


def _card(name: str) -> KindCard:
    report = shown_kind(name).report
    has_load = workload_class(name).section == "load"
    return KindCard(name=name, has_load=has_load, example=report.example)
