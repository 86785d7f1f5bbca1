"""Render one job as an HTML article: verdict, numbers, plots, details and tables of its runs.

The tables show repetitions, memory, noise, spread and outliers.
"""

from __future__ import annotations

from collections.abc import Mapping

from prony.error_codes import name_job
from prony.model.estimate import Estimate, Grade, Outlier
from prony.model.experiment_data import Entry, ExperimentData
from prony.model.metric import METRICS, key_of
from prony.model.result import Noise, Repetition
from prony.model.section import Section, SectionTable
from prony.ports.metric_titles import metric_title
from prony.ports.workload import shown_kind
from prony.report import entry_fields, number
from prony.report.html.tags import Html, add_caption, fold, grid, join_html, pairs, tag
from prony.report.plots import job

_MOST_OUTLIERS = 50


def repetitions(entry: Entry) -> Html | None:
    rows = [_repetition(one, entry) for one in entry.result.repetitions]
    headings = [
        "run",
        "kind",
        "state",
        "used",
        "began",
        "import",
        "page cache",
        "load",
        "first",
        "measured",
        "warm",
        "stopped by",
        "remarks",
    ]
    return grid(headings, rows, numeric=(0, 5, 6, 7, 8, 9)) if rows else None


def _repetition(one: Repetition, entry: Entry) -> list[str]:
    def took(phase: str) -> str:
        seen = one.phases.get(phase)
        return number.DASH if seen is None else number.format_observed(seen.end_ns - seen.begin_ns, "ns")

    remarks = [
        *one.contamination,
        *([entry.summary.excluded[one.index]] if one.index in entry.summary.excluded else []),
    ]
    if one.failure is not None:
        remarks.append(entry_fields.failure_text(one.failure, entry.job.id))
    measured = one.phases.get("measure")
    return [
        str(one.index), one.kind, one.state, "yes" if one.index in entry.summary.used else "no",
        f"{one.started_at:%H:%M:%S}",
        number.DASH if one.import_ns is None else number.format_observed(one.import_ns, "ns"),
        number.DASH if one.page_cache is None else number.format_share(one.page_cache), took("load"), took("first"),
        number.DASH if measured is None else f"{measured.count} in {took('measure')}",
        {True: "yes", False: "no", None: "unknown"}[one.warm], one.stopped_by or number.DASH,
        "; ".join(remarks) or "none",
    ]  # fmt: skip


def memory(entry: Entry) -> Html | None:
    def size(kib: int | None) -> str:
        return "unknown" if kib is None else number.format_observed(kib, "KiB", 4)

    rows = [
        [str(one.index), name,
         *map(size, (one.baseline_rss_kib, seen.rss_anon_kib, seen.rss_file_kib, seen.rss_peak_kib))]
        for one in entry.result.repetitions
        for name, seen in one.phases.items()
    ]  # fmt: skip
    headings = ["run", "phase", "baseline", "anonymous", "file-backed", "high-water mark"]
    return grid(headings, rows, numeric=(0, 2, 3, 4, 5)) if rows else None


# Readings that are no numbers: the reasons of the verdict say them.
_IN_WORDS = ("busiest", "unwatched")


def noise(entry: Entry) -> Html | None:
    names = [name for name in Noise.model_fields if name not in _IN_WORDS]
    seen = [name for name in names if any(getattr(one.noise, name) is not None for one in entry.result.repetitions)]
    if not seen:
        return None
    rows = [
        [str(one.index), *(_reading(name, getattr(one.noise, name)) for name in seen)]
        for one in entry.result.repetitions
    ]
    return grid(["run", *(name.replace("_", " ") for name in seen)], rows, numeric=range(len(seen) + 1))


def _reading(name: str, value: float | None) -> str:
    if value is None:
        return "unknown"
    return number.format_share(value) if name in {"foreign_cpu", "steal"} else number.format_observed(value)


def spread(entry: Entry) -> Html:
    summary = entry.summary
    told: list[tuple[str, str | None]] = []
    for key, one in summary.spread.items():
        inside = number.format_share(one.icc) if one.icc is not None else "unknown"
        unit = _unit(key)
        name = metric_title(key)
        told.append((f"{name}: standard deviation inside a run", number.format_observed(one.within_sd, unit)))
        told.append((f"{name}: between runs", number.format_observed(one.between_sd, unit)))
        told.append((f"{name}: share of variance between runs", inside))
        if one.best_count is not None:
            told.append((f"{name}: recommended samples in a run", str(one.best_count)))
    for key, seen in summary.sensitivity.items():
        told.append(
            (
                f"{metric_title(key)}: smallest change that {seen.runs} runs on each side can detect",
                number.format_share(seen.detectable),
            )
        )
    steady = ", ".join(
        f"run {run} from sample {at}" if at is not None else f"run {run} never"
        for run, at in summary.steady_from.items()
    )
    told.append(("steady state", steady or None))
    told.append(("outliers", f"{summary.outlier_count}, labelled and kept"))
    rows = [_outlier(one) for one in summary.outliers[:_MOST_OUTLIERS]]
    listed = grid(["run", "sample", "metric", "value", "label"], rows, numeric=(0, 1, 3)) if rows else None
    return join_html((pairs(told), listed))


def _outlier(one: Outlier) -> list[str]:
    place = number.DASH if one.index is None else str(one.index)
    return [
        str(one.repetition),
        place,
        metric_title(one.metric),
        number.format_observed(one.value, _unit(one.metric)),
        one.label,
    ]


def _unit(key: str) -> str:
    name = key_of(key).metric
    return METRICS[name].unit if name in METRICS else "1"


# Drawing costs a good tenth of a second a job; a page of hundreds would open for nobody.
MOST_DRAWN = 24
_MOST_TOLD = 12
BESIDE = ("Beside the run.", "The machine's counters during the measurement.")
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
        reasons = None if len(data.entries) == 1 else _reasons(entry)  # those of a single job stand under the table
        made.append(_article(entry, place, reasons, plots or _telemetry_plot(entry)))
    return made


def _telemetry_plot(entry: Entry) -> Html:
    """Return what the machine's own counters said, where a kind of workload draws nothing of its own."""
    plot = job.telemetry(entry)
    shown = () if plot is None else (add_caption(*BESIDE, plot),)
    return tag("div", *shown, class_="pair")


def _not_drawn() -> Html:
    return tag("p", f"Only the first {MOST_DRAWN} jobs have their own plots, to keep this page small.", class_="muted")


def _reasons(entry: Entry) -> Html | None:
    """Return why a job has its verdict, folded: the notes under the table tell it of all jobs."""
    reasons = [tag("li", _mark(one.grade), name_job(one.text, entry.job.id)) for one in entry.summary.verdict.reasons]
    return fold("Why this verdict", tag("ul", *reasons, class_="notes")) if reasons else None


def _article(entry: Entry, place: int, reasons: Html | None, drawn: Html) -> Html:
    verdict = entry.summary.verdict
    said = entry_fields.verdict_text(verdict.grade, entry.ended_early)
    badge = tag("span", said, class_=f"verdict {verdict.grade}")
    head = tag("header", tag("h3", entry_fields.label(entry)), badge, tag("span", entry.job.id, class_="muted"))
    return tag("article", head, reasons, _failures(entry), _figures(entry), drawn, _behind(entry), id=f"job-{place}")


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
        said = entry_fields.failure_text(why, entry.job.id)
        line = tag("p", tag("b", f"{whose} failed"), f" {said} ", tag("code", why.code))
        blocks.append(tag("div", line, detail, class_="failure"))
    return join_html(blocks)


def _figures(entry: Entry) -> Html | None:
    if shown_kind(entry.job.workload.kind).report.readings:
        return None  # its table of readings has them
    shown = []
    for key in entry_fields.own_keys(entry.summary)[:_MOST_TOLD] or _KEY_FIGURES:
        found = entry_fields.find_estimate(entry.summary, key)
        if found is not None:
            written = number.written(found)
            body = join_html(
                (f"{written.value} {written.unit} ", tag("span", written.interval or _without_ends(found)))
            )
            shown.append(
                tag(
                    "div",
                    tag("dt", metric_title(key)),
                    tag("dd", body, title=number.footnote(found)),
                )
            )
    return tag("dl", *shown, class_="key") if shown else None


def _without_ends(found: Estimate) -> str:
    """Say why a number has no ends beside it: nobody can vouch for any, or it never varied."""
    return "no interval" if number.interval_of(found) is None else "no variation"


def _behind(entry: Entry) -> Html:
    sections = shown_kind(entry.job.workload.kind).report.sections(entry)
    blocks = (
        ("All numbers", _numbers(entry)),
        *((one.title, _section(one)) for one in sections if not one.is_open),
        ("Repetitions", repetitions(entry)),
        ("Memory by phase", memory(entry)),
        ("Noise while measuring", noise(entry)),
        ("Spread, steady state and outliers", spread(entry)),
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
    filled = table.without_empty_columns()
    return grid(filled.headings, filled.rows, numeric=filled.numeric)


def _numbers(entry: Entry) -> Html | None:
    rows: list[list[str]] = []
    for key, found in entry.summary.estimates.items():
        written = number.written(found)
        value = f"{written.value} {written.unit}"
        rows.append([metric_title(key), value, written.interval or _without_ends(found), number.footnote(found), key])
    rows += [
        [metric_title(one.metric), number.DASH, number.DASH, f"{number.missing_text(one)}, had {one.count}", one.metric]
        for one in entry.summary.missing
    ]
    heads = ["metric", "value", "interval", "method, count, confidence", "key"]
    return grid(heads, rows, numeric=(1, 2)) if rows else None
