"""Compare a model's predictions on shipped text with a reference's, each made in a process of its own."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

from prony.errors import CapacityError, PronyError, SutError
from prony.kinds.llm.schema import LlmWorkload
from prony.model.job import Job
from prony.ports import plugins
from prony.runner.child.wire import ChildOrder, Message
from prony.runner.host import EngineHost, Watch

_SUITE = "prony.kinds.llm.child.quality:QualitySuite"
POSITIONS = 512


@dataclass(frozen=True)
class Predictor:
    """What predicts: an engine's process, a model's path, and how it is loaded."""

    host: EngineHost
    model: Path
    unit: str
    precision: str
    threads: int
    options: Message = field(default_factory=dict)
    kv_type: str = "default"
    cache: Path = Path()


@dataclass(frozen=True)
class QualityFound:
    """Of each position: `nll`, and `kl` and `top1` where there was a reference; `reference` says which, or why not."""

    values: dict[str, list[float]]
    reference: str


class Predictions:
    """Makes the predictions of references once, and compares others with them."""

    def __init__(self, scratch: Path, job: Job) -> None:
        self._scratch, self._job = scratch, job
        self._made: dict[str, tuple[Path, Path, list[float]]] = {}

    def compare(self, mine: Predictor, other: Predictor | CapacityError) -> QualityFound:
        """Return the predictions of one model beside those of another, or alone where there is no other.

        Raises:
            SutError: It could not predict, or the reference that the recipe names could not.
        """
        if isinstance(other, CapacityError):
            return self._alone(mine, other.message)
        try:
            logs, ids, likelihood = self._reference(other)
        except SutError as exc:
            work = self._job.work(LlmWorkload)
            if work.reference is not None or work.reference_engine is not None:
                raise
            return self._alone(mine, exc.message)
        found = self._predict(mine, {"reference_file": str(logs), "ids_file": str(ids)})
        told = f"{other.model.name} by {other.host.name} {other.host.hello['version']} in {other.precision}"
        return QualityFound(found | {"reference_nll": likelihood}, told)

    def _alone(self, mine: Predictor, why: str) -> QualityFound:
        found = self._predict(mine, {"ids_file": str(self._scratch / "alone.npy")})
        return QualityFound(found, f"none: {why}")

    def _reference(self, other: Predictor) -> tuple[Path, Path, list[float]]:
        key = f"{other.host.name} {other.model} {other.unit} {other.precision}"
        if key not in self._made:
            number = len(self._made)
            logs, ids = self._scratch / f"logs-{number}.npy", self._scratch / f"ids-{number}.npy"
            found = self._predict(other, {"write_file": str(logs), "ids_file": str(ids)})
            self._made[key] = logs, ids, found["nll"]
        return self._made[key]

    def _predict(self, one: Predictor, more: dict[str, Any]) -> dict[str, list[float]]:
        text = files("prony.kinds.llm").joinpath("quality_text.txt").read_text()
        options = {
            "model": str(one.model), "unit": one.unit, "threads": one.threads, "precision": one.precision, "batch": 1,
            "kv_type": one.kv_type, "context": POSITIONS + 2, "options": one.options, "cache": str(one.cache),
            "text": text, "positions": POSITIONS,
        }  # fmt: skip
        order = ChildOrder(op="tests", suite=_SUITE, options=options | more, warmup=1)
        answer = one.host.perform(order, Watch(timeout_ns=self._job.limits.timeout))
        if answer.failure is not None or answer.done is None:
            why = answer.failure
            message = "no answer" if why is None else why.message
            raise SutError(
                f"engine {one.host.name} could not predict the text that measures quality: {message}",
                hint="" if why is None else why.hint,
                code="engine_error" if why is None else why.code,
            )  # fmt: skip
        values: dict[str, list[float]] = answer.done["readings"][0]
        return values


def reference_of(mine: Predictor, work: LlmWorkload, host_of: Any, model: Path | None) -> Predictor | CapacityError:
    """Return what predicts as the reference: what the recipe names, or the same model in fp32; else why there is none.

    Raises:
        PronyError: The recipe names an engine that does not start.
    """
    name = work.reference_engine or work.engine
    engine = plugins.load_plugin(plugins.ENGINES, name)
    if model is not None or work.reference_engine is not None:
        host = host_of(name)
        unit = work.unit if name == work.engine else "cpu"
        precision = "default" if _has_own_types(engine) else "fp32"
        return Predictor(host, model or mine.model, unit, precision, mine.threads, cache=mine.cache)
    if not _has_own_types(engine):
        return replace(mine, precision="fp32", options={}, kv_type="default")
    try:
        host = host_of("transformers")
    except PronyError as exc:
        return CapacityError(f"{name} cannot compute this file in fp32, and {exc.message}; set workload.reference")
    return Predictor(host, mine.model, "cpu", "fp32", mine.threads, cache=mine.cache)


def _has_own_types(engine: Any) -> bool:
    """Does it compute in the types of the file, whatever is asked for?"""
    return bool(getattr(engine, "computes_in_file_types", False))
