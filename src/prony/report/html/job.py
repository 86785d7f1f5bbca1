"""One entry in, its article out: the verdict's reasons, its numbers and plots, and everything behind them."""

from __future__ import annotations

from prony.model.estimate import Grade
from prony.model.experiment_data import Entry, ExperimentData
from prony.model.metric import METRICS, key_of
from prony.model.recipe import ModelWorkload
from prony.model.result import OutputCheck, ScriptFacts
from prony.model.script import ScriptWorkload
from prony.report import entry_fields, number, script_curves
from prony.report.html import load as html_load
from prony.report.html import runs as html_runs
from prony.report.html.tags import Html, add_caption, fold, grid, join_html, pairs, tag
from prony.report.plots import job
from prony.report.plots.load_series import LoadRun
from prony.report.plots.series import Run

# Drawing costs a good tenth of a second a job; a page of hundreds would open for nobody.
MOST_DRAWN = 24
_MOST_TOLD = 12
_KEY_FIGURES = (
    "inference_ms.p50", "e2e_ms.p50", "throughput_per_s", "ttft_ms.p50", "itl_ms.p50", "load_ms", "first_inference_ms",
    "cold_start_ms", "memory_mib",
)  # fmt: skip


def articles(dossier: ExperimentData, samples: dict[str, list[Run]], loaded: dict[str, list[LoadRun]]) -> list[Html]:
    """Return one article a job, in the order of the table."""
    if not dossier.entries:
        return [tag("p", "No job has a result yet.")]
    made = []
    for place, entry in enumerate(dossier.entries):
        if place >= MOST_DRAWN:
            drawn = _not_drawn()
        elif entry.job.workload.kind == "script":
            drawn = _beside(entry)
        elif entry_fields.is_load(entry):
            drawn = _load_plots(entry, loaded.get(entry.job.id, []))
        else:
            drawn = _plots(entry, samples.get(entry.job.id, []))
        made.append(_article(entry, place, drawn))
    return made


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


def _beside(entry: Entry) -> Html:
    drawn = (
        ("Step by step.", "What was told at each step: a line for each run, a colour for each set of labels and rank.",
         script_curves.over_steps(entry, script_curves.curves(entry))),
        ("Beside the run.", "What the machine's own counters said meanwhile.", job.telemetry(entry)),
    )  # fmt: skip
    return tag(
        "div", *(add_caption(title, text, plot) for title, text, plot in drawn if plot is not None), class_="pair"
    )


def _plots(entry: Entry, runs: list[Run]) -> Html:
    drawn = (
        ("Runs.", "One row a fresh process: its samples, their density and its median. A run that was left out is red.",
         job.distribution(entry, runs)),
        ("In order.", "Samples as they were taken, run after run; outliers are circled.",
         job.timeline(entry, runs)),
        ("Beside the run.", "What the machine's own counters said meanwhile.", job.telemetry(entry)),
    )  # fmt: skip
    shown = [add_caption(title, text, plot) for title, text, plot in drawn if plot is not None]
    if not runs and not entry_fields.has_failed(entry):
        shown.append(tag("p", f"No samples could be read in {entry.folder}.", class_="muted"))
    return tag("div", *shown, class_="pair")


def _load_plots(entry: Entry, runs: list[LoadRun]) -> Html:
    beside = job.telemetry(entry)
    shown = html_load.job_plots(entry, runs)
    if beside is not None:
        shown.append(add_caption("Beside the run.", "What the machine's own counters said meanwhile.", beside))
    if not runs and not entry_fields.has_failed(entry):
        shown.append(tag("p", f"No requests could be read in {entry.folder}.", class_="muted"))
    return join_html((tag("div", *shown, class_="pair"), html_load.job_tables(entry)))


def _behind(entry: Entry) -> Html:
    blocks = (
        ("All numbers", _numbers(entry)),
        ("Settings asked for and effective", _settings(entry)),
        ("Model and inputs", _inputs(entry)),
        ("Output check", _check(entry.result.check)),
        ("Repetitions", html_runs.repetitions(entry)),
        ("Memory by phase", html_runs.memory(entry)),
        ("Noise while measuring", html_runs.noise(entry)),
        ("Spread, steady state and outliers", html_runs.spread(entry)),
    )
    return join_html(fold(title, block) for title, block in blocks if block is not None)


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


def _settings(entry: Entry) -> Html:
    asked, effective = entry.job.workload, entry.result.effective
    if isinstance(asked, ScriptWorkload):
        return _script_settings(asked, entry.result.script)
    if not isinstance(asked, ModelWorkload):
        return _load_settings(entry)
    told: list[tuple[str, str | None]] = [
        ("engine asked for", asked.engine),
        ("unit asked for", asked.unit),
        ("batch size", str(asked.batch_size)),
        ("threads asked for", str(asked.threads) if asked.threads else "default"),
        ("precision asked for", asked.precision),
    ]
    told += [(f"option {name}", str(value)) for name, value in asked.options.items()]
    if effective is not None:
        coverage = ", ".join(f"{name} {number.share(value)}" for name, value in effective.provider_coverage.items())
        told += [
            ("effective engine", f"{effective.engine} {effective.engine_version}"),
            ("effective device", effective.device),
            ("effective precision", effective.precision),
            ("effective threads", None if effective.threads is None else str(effective.threads)),
            ("interpreter", effective.python),
            ("nodes by provider", coverage or None),
        ]
        told += list(effective.details.items())
    return pairs(told)


def _script_settings(asked: ScriptWorkload, did: ScriptFacts | None) -> Html:
    """Return what was executed; values of variables may be secret and are left out."""
    launch = asked.launch
    told: list[tuple[str, str | None]] = [
        ("command asked for", asked.subject), ("directory", asked.directory), ("image", asked.image),
        ("variables", ", ".join(asked.environment) or None),
        ("launch", f"{launch.kind}, {launch.processes} processes on {launch.nodes} nodes"),
        ("reduced by", asked.reduce),
    ]  # fmt: skip
    if did is not None:
        told += [("command", " ".join(did.command)), ("program", did.program or None)]
        told += [("folder's checksum", did.directory or None), ("launcher", did.launcher or None)]
        told += [("nodes", ", ".join(did.nodes) or None)]
        told += [("not honoured", note) for note in did.notes]
    return pairs(told)


def _load_settings(entry: Entry) -> Html:
    """Return what was loaded and how, as the recipe says; secrets are names of variables there, never values."""
    work, load = entry.job.service, entry.job.load
    told: list[tuple[str, str | None]] = [("service", work.service), ("endpoint", work.endpoint)]
    told += [("driver", work.driver), ("task", work.task)]
    for word, options in (("setting", work.settings), ("option", work.options), ("prompts", work.prompts)):
        told += [(f"{word} {name}", str(value)) for name, value in options.items()]
    written = load.model_dump(mode="json", exclude_defaults=True)
    told += [(f"load {name}", str(value)) for name, value in (written or {"closed": "one user"}).items()]
    return pairs(told)


def _inputs(entry: Entry) -> Html | None:
    model = entry.result.model
    about = None
    if model is not None:
        types = ", ".join(f"{name} ({count})" for name, count in model.weight_types.items())
        about = pairs([
            ("source", model.source), ("format", model.format), ("size", number.plain(model.size_bytes, "B")),
            ("parameters", None if model.parameters is None else f"{model.parameters:,}"),
            ("opset", None if model.opset is None else str(model.opset)), ("weight types", types or None),
            ("files", ", ".join(model.files)), ("sha256", model.sha256),
        ])  # fmt: skip
    rows = [[one.name, one.dtype, " × ".join(map(str, one.shape)) or "scalar", one.shape_source, one.values_source]
            for one in entry.result.inputs]  # fmt: skip
    fed = (
        grid(["input", "type", "shape", "where the shape came from", "where the values came from"], rows)
        if rows
        else None
    )
    return join_html((about, fed)) if about or fed else None


def _check(check: OutputCheck | None) -> Html | None:
    if check is None:
        return None
    of_range = check.max_error_of_range
    unknown = None if check.compared else "not compared"
    same = "this job is the reference" if check.is_reference else ("yes" if check.compared else "no")
    return pairs([
        ("all outputs finite", "yes" if check.finite else "no"), ("outputs", str(check.outputs)),
        ("reference", check.reference), ("compared with it", same),
        ("largest error", unknown if check.max_abs_error is None else number.plain(check.max_abs_error)),
        ("largest error of range", unknown if of_range is None else number.share(of_range)),
        ("cosine", unknown if check.cosine is None else f"{check.cosine:.6f}"), ("note", check.note or "none"),
    ])  # fmt: skip
