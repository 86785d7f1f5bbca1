"""Render one job as an HTML article: verdict, numbers, plots and details."""

from __future__ import annotations

from collections.abc import Mapping

from prony.model.estimate import Grade
from prony.model.experiment_data import Entry, ExperimentData
from prony.model.metric import METRICS, key_of
from prony.model.section import Section, SectionTable
from prony.ports.workload import shown_kind
from prony.report import entry_fields, number
from prony.report.html import runs as html_runs
from prony.report.html.tags import Html, add_caption, fold, grid, join_html, pairs, tag
from prony.report.plots import job

# Drawing costs a good tenth of a second a job; a page of hundreds would open for nobody.
MOST_DRAWN = 24
_MOST_TOLD = 12
BESIDE = ("Beside the run.", "What the machine's own counters said meanwhile.")
_KEY_FIGURES = (
    "inference_ms.p50", "e2e_ms.p50", "throughput_per_s", "ttft_ms.p50", "itl_ms.p50", "load_ms", "first_inference_ms",
    "cold_start_ms", "memory_mib",
)  # fmt: skip


def articles(data: ExperimentData, drawn: Mapping[str, Html]) -> list[Html]:
    """Return one article a job, in the order of the table, with what is drawn of it alone."""
    if not data.entries:
        return [tag("p", "No job has a result yet.")]
    made = []
    for place, entry in enumerate(data.entries):
        plots = drawn.get(entry.job.id) if place < MOST_DRAWN else _not_drawn()
        made.append(_article(entry, place, plots or telemetry_plot(entry)))
    return made


def telemetry_plot(entry: Entry) -> Html:
    """Return what the machine's own counters said, where a kind of workload draws nothing of its own."""
    plot = job.telemetry(entry)
    shown = () if plot is None else (add_caption(*BESIDE, plot),)
    return tag("div", *shown, class_="pair")


def _not_drawn() -> Html:
    return tag("p", f"Only the first {MOST_DRAWN} jobs are drawn one by one, to keep this page light.", class_="muted")


def _article(entry: Entry, place: int, drawn: Html) -> Html:
    verdict = entry.summary.verdict
    said = entry_fields.verdict_text(verdict.grade, entry.ended_early)
    badge = tag("span", said, class_=f"verdict {verdict.grade}")
    head = tag("header", tag("h3", entry_fields.label(entry)), badge, tag("span", entry.job.id, class_="muted"))
    reasons = [tag("li", _mark(one.grade), one.text) for one in verdict.reasons]
    listed = tag("ul", *reasons, class_="notes") if reasons else None
    return tag("article", head, listed, _failures(entry), _figures(entry), drawn, _behind(entry), id=f"job-{place}")


def _mark(grade: Grade) -> Html:
    """Return the sign of a reason; one of grade valid explains and does not judge."""
    if grade is Grade.VALID:
        return tag("span", "·", class_="mark muted")
    return tag("span", entry_fields.SYMBOLS[grade], class_=f"mark {grade}")


def _failures(entry: Entry) -> Html | None:
    found = entry_fields.failures(entry)
    if not found:
        return None
    blocks = []
    for repetition, why in found:
        # What ended the whole job has usually ended a run first: once is enough.
        if repetition is not None and why == entry.result.failure:
            continue
        whose = "The job" if repetition is None else f"Run {repetition.index}"
        detail = tag("details", tag("summary", "its last words"), tag("pre", why.detail)) if why.detail else None
        blocks.append(tag("div", tag("p", tag("b", f"{whose} failed"), f" {entry_fields.failure_text(why)} ",
                                     tag("code", why.code)), detail, class_="failure"))  # fmt: skip
    return join_html(blocks)


def _figures(entry: Entry) -> Html | None:
    shown = []
    for key in entry_fields.own_keys(entry.summary)[:_MOST_TOLD] or _KEY_FIGURES:
        found = entry_fields.estimate(entry.summary, key)
        if found is not None:
            written = number.written(found)
            body = join_html((f"{written.value} {written.unit} ", tag("span", written.interval or "no interval")))
            name = _metric_name(entry, key)
            shown.append(
                tag(
                    "div",
                    tag("dt", f"{name}{' p50' if key.endswith('p50') else ''}"),
                    tag("dd", body, title=number.footnote(found)),
                )
            )
    return tag("dl", *shown, class_="key") if shown else None


def _metric_name(entry: Entry, key: str) -> str:
    """Return a metric's name without its unit; what a script calls its own stays as it is."""
    parts = key_of(key)
    if parts.metric in entry.summary.metrics:
        return f"{parts.metric} {parts.operation}".strip()
    return METRICS[parts.metric].name.rsplit("_", 1)[0].replace("_", " ").removesuffix(" per")


def _behind(entry: Entry) -> Html:
    sections = shown_kind(entry.job.workload.kind).report.sections(entry)
    blocks = (
        ("All numbers", _numbers(entry)),
        *((one.title, _section(one)) for one in sections if not one.is_open),
        ("Repetitions", html_runs.repetitions(entry)),
        ("Memory by phase", html_runs.memory(entry)),
        ("Noise while measuring", html_runs.noise(entry)),
        ("Spread, steady state and outliers", html_runs.spread(entry)),
    )
    shown = [join_html((tag("h4", one.title), _section(one))) for one in sections if one.is_open]
    return join_html((*shown, *(fold(title, block) for title, block in blocks if block is not None)))


def _section(one: Section) -> Html:
    tables = [
        join_html((tag("h4", table.title) if table.title else None, _table(table)))
        for table in one.tables
        if table.rows
    ]
    note = tag("p", one.note) if one.note else None
    return join_html((note, pairs(one.facts) if one.facts else None, *tables))


def _table(table: SectionTable) -> Html:
    return grid(table.headings, table.rows, numeric=table.numeric)


def _numbers(entry: Entry) -> Html | None:
    rows: list[list[str]] = []
    for key, found in entry.summary.estimates.items():
        written = number.written(found)
        rows.append([key, f"{written.value} {written.unit}", written.interval or "none", number.footnote(found)])
    rows += [
        [one.metric, number.DASH, number.DASH, f"{number.missing_text(one)}, had {one.count}"]
        for one in entry.summary.missing
    ]
    return grid(["metric", "value", "interval", "method, count, confidence"], rows, numeric=(1, 2)) if rows else None
