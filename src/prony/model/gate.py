"""Gates of a recipe: a bound on a metric, on a regression or on the verdict, and what became of it.

A gate has passed, has failed or is undecided, each with the number that decided.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ValidationInfo, WithJsonSchema

from prony.model.base import Noun
from prony.model.estimate import Estimate
from prony.model.metric import METRICS, QUALITY_METRICS, STATISTICS, Key, key_of, key_text
from prony.model.workload import Workload

Operator = Literal["<=", "<", ">=", ">", "==", "!="]
GRADES = ("valid", "suspect", "void")
# What stands for a metric that is named without a statistic; all others have a median.
_USUAL = dict.fromkeys(("error_rate", "quality", "cut_share", *QUALITY_METRICS), "mean")
_METRICS_HINT = "`prony docs metrics` lists them all"
_SPLIT = re.compile(r"<=|>=|==|!=|<|>|=")
_BOUND = re.compile(r"<=|>=|==|!=|<|>")
_NAME = re.compile(r"[A-Za-z0-9_]+")
_CALL = re.compile(r"^([A-Za-z_]+)\s*\((.*)\)$")
_VALUE = re.compile(r"^([+-]?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)\s*(\S*)$")


class Gate(Noun):
    """`key` is empty for a verdict, `grade` for everything else; a share is a number such as 0.03."""

    text: str
    kind: Literal["bound", "regression", "verdict"]
    operator: Operator
    key: str = ""
    limit: float = 0.0
    grade: str = ""


def parse_gate(text: str, own: Mapping[str, str] | None = None) -> Gate:
    """Read `inference_ms.p99 <= 20`, `regression(e2e_ms.p50) <= 3%` or `verdict == valid`.

    `own` is of a script, whose metrics have any name: the units of those that are known. A ValueError names the column,
    counted from 1, and what is likely meant.
    """
    found = _SPLIT.search(text)
    if found is not None and found[0] == "=" and "/" in text[: found.start()]:
        found = _BOUND.search(text) or found  # labels have an `=` of their own: loss/split=test <= 1
    if found is None:
        raise _wrong(len(text.rstrip()), "a comparison is missing", "as in inference_ms.p99 <= 20")
    left, right, at = text[: found.start()], text[found.end() :], found.start()
    if not left.strip():
        raise _wrong(0, "the metric before the comparison is missing", "as in inference_ms.p99 <= 20")
    if not right.strip():
        raise _wrong(found.end(), "the limit is missing", f"as in {left.strip()} {found[0]} 20")
    where = len(left) - len(left.lstrip())
    after = found.end() + len(right) - len(right.lstrip())
    if left.strip() == "verdict":
        return Gate(text=text.strip(), kind="verdict", operator=_equal(found[0], at), grade=_grade(right, after))
    call = _CALL.match(left.strip())
    if call is not None and call[1] != "regression":
        raise _wrong(where, f"there is no {call[1]}(...)", "did you mean regression(...)?")
    name, begin = (call[2], where + call.start(2)) if call is not None else (left.strip(), where)
    key = _key(name.strip(), begin + len(name) - len(name.lstrip()), own)
    kind: Literal["regression", "bound"] = "bound" if call is None else "regression"
    operator = _bounding(found[0], at, is_regression=call is not None)
    unit = "1" if call is not None else _unit(key.metric, own or {})
    limit = _limit(right.strip(), after, unit, key.metric if call is None else "regression(...)")
    written = key_text(key.metric, key.statistic, key.operation)
    return Gate(text=text.strip(), kind=kind, operator=operator, key=written, limit=limit)


def _check_gate(value: Any, info: ValidationInfo) -> Any:
    """Refuse a gate that cannot be read where the recipe is read; what is no text is told by its type."""
    if isinstance(value, str):
        workload = info.data.get("workload")  # absent where it is wrong itself
        parse_gate(value, workload.metric_units if isinstance(workload, Workload) else None)
    return value


GateText = Annotated[
    str,
    BeforeValidator(_check_gate),
    WithJsonSchema({"type": "string", "examples": ["inference_ms.p99 <= 20", "regression(inference_ms.p50) <= 3%"]}),
]


def trouble_of_kind(text: str, workload: Workload) -> str | None:
    """Return why a workload of this kind can never have the number that a gate asks for; None where it may."""
    known = workload.metric_names
    if known is None:
        return None
    gate = parse_gate(text)
    name = key_of(gate.key).metric
    if gate.kind == "verdict" or name in known:
        return None
    near = get_close_matches(name, known, n=1)
    also = f"; did you mean {near[0]}?" if near else ""
    return f"{text.strip()!r}: a {workload.kind} has no {name}{also}"


def _unit(name: str, own: Mapping[str, str]) -> str:
    return own[name] if name in own else METRICS[name].unit if name in METRICS else ""


def _key(text: str, column: int, own: Mapping[str, str] | None) -> Key:
    found = key_of(text)
    if own is not None and _NAME.fullmatch(found.metric) is None:
        raise _wrong(
            column, f"{found.metric or text!r} is not a metric", "write its name with letters, digits and '_' only"
        )
    if own is None and found.metric not in METRICS:
        near = _nearest(found.metric)
        raise _wrong(
            column, f"there is no metric {found.metric or text!r}", f"did you mean {near}?" if near else _METRICS_HINT
        )
    head = text.partition("/")[0] if "/" in text else text
    tail = "" if "/" in text else head.removeprefix(found.metric)
    if tail not in ("", f".{found.statistic}"):
        near_words = get_close_matches(tail.lstrip("."), STATISTICS, n=1)
        hint = f"did you mean {found.metric}.{near_words[0]}?" if near_words else f"there are {', '.join(STATISTICS)}"
        raise _wrong(column + len(found.metric), f"{found.metric} has no statistic {tail.lstrip('.')!r}", hint)
    statistic = found.statistic or _USUAL.get(found.metric, "p50")
    return Key(metric=found.metric, operation=found.operation, statistic=statistic)


def _nearest(name: str) -> str:
    """Return the metric that was likely meant: `latency` is nobody's name and many people's word."""
    spoken = {"latency_ms": "e2e_ms or inference_ms", "latency": "e2e_ms or inference_ms", "rps": "throughput_per_s",
              "throughput": "throughput_per_s", "errors": "error_rate", "ttft": "ttft_ms"}  # fmt: skip
    if name in STATISTICS:
        return f"inference_ms.{name} or e2e_ms.{name}"
    near = get_close_matches(name, [*METRICS], n=1, cutoff=0.5)
    return spoken.get(name) or (near[0] if near else "")


def _bounding(word: str, column: int, *, is_regression: bool) -> Operator:
    if is_regression and word not in ("<=", "<"):
        raise _wrong(column, f"a regression has an upper limit, not {word!r}", "write <=")
    if word in ("<=", "<", ">=", ">"):
        return word  # type: ignore[return-value]
    raise _wrong(column, f"a measured number never equals a limit: {word!r} cannot be judged", "write <= or >=")


def _equal(word: str, column: int) -> Operator:
    if word not in ("==", "!="):
        raise _wrong(column, f"a verdict has no order: {word!r} cannot be used", "write == or !=")
    return word  # type: ignore[return-value]


def _grade(text: str, column: int) -> str:
    word = text.strip()
    if word not in GRADES:
        near = get_close_matches(word, GRADES, n=1)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(GRADES)}"
        raise _wrong(column, f"there is no verdict {word!r}", hint)
    return word


def _limit(text: str, column: int, unit: str, name: str) -> float:
    found = _VALUE.match(text)
    if found is None:
        raise _wrong(column, f"{text!r} is not a number", "as in 20 or 3%")
    value, said = float(found[1]), found[2]
    if said == "%" and unit == "1":
        return float(f"{value / 100:.12g}")
    if said not in ("", unit, unit.removeprefix("1")):
        column += found.start(2)
        if not unit:
            raise _wrong(
                column, f"the unit of {name} is unknown, so {said} cannot be checked", "write the number alone"
            )
        if unit == "1":
            raise _wrong(column, f"{name} is a share, not {said}", f"write {found[1]}%")
        raise _wrong(column, f"{name} is in {unit}, not in {said}", f"write the number alone: it is in {unit}")
    return value


def _wrong(column: int, message: str, hint: str = "") -> ValueError:
    return ValueError(f"column {column + 1}: {message}{f'; {hint}' if hint else ''}")


class GateState(StrEnum):
    """What a gate found."""

    PASSED = "passed"
    FAILED = "failed"
    CANNOT_TELL = "cannot tell"

    @property
    def word(self) -> str:
        """What people read; the value is what programs have read since the first version."""
        return "undecided" if self is GateState.CANNOT_TELL else self.value


class GateOutcome(Noun):
    """One gate on one job. `text` is a sentence with the number behind it, and what would settle what is open."""

    gate: str
    job_id: str
    title: str
    state: GateState
    estimate: Estimate | None = None
    limit: float | None = None
    text: str


def strictly(outcomes: Iterable[GateOutcome]) -> tuple[GateOutcome, ...]:
    """Return the outcomes where undecided gates fail too."""
    return tuple(one if one.state is not GateState.CANNOT_TELL else _turn_into_failure(one) for one in outcomes)


def _turn_into_failure(one: GateOutcome) -> GateOutcome:
    changes = {"state": GateState.FAILED, "text": f"This gate is undecided, and the gates are strict. {one.text}"}
    return one.model_copy(update=changes)


class GateReport(Noun):
    """All gates of one experiment. `strict`: undecided gates fail too."""

    experiment_id: str
    name: str = ""
    strict: bool = False
    outcomes: tuple[GateOutcome, ...] = ()

    @property
    def passed(self) -> bool:
        """May the build go on?"""
        bad = {GateState.FAILED, GateState.CANNOT_TELL} if self.strict else {GateState.FAILED}
        return not any(one.state in bad for one in self.outcomes)
