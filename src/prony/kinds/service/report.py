"""Show a load: what was asked for, its requests, and the sentences on what went through."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from prony.kinds.service.schema import ServiceWorkload
from prony.model.experiment_data import Entry, ExperimentData
from prony.model.section import Section
from prony.ports.workload import SETTINGS, Drawings, Report, ReportPage
from prony.report import entry_fields
from prony.report.html import load as html_load
from prony.report.html.job import BESIDE
from prony.report.html.method import HOW_LOAD
from prony.report.html.tags import Html, add_caption, join_html, tag
from prony.report.load_tables import load_findings
from prony.report.plots import job
from prony.report.plots.load_series import LoadRun


class ServiceReport(Report):
    """What reports show of loads."""

    method = HOW_LOAD

    def sections(self, entry: Entry) -> tuple[Section, ...]:
        """Return what was loaded and how, as the recipe says; secrets are names of variables there, never values."""
        work, load = entry.job.work(ServiceWorkload), entry.job.load
        told: list[tuple[str, str | None]] = [("service", work.service), ("endpoint", work.endpoint)]
        told += [("driver", work.driver), ("task", work.task)]
        for word, options in (("setting", work.settings), ("option", work.options), ("prompts", work.prompts)):
            told += [(f"{word} {name}", str(value)) for name, value in options.items()]
        written = load.model_dump(mode="json", exclude_defaults=True)
        told += [(f"load {name}", str(value)) for name, value in (written or {"closed": "one user"}).items()]
        return (Section(title=SETTINGS, facts=tuple(told)),)

    def draw(self, data: ExperimentData, apart: Collection[str]) -> Drawings:
        loaded = html_load.load_samples(data)
        section = html_load.load_section(data, loaded)
        pages = () if section is None else (ReportPage("loads", "Load", section, is_before_results=True),)
        mine = [entry for entry in data.entries if entry.job.id in apart]
        return Drawings(pages, {one.job.id: _load_plots(one, loaded.get(one.job.id, [])) for one in mine})

    def same_work(self, entry: Entry) -> str:
        """A load is another one where anything of it differs but where it goes."""
        work = entry.job.work(ServiceWorkload)
        return work.model_dump_json(exclude={"endpoint", "service", "settings"}) + entry.job.load.model_dump_json()

    def findings(self, entries: Sequence[Entry]) -> list[str]:
        return load_findings(entries)


def _load_plots(entry: Entry, runs: list[LoadRun]) -> Html:
    beside = job.telemetry(entry)
    shown = html_load.job_plots(entry, runs)
    if beside is not None:
        shown.append(add_caption(*BESIDE, beside))
    if not runs and not entry_fields.has_failed(entry):
        shown.append(tag("p", f"No requests could be read in {entry.folder}.", class_="muted"))
    return join_html((tag("div", *shown, class_="pair"), html_load.job_tables(entry)))


PART = ServiceReport()
