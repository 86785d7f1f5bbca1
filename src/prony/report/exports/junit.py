"""Export an experiment as JUnit XML: a suite with one case per job."""

from __future__ import annotations

from xml.etree import ElementTree as Xml

from prony.model.estimate import Grade
from prony.model.experiment_data import Entry, ExperimentData
from prony.model.gate import GateOutcome, GateState
from prony.model.result import Repetition
from prony.model.shown import visible
from prony.report import entry_fields, number

# Neither the model's nor the recipe's fault: the surroundings lacked something, or Prony itself failed.
_INFRASTRUCTURE = {"capacity", "prony"}


def render(data: ExperimentData) -> bytes:
    """Return the file; a failed job and a void verdict fail their case, a suspect one only says so."""
    one = data.experiment
    suite = Xml.Element("testsuite", name=visible(one.name), timestamp=f"{one.created_at:%Y-%m-%dT%H:%M:%S}")
    _properties(suite, {"experiment_id": one.id, "state": str(one.state), "jobs_planned": str(one.job_count)})
    for entry in data.entries:
        suite.append(_case(data, entry))
    for outcome in data.gates:
        suite.append(_gate(data, outcome))
    cases = suite.findall("testcase")
    counts = {"tests": len(cases), "skipped": len(suite.findall("testcase/skipped")), "failures": 0, "errors": 0}
    counts |= {"failures": len(suite.findall("testcase/failure")), "errors": len(suite.findall("testcase/error"))}
    for name, count in counts.items():
        suite.set(name, str(count))
    # Jobs take turns, so their own times may sum to less than the experiment took: the wall clock is its own.
    suite.set("time", f"{(one.ended_at - one.created_at).total_seconds() if one.ended_at else 0.0:.3f}")
    root = Xml.Element("testsuites")
    root.append(suite)
    Xml.indent(root)
    document: bytes = Xml.tostring(root, encoding="utf-8", xml_declaration=True)
    return document + b"\n"


def _case(data: ExperimentData, entry: Entry) -> Xml.Element:
    result = entry.result
    took = sum(_took_s(repetition) for repetition in result.repetitions)
    name = visible(entry.summary.title)
    case = Xml.Element("testcase", classname=visible(data.experiment.name), name=name, time=f"{took:.3f}")
    _properties(case, _numbers(entry))
    reasons = "\n".join(f"{one.grade}: {one.text}" for one in entry.summary.verdict.reasons)
    if (failed := _describe_failure(entry)) is not None:
        kind, code, message = failed
        told = Xml.SubElement(case, kind, type=visible(code), message=visible(message))
        told.text = visible(
            "\n".join([message, *(why.detail for _, why in entry_fields.failures(entry)[:1]), reasons]).strip()
        )
    elif entry.summary.verdict.grade is Grade.VOID:
        told = Xml.SubElement(case, "failure", type="void", message="the measurement is void: do not use it")
        told.text = visible(reasons)
    if reasons:
        Xml.SubElement(case, "system-out").text = visible(f"verdict {entry.summary.verdict.grade}\n{reasons}")
    return case


def _gate(data: ExperimentData, outcome: GateOutcome) -> Xml.Element:
    """Return a gate as a case of its own: one that cannot be told is skipped, for it neither passed nor failed."""
    name = visible(f"{outcome.gate} ({outcome.title})")
    case = Xml.Element("testcase", classname=visible(f"{data.experiment.name}.gates"), name=name, time="0.000")
    if outcome.state is GateState.FAILED:
        Xml.SubElement(case, "failure", type="gate", message=visible(outcome.text))
    elif outcome.state is GateState.CANNOT_TELL:
        Xml.SubElement(case, "skipped", message=visible(f"{outcome.state.word}: {outcome.text}"))
    Xml.SubElement(case, "system-out").text = visible(outcome.text)
    return case


def _took_s(repetition: Repetition) -> float:
    phases = repetition.phases.values()
    return (max(phase.end_ns for phase in phases) - min(phase.begin_ns for phase in phases)) / 1e9 if phases else 0.0


def _describe_failure(entry: Entry) -> tuple[str, str, str] | None:
    """Return (element, code, message) of a job that has no number."""
    if not entry_fields.has_failed(entry):
        return None
    found = entry_fields.failures(entry)
    if not found:
        return "error", "unknown", "the job failed and no reason was recorded"
    why = found[0][1]
    return (
        "error" if why.whose in _INFRASTRUCTURE else "failure",
        why.code,
        entry_fields.failure_text(why, entry.job.id),
    )


def _numbers(entry: Entry) -> dict[str, str]:
    told = {"job_id": entry.job.id, "verdict": str(entry.summary.verdict.grade)}
    return told | {key: number.format_number(one) for key, one in entry.summary.estimates.items()}


def _properties(parent: Xml.Element, values: dict[str, str]) -> None:
    block = Xml.SubElement(parent, "properties")
    for name, value in values.items():
        Xml.SubElement(block, "property", name=visible(name), value=visible(value))
