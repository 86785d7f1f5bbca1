"""A CI sees each job as a case, failed for the reason that is really its own."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree as Xml

import pytest

from prony.model.estimate import Grade
from prony.model.experiment_data import ExperimentData
from prony.model.gate import GateOutcome, GateState
from prony.report import render
from report import experiments


def suite(data: ExperimentData, *, strict: bool = False) -> Xml.Element:
    document = render(data, "junit", strict=strict)
    assert isinstance(document, bytes)
    found = Xml.fromstring(document).find("testsuite")
    assert found is not None
    return found


def counts(found: Xml.Element) -> tuple[int, int, int]:
    return int(found.get("tests", "-1")), int(found.get("failures", "-1")), int(found.get("errors", "-1"))


def test_good_jobs_pass_and_a_suspect_one_only_says_so(full: ExperimentData) -> None:
    found = suite(full)
    assert counts(found) == (4, 0, 0)
    said = found.findall("testcase/system-out")
    assert [(one.text or "").startswith("verdict suspect") for one in said] == [True]


def test_numbers_are_properties_of_their_case(full: ExperimentData) -> None:
    case = suite(full).findall("testcase")[0]
    told = {one.get("name"): one.get("value") for one in case.findall("properties/property")}
    assert set(full.entries[0].summary.estimates) <= set(told)
    assert str(told["inference_ms.p50"]).endswith("]")


def test_a_failing_system_under_test_is_a_failure(partial: ExperimentData) -> None:
    found = suite(partial)
    assert counts(found) == (2, 1, 0)
    failure = found.find("testcase/failure")
    assert failure is not None
    assert failure.get("type") == "killed"
    assert "SIGKILL" in str(failure.get("message"))


@pytest.mark.parametrize(("whose", "expected"), [("capacity", (2, 0, 1)), ("prony", (2, 0, 1)), ("input", (2, 1, 0))])
def test_the_surroundings_fault_is_an_error(
    partial: ExperimentData, whose: str, expected: tuple[int, int, int]
) -> None:
    good, bad = partial.entries
    assert bad.result.failure is not None
    why = bad.result.failure.model_copy(update={"whose": whose})
    result = bad.result.model_copy(update={"failure": why})
    found = suite(partial.model_copy(update={"entries": (good, bad.model_copy(update={"result": result}))}))
    assert counts(found) == expected


def test_a_void_verdict_is_a_failure_even_of_a_complete_job(tmp_path: Path) -> None:
    entry = experiments.Maker(tmp_path).entry(0, {"workload.engine": "onnxruntime"}, grade=Grade.VOID)
    found = suite(experiments.empty_experiment().model_copy(update={"entries": (entry,)}))
    assert counts(found) == (1, 1, 0)


def test_a_gate_that_cannot_be_told_is_skipped_and_fails_where_gates_are_strict(full: ExperimentData) -> None:
    gate = GateOutcome(
        gate="inference_ms.p99 <= 1", job_id="a-001", title="a", state=GateState.CANNOT_TELL, text="Two runs only."
    )
    gated = full.model_copy(update={"gates": (gate,)})
    lenient, strict = (Xml.tostring(suite(gated, strict=one), "unicode") for one in (False, True))
    assert '<skipped message="undecided: Two runs only."' in lenient
    assert 'skipped="0" failures="1"' in strict
    assert "This gate is undecided, and the gates are strict. Two runs only." in strict


def test_control_characters_never_reach_the_xml(hostile: ExperimentData) -> None:
    document = render(hostile, "junit")
    assert isinstance(document, bytes)
    assert b"\x00" not in document
    assert b"\x1b" not in document
    assert counts(suite(hostile)) == (2, 1, 0)
