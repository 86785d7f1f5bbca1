"""Rules that only hold of a model: are its answers right, and by what was it computed; and its verdict by all rules."""

from __future__ import annotations

import math
from collections.abc import Iterator

from prony.analyse import external_results, rules
from prony.analyse import rules as repetition
from prony.analyse import rules as steadiness
from prony.analyse.canaries import check_canary
from prony.analyse.external_results import reporter_of
from prony.analyse.verdict import Evidence, Rule, note, percent, suspect, verdict_of, void
from prony.kinds.model.device_rules import DEVICE_RULES
from prony.kinds.model.schema import ModelWorkload
from prony.model.estimate import Reason, Verdict
from prony.model.result import OutputCheck

_DIFFERENT = 1e-2
_VISIBLE = 1e-3
_LEAST_COSINE = 0.999
_SAME = {
    "fp32": ("fp32", "f32", "float32", "float"),
    "fp16": ("fp16", "f16", "float16", "half"),
    "bf16": ("bf16", "bfloat16"),
    "int8": ("int8", "i8", "uint8", "u8"),
    "fp64": ("fp64", "f64", "float64", "double"),
}
_NAMES = {alias: name for name, aliases in _SAME.items() for alias in aliases}


def not_finite(evidence: Evidence) -> Iterator[Reason]:
    """A model that answers NaN was not measured at work."""
    check = evidence.result.check
    if check is not None and not check.finite:
        yield void(
            "not_finite",
            "The outputs contain values that are not finite. Check how the model was converted, or use a higher "
            "precision.",
        )


def different_answer(evidence: Evidence) -> Iterator[Reason]:
    """Outputs against the float32 reference."""
    check = evidence.result.check
    if check is not None and check.is_reference:
        return
    if check is None or not check.compared:
        if evidence.runs:
            yield note("not_compared", _why_not_compared(evidence, check))
        return
    error, cosine = check.max_error_of_range, check.cosine
    off = f"its outputs differ from {check.reference} by {_error_text(check)}"
    precision = evidence.result.effective.precision if evidence.result.effective else "unknown"
    if _beyond(error, _DIFFERENT) or (cosine is not None and not cosine >= _LEAST_COSINE):
        yield suspect(
            "different_answer", f"Different answers: {off} (precision {precision}). Check how the model was converted."
        )
    elif _beyond(error, _VISIBLE):
        yield note("precision_visible", f"In precision {precision} {off}.")


def _other_precision(evidence: Evidence) -> Iterator[Reason]:
    """The engine computes in another precision than was asked for, or than the file holds."""
    effective = evidence.result.effective
    ran = _NAMES.get(effective.precision.lower()) if effective else None
    if effective is None or ran is None:
        return
    asked = evidence.job.work(ModelWorkload).precision
    if asked not in ("default", ran):
        yield suspect(
            "precision", f"The recipe requests {asked}, but {effective.engine} computed in {effective.precision}."
        )
    elif asked == "default" and (held := _file_precision(evidence)) is not None and held != ran:
        yield note(
            "precision",
            f"The file has {held} weights, but {effective.engine} chose to compute in {effective.precision}.",
        )


def _why_not_compared(evidence: Evidence, check: OutputCheck | None) -> str:
    if not evidence.job.measure.check:
        return "The recipe turned off the check of the outputs."
    reason = f": {check.note}" if check is not None and check.note else ""
    return f"The outputs were not compared with a float32 reference{reason}."


def _beyond(error: float | None, limit: float) -> bool:
    """Say whether the error is over the limit; one that is not a number is."""
    return error is not None and not error <= limit


def _error_text(check: OutputCheck) -> str:
    error, cosine = check.max_error_of_range, check.cosine
    shares = [] if error is None or math.isnan(error) else [f"up to {percent(error)} of their range"]
    return ", ".join([*shares, *([] if cosine is None else [f"cosine {cosine:.6f}"])]) or "an unknown amount"


def _file_precision(evidence: Evidence) -> str | None:
    """Return the precision that most of the floating or integer weights are stored in, where the file tells."""
    held: dict[str, int] = {}
    for name, count in (evidence.result.model.weight_types if evidence.result.model else {}).items():
        if name.lower() in _NAMES:
            held[_NAMES[name.lower()]] = held.get(_NAMES[name.lower()], 0) + count
    return max(held, key=lambda name: (held[name], name)) if held else None


def _unit_unverified(evidence: Evidence) -> Iterator[Reason]:
    """A worker may compute elsewhere than it was asked to, and report success."""
    if (who := reporter_of(evidence)) is not None:
        unit = evidence.job.work(ModelWorkload).unit
        yield suspect(
            "unit_not_verified", f"The report of {who} does not say which device computed; {unit} was requested."
        )


RULES: tuple[Rule, ...] = (
    repetition.nothing_measured,
    not_finite,
    external_results.no_samples,
    external_results.warmup_unknown,
    _unit_unverified,
    external_results.machine_unwatched,
    rules.check_contamination,
    rules.check_watch,
    rules.check_counters,
    check_canary,
    different_answer,
    repetition.failed_repetitions,
    repetition.partial_result,
    repetition.few_runs,
    steadiness.no_steady_state,
    steadiness.never_warm,
    repetition.wide_interval,
    rules.check_throttling,
    rules.too_short_for_the_clock,
    _other_precision,
    steadiness.steadiness_unjudged,
    steadiness.stopped_by_time,
    steadiness.page_cache_mixed,
    repetition.until_reached,
    repetition.missing_intervals,
    repetition.blind,
    *DEVICE_RULES,
)


def judge_model(evidence: Evidence) -> Verdict:
    """Return the verdict with its reasons, the worst first; reasons of grade valid are notes."""
    return verdict_of(reason for rule in RULES for reason in rule(evidence))
