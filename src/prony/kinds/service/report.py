"""Show a load: what was asked for, its requests, and the sentences on what went through."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from prony.kinds.service.result_sections import result_sections
from prony.kinds.service.schema import ServiceWorkload
from prony.model.check import Named
from prony.model.experiment_data import Entry, ExperimentData
from prony.model.kind_card import FormField, KindForm
from prony.model.recipe import Recipe
from prony.model.section import ColumnSpec, Fact, Section
from prony.ports.workload import SETTINGS, Drawings, Report, ReportPage
from prony.report import entry_fields
from prony.report.answer_sections import answer_sections
from prony.report.html import load as html_load
from prony.report.html.job import BESIDE
from prony.report.html.method import HOW_LOAD
from prony.report.html.tags import Html, add_caption, tag
from prony.report.load_tables import load_findings
from prony.report.plots import job
from prony.report.plots.load_series import LoadRun

EXPORTED = (
    Named(name="requests-jsonl", about="every request as a line of JSON"),
    Named(name="csv", about="every request as a row of CSV"),
    Named(name="hdr", about="latencies for HdrHistogram's tools"),
    Named(name="mlperf", about="the two logs of MLPerf's load generator"),
)
FORM = KindForm(
    label="a server under load",
    name="my-endpoint",
    fields=(
        FormField(path="workload.endpoint", label="Address", value="http://127.0.0.1:8000"),
        FormField(path="workload.driver", label="Driver", value="openai-chat", is_choice=True),
        FormField(
            path="load.closed.concurrency", label="Users at once", value="1, 2, 4, 8", help="several make a sweep",
            takes_several=True, is_text=False,
        ),
        FormField(path="load.duration", label="Duration", value="30s", is_text=False),
        FormField(path="load.repeats", label="Runs", value="5", is_text=False),
    ),
)  # fmt: skip


class ServiceReport(Report):
    """What reports show of loads."""

    columns = (
        ColumnSpec("rouge_1.mean", "ROUGE-1", 90),
        ColumnSpec("rouge_2.mean", "ROUGE-2", 56),
        ColumnSpec("rouge_l.mean", "ROUGE-L", 72),
        ColumnSpec("rouge_lsum.mean", "ROUGE-Lsum", 52),
        ColumnSpec("exact_match.mean", "exact match", 73),
        ColumnSpec("token_f1.mean", "F1", 90),
        ColumnSpec("label_match.mean", "accuracy", 90),
        ColumnSpec("token_nll.mean", "nat per token", 90),
        ColumnSpec("bits_per_byte.mean", "bits per byte", 89),
        ColumnSpec("own_score.mean", "own score", 91),
    )
    method = HOW_LOAD
    form = FORM
    example = "llm-endpoint.yaml"

    def sections(self, entry: Entry) -> tuple[Section, ...]:
        """Return what was loaded and how, as the recipe says; secrets are names of variables there, never values."""
        work, load = entry.job.work(ServiceWorkload), entry.job.load
        told: list[tuple[str, str | None]] = [("service", work.service), ("endpoint", work.endpoint)]
        told += [("driver", work.driver), ("task", work.task)]
        told += [("restart", work.restart if work.restart != "auto" else None)]
        for word, options in (("setting", work.settings), ("option", work.options), ("prompts", work.prompts)):
            told += [(f"{word} {name}", str(value)) for name, value in options.items()]
        written = load.model_dump(mode="json", exclude_defaults=True)
        # A closed load that says nothing has one user.
        said = {name: "one user" if value == {} else str(value) for name, value in (written or {"closed": {}}).items()}
        told += [(f"load {name}", value) for name, value in said.items()]
        notes = entry.result.service.notes if entry.result.service is not None else {}
        answers = answer_sections(entry, work.task, work.prompts, notes)
        return (*result_sections(entry), *answers, Section(title=SETTINGS, facts=tuple(told)))

    def programs(self, entry: Entry) -> tuple[Fact, ...]:
        found = entry.result.service
        if found is None:
            return ()
        told = (("Service", f"{found.name} {found.version}".strip()), ("Endpoint", found.endpoint))
        return tuple((name, value) for name, value in told if value)

    def exports(self, recipe: Recipe) -> tuple[Named, ...]:
        """MLPerf's logs are of its own scenarios, and of no other load."""
        return tuple(one for one in EXPORTED if one.name != "mlperf" or recipe.load.mlperf is not None)

    def draw(self, data: ExperimentData, apart: Collection[str]) -> Drawings:
        loaded = html_load.load_samples(data)
        section = html_load.load_section(data, loaded)
        pages = () if section is None else (ReportPage("loads", "Load", section, is_before_results=True),)
        mine = [entry for entry in data.entries if entry.job.id in apart]
        return Drawings(pages, {one.job.id: _load_plots(one, loaded.get(one.job.id, [])) for one in mine})

    def same_work(self, entry: Entry) -> str:
        """A load is another one where anything of it differs but where it goes."""
        work = entry.job.work(ServiceWorkload)
        return (
            work.model_dump_json(exclude={"endpoint", "service", "settings", "restart"})
            + entry.job.load.model_dump_json()
        )

    def findings(self, entries: Sequence[Entry]) -> list[str]:
        silent = [(entry.job.title, entry.result.service.notes["scorer"]) for entry in entries
                  if entry.result.service is not None and "scorer" in entry.result.service.notes]  # fmt: skip
        return load_findings(entries) + [f"{title}: {said}." for title, said in silent]


def _load_plots(entry: Entry, runs: list[LoadRun]) -> Html:
    beside = job.telemetry(entry)
    shown = html_load.job_plots(entry, runs)
    if beside is not None:
        shown.append(add_caption(*BESIDE, beside))
    if not runs and not entry_fields.has_failed(entry):
        shown.append(tag("p", f"Could not read requests in {entry.folder}.", class_="muted"))
    return tag("div", *shown, class_="pair")


PART = ServiceReport()
