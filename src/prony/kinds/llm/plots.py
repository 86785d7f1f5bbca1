"""Draw tokens a second over batch, depth and prompt length with the machine's bounds, and quality against speed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from prony.analyse.peaks import find_peak
from prony.kinds.llm.schema import LlmWorkload
from prony.model.estimate import Grade
from prony.model.experiment_data import Entry
from prony.model.job_plot import JobPlot, OtherReading, PlotLine, PlotPoint
from prony.report import entry_fields

# Headlines of hardware tests whose readings bound a model: of memory, and of matrix products.
BOUND_HEADLINES = ("copy_gb_s.p50", "gemm_fp32_tflops.p50", "gemm_bf16_tflops.p50")
_MEMORY = ("read_gb_s.p50", "copy_gb_s.p50", "triad_gb_s.p50", "axpy_gb_s.p50")
_AXES = (
    ("batch", "sequences at the same time", ("decode_tok_s", "prefill_tok_s")),
    ("depth", "tokens in the cache at the start", ("decode_tok_s", "prefill_tok_s")),
    ("prompt", "tokens of the prompt", ("prefill_tok_s",)),
    ("threads", "threads of the engine", ("decode_tok_s", "prefill_tok_s")),
    ("draft_tokens", "tokens guessed for a step", ("decode_tok_s",)),
)
_WORDS = {
    "decode_tok_s": ("Decode", "tokens written per second"), "prefill_tok_s": ("Prefill", "tokens read per second"),
}  # fmt: skip
_NO_BOUND = (
    "No hardware limit is drawn: there is no valid result of prony hardware for this device and "
    "precision, and no published peak is known."
)
_GUESSED = "No hardware limit is drawn: with speculative decoding, one step may write several tokens."
# Of quality the first that two jobs have, and whether less of it is better.
QUALITIES = (
    ("kl_nat.mean", "divergence from the reference, nat", True), ("rouge_1.mean", "ROUGE-1", False),
    ("token_f1.mean", "F1", False), ("label_match.mean", "correct labels", False),
    ("own_score.mean", "own score", False), ("perplexity.mean", "perplexity", True),
)  # fmt: skip
_SETTINGS = (
    "model",
    "engine",
    "unit",
    "precision",
    "kv_type",
    "draft",
    "draft_tokens",
    "threads",
    "batch",
    "depth",
    "prompt",
    "generate",
)


@dataclass(frozen=True)
class _Bound:
    """What the hardware allows: `most` gives tokens a second of a job, and `source` says by whose word."""

    name: str
    source: str
    most: Callable[[Entry], float]


def plot_llm(entries: Sequence[Entry], readings: Sequence[OtherReading]) -> tuple[JobPlot, ...]:
    """Return every picture that these jobs give; none of an axis along which no two of them differ."""
    of_ids = [entry for entry in entries if entry.job.work(LlmWorkload).task is None]
    found = [_plot_axis(of_ids, axis, title, metric, readings) for axis, title, metrics in _AXES for metric in metrics]
    return tuple(one for one in (*found, _plot_quality(entries)) if one is not None)


def _plot_axis(
    entries: Sequence[Entry], axis: str, title: str, metric: str, readings: Sequence[OtherReading]
) -> JobPlot | None:
    groups = group_by_line(entries, axis, metric)
    if not groups:
        return None
    lines, bounds, notes = [], [], []
    for name, mine in groups.items():
        lines.append(PlotLine(name=name, role="line", points=tuple(_point(one, axis, metric) for one in mine)))
        bound = _find_bound(mine[0], metric, readings)
        if bound is not None:
            points = tuple(PlotPoint(x=_axis_reader(axis)(one), y=bound.most(one)) for one in mine)
            bounds.append(PlotLine(name=f"{bound.name}, {name}", role="bound", points=points))
            notes.append(bound.source)
    if len({tuple(one.points) for one in bounds}) == 1:  # the same for every line
        bounds = [bounds[0].model_copy(update={"name": bounds[0].name.partition(", ")[0]})]
    what, unit = _WORDS[metric]
    return JobPlot(
        title=f"{what} over {axis}", x_title=title, y_title=unit, lines=(*lines, *bounds),
        notes=tuple(dict.fromkeys(notes)) or ((_GUESSED if _is_guessed(groups) else _NO_BOUND),),
    )  # fmt: skip


def _is_guessed(groups: Mapping[str, Sequence[Entry]]) -> bool:
    return all(one.job.work(LlmWorkload).draft != "none" for mine in groups.values() for one in mine)


def group_by_line(entries: Sequence[Entry], axis: str, metric: str) -> dict[str, list[Entry]]:
    """Return by the name of each line the jobs that differ along the axis alone, in its order."""
    groups: dict[tuple[str, ...], list[Entry]] = {}
    for entry in (one for one in entries if f"{metric}.p50" in one.summary.estimates):
        groups.setdefault(_setting_values(entry, leave_out=axis), []).append(entry)
    drawn = {key: sorted(mine, key=_axis_reader(axis)) for key, mine in groups.items() if len(mine) > 1}
    if not drawn:
        return {}
    engine = next(iter(drawn.values()))[0].job.work(LlmWorkload).engine
    return dict(zip(entry_fields.name_lines(list(drawn), only=engine), drawn.values(), strict=True))


def _axis_reader(axis: str) -> Callable[[Entry], float]:
    return partial(_read_axis, axis)


def _read_axis(axis: str, entry: Entry) -> float:
    """Return where a job is along an axis; threads that it left to Prony are those that it then used."""
    asked, effective = getattr(entry.job.work(LlmWorkload), axis), entry.result.effective
    return float(asked if asked is not None else effective.threads or 0 if effective is not None else 0)


def _setting_values(entry: Entry, *, leave_out: str) -> tuple[str, ...]:
    """Return what tells the lines of a picture apart: settings, and the device's name."""
    work = entry.job.work(LlmWorkload)
    values = [f"{name} {getattr(work, name)}" for name in _SETTINGS if name != leave_out]
    options = [f"{name} {value}" for name, value in work.options.items()]
    return (entry.environment.device.name, *values, ", ".join(options))


def _point(entry: Entry, axis: str, metric: str) -> PlotPoint:
    one = entry.summary.estimates[f"{metric}.p50"]
    return PlotPoint(
        x=_axis_reader(axis)(entry), y=one.value, y_low=one.low, y_high=one.high, label=entry_fields.label(entry),
        is_void=_is_void(entry),
    )  # fmt: skip


def _is_void(entry: Entry) -> bool:
    return entry.summary.verdict.grade is Grade.VOID


def _find_bound(entry: Entry, metric: str, readings: Sequence[OtherReading]) -> _Bound | None:
    """Return the bound on a rate: memory on writing, arithmetic on reading a prompt."""
    effective = entry.result.effective
    if effective is None or not effective.details.get("parameters"):
        return None
    if metric == "decode_tok_s" and entry.job.work(LlmWorkload).draft != "none":
        return None
    is_writing, product = metric == "decode_tok_s", f"gemm_{effective.precision}_tflops"
    keys, published = (_MEMORY, "copy_gb_s") if is_writing else ((f"{product}.p50",), product)
    found = _find_peak_reading(entry, keys, published, readings)
    if found is None:
        return None
    peak, source = found
    if is_writing:
        cached = (
            " The weights fit into the processor's cache, so the curve may exceed this limit."
            if _fits_cache(entry)
            else ""
        )
        return _Bound("memory allows", source + cached, lambda one: _decode_bound(one, peak))
    each = 2 * int(effective.details["parameters"]) / 1e12
    return _Bound("arithmetic allows", source, lambda _: peak / each)


def _fits_cache(entry: Entry) -> bool:
    """Tell whether a processor need not read the weights from memory at every step."""
    caches = entry.environment.device.hardware.cpu.caches
    largest = caches.get("L3_total_kib") or caches.get("L3_kib") or 0
    told = entry.result.effective.details if entry.result.effective is not None else {}
    return entry.job.work(LlmWorkload).unit == "cpu" and int(told["weights_bytes"]) < largest * 1024


def _decode_bound(entry: Entry, gb_s: float) -> float:
    """Each step reads the weights once, and of every sequence what its cache holds in the mean."""
    work = entry.job.work(LlmWorkload)
    told = entry.result.effective.details if entry.result.effective is not None else {}
    held = work.depth + work.generate / 2
    step = int(told["weights_bytes"]) + held * work.batch * int(told["kv_token_bytes"])
    return work.batch * gb_s * 1e9 / step


def _find_peak_reading(
    entry: Entry, keys: Sequence[str], published: str, readings: Sequence[OtherReading]
) -> tuple[float, str] | None:
    """Return the highest that a hardware test read of this device, or else its published peak; and the source."""
    device = entry.environment.device
    effective = entry.result.effective
    name = effective.device if effective is not None else ""
    cards = {card.name for card in device.hardware.gpus}
    of_machine = [one for one in readings if one.hardware_id == device.hardware_id]
    mine = [one for one in of_machine if one.device == name or not cards & {name, one.device}]
    found = [(one.estimates[key], one.job_id) for one in mine for key in keys if key in one.estimates]
    if found:
        best, job_id = max(found, key=lambda one: one[0].value)
        return best.value, f"{best.value:.3g} {best.unit} were measured on {device.name} by the hardware test {job_id}."
    peak = find_peak(name, published)
    if peak is None:
        return None
    unit = "GB/s" if published == "copy_gb_s" else "TFLOP/s"
    return peak.value, f"{peak.value:g} {unit} is the published peak of {name}: {peak.source}."


def _plot_quality(entries: Sequence[Entry]) -> JobPlot | None:
    """Return quality against speed, where two jobs have both."""
    for key, title, less_is_better in QUALITIES:
        known = [one for one in entries if key in one.summary.estimates and "decode_tok_s.p50" in one.summary.estimates]
        if len(known) < 2:
            continue
        points = [_quality_point(one, key) for one in known]
        front = _front(points, less_is_better=less_is_better)
        lines = [PlotLine(name="configurations", role="points", points=tuple(points))]
        if len(front) > 1:
            lines.append(PlotLine(name="on the front", role="front", points=front))
        better = "lower" if less_is_better else "higher"
        return JobPlot(
            title="Quality against speed", x_title="tokens written per second", y_title=f"{title} ({better} is better)",
            lines=tuple(lines), notes=("Void results are hollow and not on the front.",)
            if any(one.is_void for one in points) else (),
        )  # fmt: skip
    return None


def _quality_point(entry: Entry, key: str) -> PlotPoint:
    speed, quality = entry.summary.estimates["decode_tok_s.p50"], entry.summary.estimates[key]
    return PlotPoint(
        x=speed.value, x_low=speed.low, x_high=speed.high, y=quality.value, y_low=quality.low, y_high=quality.high,
        label=entry_fields.label(entry), is_void=_is_void(entry),
    )  # fmt: skip


def _front(points: Sequence[PlotPoint], *, less_is_better: bool) -> tuple[PlotPoint, ...]:
    """Return those that no other is faster than and at least as good, the slowest first."""
    sign = -1 if less_is_better else 1
    kept: list[PlotPoint] = []
    for one in sorted((one for one in points if not one.is_void), key=lambda one: (-one.x, -sign * one.y)):
        if not kept or sign * one.y > sign * kept[-1].y:
            kept.append(one)
    return tuple(reversed(kept))
