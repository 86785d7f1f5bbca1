"""Judge gates by intervals: pass or fail only when the whole interval lies on one side of the limit."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from prony.analyse.clean_runs import CleanWorsening
from prony.analyse.doubt import explains, machine_doubt, suspected_cause, what_to_do
from prony.analyse.wording import is_of_one_run, no_interval_reason, plain_number, plain_quantity
from prony.model.estimate import Estimate, Grade, Missing, Summary, Verdict, verdict_on
from prony.model.gate import Gate, GateOutcome, GateState, parse_gate
from prony.model.metric import key_of, key_text
from prony.ports.metric_titles import metric_title

# By how much a metric of this job got worse since its reference (0.03 is 3 %), or why nobody can say.
Worsening = Callable[[str], Estimate | str]
ByCleanRuns = Callable[[str], CleanWorsening | None]
# Statistics that describe the runs that were made: there is nothing that an interval would be of.
_DESCRIPTIVE = ("min", "max", "sd")
_MOST_RUNS = 10_000
Judged = tuple[GateState, str]


def judge_gates(
    gates: Sequence[str], summary: Summary, worsening: Worsening, *, failed: bool = False,
    by_clean: ByCleanRuns = lambda _: None,
) -> tuple[GateOutcome, ...]:  # fmt: skip
    """Judge every gate on one job; `failed`: the job has no numbers, and that passes no gate.

    `by_clean`: what the undisturbed runs alone say of a regression, where some were disturbed.
    """
    own = {name: metric.unit for name, metric in summary.metrics.items()}
    outcomes = (_outcome(parse_gate(text, own), summary, worsening, failed=failed) for text in gates)
    return tuple(_fail_by_clean(one, parse_gate(one.gate, own), by_clean) for one in outcomes)


def _fail_by_clean(outcome: GateOutcome, gate: Gate, by_clean: ByCleanRuns) -> GateOutcome:
    """Let a regression fail that cannot be told by all runs, and is plain by the undisturbed ones."""
    if gate.kind != "regression" or outcome.state is not GateState.CANNOT_TELL:
        return outcome
    found = by_clean(gate.key)
    if found is None or not found.is_plain() or found.least - 1 <= gate.limit:
        return outcome
    text = f"{metric_title(gate.key)} got worse: {found.text}. Disturbed runs are excluded."
    return outcome.model_copy(update={"state": GateState.FAILED, "text": text})


def _outcome(gate: Gate, summary: Summary, worsening: Worsening, *, failed: bool) -> GateOutcome:
    estimate: Estimate | None = None
    name = metric_title(gate.key)
    if failed:
        state, text = GateState.FAILED, "The job failed, so it has no value to check."
    elif gate.kind == "verdict":
        state, text = _verdict(gate, summary)
    elif (verdict := verdict_on(summary, gate.key)).grade is Grade.VOID:
        state, text = (
            GateState.CANNOT_TELL,
            f"The measurement is void: {name} is not judged. {_why(verdict)}",
        )
    elif gate.kind == "regression":
        found = worsening(gate.key)
        if isinstance(found, str):
            state, text = GateState.CANNOT_TELL, found
        else:
            estimate = found
            state, text = _judge_bound(gate, found, *_change(gate, found, name))
            state, text = _doubt(state, text, summary, gate, _ratios(found, add=1.0))
    else:
        estimate = summary.estimates.get(gate.key)
        if estimate is None:
            state, text = _absent(gate, summary)
        else:
            number = f"{name} is {_format_estimate(estimate)}"
            state, text = _judge_bound(gate, estimate, number, _bound(gate, estimate))
            state, text = _doubt(state, text, summary, gate, _ratios(estimate, by=gate.limit))
    limit = None if gate.kind == "verdict" else gate.limit
    return GateOutcome(
        gate=gate.text, job_id=summary.job_id, title=summary.title, state=state, estimate=estimate, limit=limit,
        text=text.strip(),
    )  # fmt: skip


Ratios = tuple[float | None, float | None]


def _doubt(state: GateState, text: str, summary: Summary, gate: Gate, ratios: Ratios) -> Judged:
    """Let a number that the machine may have made bad fail nothing by itself, and say what to do."""
    if state is not GateState.FAILED or not explains(*ratios):
        return state, text
    reason = machine_doubt(summary, gate.key, of_change=gate.kind == "regression")
    if reason is None:
        return state, text
    doubt = f"But {suspected_cause(reason)} may be the cause: {reason.text} {what_to_do(reason)}."
    return GateState.CANNOT_TELL, f"{text} {doubt}"


def _ratios(found: Estimate, *, by: float = 1.0, add: float = 0.0) -> Ratios:
    """Return the interval as ratios to a limit, or of a share that was gained (`add`) to what there was before."""
    if found.low is None or found.high is None or by <= 0:
        return None, None
    return (found.low + add) / by, (found.high + add) / by


def _verdict(gate: Gate, summary: Summary) -> Judged:
    holds = (summary.verdict.grade.value == gate.grade) is (gate.operator == "==")
    text = f"The verdict is {summary.verdict.grade}."
    return (GateState.PASSED, text) if holds else (GateState.FAILED, f"{text} {_why(summary.verdict)}")


def _why(verdict: Verdict) -> str:
    return next((one.text for one in verdict.reasons if one.grade is verdict.grade), "")


def _change(gate: Gate, found: Estimate, name: str) -> tuple[str, str]:
    """Say by how much a metric got worse, or better, and what the gate asks."""
    if found.value >= 0:
        return f"{name} got worse by {_format_estimate(found)}", _bound(gate, found)
    ends = [None if end is None else 0.0 - end for end in (found.high, found.low)]
    better = found.model_copy(update={"value": -found.value, "low": ends[0], "high": ends[1]})
    return f"{name} got better by {_format_estimate(better)}", f"{_bound(gate, found)} worse"


def _bound(gate: Gate, found: Estimate) -> str:
    return f"{_WORDS[gate.operator]} {plain_quantity(gate.limit, found.unit)}"


def _judge_bound(gate: Gate, found: Estimate, number: str, bound: str) -> Judged:
    if not math.isfinite(found.value):
        return GateState.CANNOT_TELL, f"{number}, which is not a finite number."
    if found.low is None or found.high is None:
        return _without_interval(gate, found, number, bound)
    ends = [_HOLDS[gate.operator](end, gate.limit) for end in (found.low, found.high)]
    if all(ends):
        return GateState.PASSED, f"{number}: {bound}, with its whole interval."
    if not any(ends):
        return GateState.FAILED, f"{number}: not {bound}, with its whole interval."
    return GateState.CANNOT_TELL, f"{number}: the limit, {bound}, is inside the interval. {_settles(found, gate)}"


def _without_interval(gate: Gate, found: Estimate, number: str, bound: str) -> Judged:
    """Judge a value alone where it is all there can be; a single run is not all there can be."""
    parts = key_of(gate.key)
    if parts.statistic in _DESCRIPTIVE:
        holds = _HOLDS[gate.operator](found.value, gate.limit)
        text = f"{number}: {'' if holds else 'not '}{bound}; it describes these runs only and has no interval."
        return (GateState.PASSED if holds else GateState.FAILED), text
    text = f"{number}, without an interval: {no_interval_reason(found)}."
    if parts.statistic == "mean" and found.level == "run" and found.count > 1:
        text += f" Gate the median instead: {key_text(parts.metric, 'p50', parts.operation)}."
    elif is_of_one_run(found):
        text += " Make 3 runs or more."
    return GateState.CANNOT_TELL, text


def _settles(found: Estimate, gate: Gate) -> str:
    """Say how many would narrow the interval down to the limit: its width shrinks with the root of their number."""
    assert found.low is not None
    assert found.high is not None
    distance, half = abs(found.value - gate.limit), (found.high - found.low) / 2
    noun = "runs" if found.level == "run" else "samples"
    if not distance or not half:
        return f"The value equals the limit: more {noun} cannot decide it."
    needed = math.ceil(found.count * (half / distance) ** 2)
    if needed > _MOST_RUNS and noun == "runs":
        return "The value is too close to the limit: no reasonable number of runs can decide it."
    return f"About {max(needed, found.count + 1)} {noun} would decide it, instead of {found.count}."


def _absent(gate: Gate, summary: Summary) -> Judged:
    missing = next((one for one in summary.missing if one.metric == gate.key), None)
    if missing is None:
        return GateState.CANNOT_TELL, f"This job has no {metric_title(gate.key)} ({gate.key})."
    return _too_few(gate, missing)


def _too_few(gate: Gate, missing: Missing) -> Judged:
    """A percentile that samples are too few for has a lower bound at best, which can only break an upper limit."""
    name = metric_title(gate.key)
    needs = f"It needs {missing.needed} samples a run and has {missing.count}."
    if missing.at_least is not None and gate.operator in ("<=", "<") and missing.at_least > gate.limit:
        return (
            GateState.FAILED,
            f"{name} is at least {plain_number(missing.at_least)}: not {gate.operator} {gate.limit:g}.",
        )
    return GateState.CANNOT_TELL, f"There is no {name}. {needs}"


def _format_estimate(one: Estimate) -> str:
    if one.low is None or one.high is None:
        return plain_quantity(one.value, one.unit)
    ends = f"[{plain_quantity(one.low, one.unit, bare=True)}, {plain_quantity(one.high, one.unit, bare=True)}]"
    noun = f"{one.count} {one.level}{'' if one.count == 1 else 's'}"
    sure = f"{one.confidence * 100:.3g} %, " if one.confidence is not None else ""
    return f"{plain_quantity(one.value, one.unit)} {ends} ({sure}{noun})"


_WORDS = {"<=": "at most", "<": "less than", ">=": "at least", ">": "more than"}
_HOLDS: dict[str, Callable[[float, float], bool]] = {
    "<=": lambda value, limit: value <= limit,
    "<": lambda value, limit: value < limit,
    ">=": lambda value, limit: value >= limit,
    ">": lambda value, limit: value > limit,
}
