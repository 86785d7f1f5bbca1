"""Check a job's outputs against a reference, once per job and outside every timed process.

The reference is the same model with the same inputs on the plainest engine in float32.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from prony.errors import PronyError
from prony.kinds.model.runner.job_run import JobRun, effective
from prony.kinds.model.schema import ModelWorkload
from prony.model.result import OutputCheck
from prony.ports import plugins
from prony.runner.child.compare import compare_outputs, read_outputs
from prony.runner.child.wire import ChildOrder, Message
from prony.runner.host import EngineHost, Watch


@cache
def reference_engines() -> Mapping[str, str]:
    """Return which engine says that it is the reference, by the ending of a model file; the first by name has it."""
    found: dict[str, str] = {}
    for name in plugins.find_plugins(plugins.ENGINES):
        try:
            engine = plugins.load_plugin(plugins.ENGINES, name)
        except ImportError:  # nothing is compared with an engine that is not whole
            continue
        for ending in getattr(engine, "reference_formats", ()):
            found.setdefault(ending, name)
    return found


def reference_engine(path: Path) -> str | None:
    return reference_engines().get(path.suffix.lower())


def is_reference(engine: str, unit: str, precision: str, path: Path) -> bool:
    """Is the job itself what its answers would be compared with?"""
    return engine == reference_engine(path) and unit == "cpu" and precision in ("default", "fp32")


def _reference_order(order: ChildOrder, outputs: Path) -> ChildOrder:
    """Return the order that computes the reference: float32 on the CPU, nothing timed, no engine options."""
    return replace(
        order, op="outputs", unit="cpu", precision="fp32", options={}, samples="", outputs=str(outputs), profile=False
    )


def _own_check(done: Message, engine: str) -> OutputCheck:
    return OutputCheck(
        finite=done["finite"],
        reference=f"{engine} fp32 on cpu",
        is_reference=True,
        compared=False,
        outputs=done["outputs"],
        note="this job is the reference",
    )


def _unchecked_outputs(done: Message, note: str) -> OutputCheck:
    return OutputCheck(finite=done["finite"], reference="", compared=False, outputs=done["outputs"], note=note)


def _compare_outputs(
    done: Message, reference: Message, engine: str, outputs: Path, reference_outputs: Path
) -> OutputCheck:
    """Compare what two children saved."""
    fed, reference_fed = _fed_inputs(done), _fed_inputs(reference)
    if fed != reference_fed:
        return _unchecked_outputs(
            done, f"not compared: {engine} got different inputs ({reference_fed} instead of {fed})"
        )
    found = compare_outputs(read_outputs(str(outputs)), read_outputs(str(reference_outputs)))
    return OutputCheck.read(
        {"reference": f"{engine} fp32 on cpu", "outputs": done["outputs"]} | found | {"finite": done["finite"]}
    )


def _fed_inputs(message: Message) -> dict[str, Any]:
    return {item["name"]: item["sha256"][:12] for item in message["inputs"]}


Reference = tuple[Message, Path]


class Checker:
    """Keeps the reference of jobs that share a model and inputs, so that it is computed once."""

    def __init__(self, scratch: Path, host_of: Callable[[str], EngineHost], stop_asked: Callable[[], bool]) -> None:
        self._scratch = scratch
        self._host_of = host_of
        self._stop_asked = stop_asked
        self._references: dict[tuple[str, ...], Reference | str] = {}

    def outputs(self, course: JobRun) -> Path:
        """Return where the job's own answers are kept for the comparison."""
        return self._scratch / f"{course.job.id}.npz"

    def wants_outputs(self, course: JobRun) -> bool:
        """Are this job's answers still to be compared with somebody else's?"""
        return course.job.measure.check and course.folder.result.check is None and not _is_reference(course)

    def check(self, course: JobRun, done: Message, host: EngineHost) -> None:
        if course.folder.result.check is not None:
            return
        course.folder.update(check=self._judge(course, done))
        if course.job.work(ModelWorkload).unit != "cpu":
            self._ask_coverage(course, host)

    def _judge(self, course: JobRun, done: Message) -> OutputCheck:
        path = course.files.path
        engine = reference_engine(path)
        if not course.job.measure.check:
            return _unchecked_outputs(done, "not requested")
        if engine is None:
            return _unchecked_outputs(done, f"no reference engine reads {path.suffix}")
        if _is_reference(course):
            return _own_check(done, engine)
        found = self._reference(course, engine)
        if isinstance(found, str):
            return _unchecked_outputs(done, f"not compared: {found}")
        return _compare_outputs(done, found[0], engine, self.outputs(course), found[1])

    def _reference(self, course: JobRun, engine: str) -> Reference | str:
        """Return the reference's answer and its outputs, or why there is none."""
        workload = course.job.work(ModelWorkload)
        sha256 = course.folder.result.model.sha256 if course.folder.result.model else ""
        key = (engine, sha256, str(workload.batch_size), workload.inputs.model_dump_json())
        if key not in self._references:
            self._references[key] = self._compute_reference(course, engine)
        return self._references[key]

    def _compute_reference(self, course: JobRun, engine: str) -> Reference | str:
        outputs = self._scratch / f"reference-{len(self._references)}.npz"
        order = _reference_order(course.order("outputs", index=0), outputs)
        try:
            host = self._host_of(engine)
        except PronyError as exc:
            return exc.message
        answer = host.perform(order, self._watch(course))
        if answer.done is None:
            return f"{engine} could not compute it: {answer.failure.message if answer.failure else 'no answer'}"
        return answer.done, outputs

    def _ask_coverage(self, course: JobRun, host: EngineHost) -> None:
        """Have the engine tell which nodes ran where, in a child of its own because that slows it down."""
        order = replace(course.order("outputs", index=0), samples="", profile=True)
        answer = host.perform(order, self._watch(course))
        known = course.folder.result.effective
        if answer.done is not None and known is not None:
            coverage = effective(host, answer.done["effect"]).provider_coverage
            course.folder.update(effective=known.model_copy(update={"provider_coverage": coverage}))

    def _watch(self, course: JobRun) -> Watch:
        return Watch(timeout_ns=course.job.limits.timeout, stop_asked=self._stop_asked)


def _is_reference(course: JobRun) -> bool:
    workload = course.job.work(ModelWorkload)
    return is_reference(workload.engine, workload.unit, workload.precision, course.files.path)
