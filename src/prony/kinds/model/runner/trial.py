"""Load a model and run it once, unmeasured: does it work here, and which sizes had to be chosen for it?"""

from __future__ import annotations

import os
import re
import tempfile
import time
from collections.abc import Collection, Iterator
from dataclasses import replace
from pathlib import Path

from prony.errors import CapacityError, InputError, PronyError, SutError
from prony.kinds.model.runner.job_run import model_order
from prony.kinds.model.schema import ModelWorkload
from prony.model.assumption import Assumption
from prony.model.job import Job
from prony.model.result import Failure, InputFacts
from prony.ports import plugins
from prony.ports.models import FetchOptions, ModelFiles
from prony.runner.child.sizes import rule_of_axis
from prony.runner.child.wire import ChildOrder, Message
from prony.runner.context import RunContext
from prony.runner.engines import check_engine_version, interpreter
from prony.runner.host import EngineHost, Watch
from prony.runner.models import source_of

_SEARCH_S = 60.0
_ANOTHER = (
    "is the file whole, and of the format that its name says? or try another engine: --engine NAME, --engines all"
)
# How the engine's process names an axis whose size it guessed.
_GUESSED = re.compile(r"rule: (\S+) -> ")
# What models are usually made for, the most common first.
_PICTURES = (320, 640, 256, 416, 512, 384, 299, 448, 336, 160, 128, 112, 96, 64, 48, 32, 28)
_LENGTHS = {
    "sequence": (77, 64, 512, 256, 32, 16, 384, 1, 80, 1500, 3000),
    "samples": (512, 480000, 8000, 32000, 48000, 1024, 400),
    "past": (0, 1, 16),
}


def try_model(job: Job, context: RunContext) -> tuple[Assumption, ...]:
    """Run the model of a job once; return the input sizes that nobody gave.

    Raises:
        InputError: the model cannot be read by its engine, or does not run with these inputs.
        CapacityError: its engine is missing here.
        SutError: the engine failed for another reason.
    """
    return tuple(_describe_choice(one) for one in _inputs_of(_run_once(job, context)) if one.chosen_axes)


def _run_once(job: Job, context: RunContext) -> Message:
    workload = job.work(ModelWorkload)
    python = interpreter(workload.engine, context.engines, workload.engine_version)
    files = _fetch(workload, context, python)
    with (
        tempfile.TemporaryDirectory(prefix="prony-") as scratch,
        EngineHost(workload.engine, python, Path(scratch) / "trial.log") as host,
    ):
        check_engine_version(workload.engine, workload.engine_version, host.hello["version"])
        order = model_order("load", workload, files, workload.threads or len(os.sched_getaffinity(0)))
        watch = Watch(timeout_ns=job.limits.timeout, memory_bytes=job.limits.memory, stop_asked=context.stop_asked)
        answer = host.perform(order, watch)
        if answer.failure is None and answer.done is not None:
            return answer.done
        if answer.failure is None:
            raise SutError(f"{workload.engine} gave no answer", hint="see whether prony engines finds it ready")
        error = _error_of(answer.failure, workload)
        if error.code == "wrong_size":
            error.hint = _find_working_sizes(host, order, watch, answer.failure.hint) or error.hint
        raise error


def _find_working_sizes(host: EngineHost, order: ChildOrder, watch: Watch, fed: str) -> str:
    """Run a model that failed at guessed sizes at others that are common; return a hint with those that work."""
    deadline = time.monotonic() + _SEARCH_S
    guessed = {name: rule_of_axis(name) or "" for name in _GUESSED.findall(fed)}
    for sizes in _other_sizes(set(guessed.values())):
        if not host.is_alive or time.monotonic() > deadline:
            return ""
        axes = {name: sizes[word] for name, word in guessed.items() if word in sizes}
        done = host.perform(replace(order, axes=order.axes | axes), watch).done
        if done is not None:
            inputs = [one for one in _inputs_of(done) if any(name in one.shape_source for name in axes)]
            flags = " ".join(f"--shape {one.name}={'x'.join(map(str, one.shape))}" for one in inputs)
            return f"it runs at other sizes: prony bench {flags}, or in a recipe workload.inputs.axes: {axes}"
    return ""


def _other_sizes(words: Collection[str]) -> Iterator[dict[str, int]]:
    """Yield sizes to try by what an axis is: pictures are square, all else varies alone."""
    sides = [word for word in ("height", "width") if word in words]
    if sides:
        yield from (dict.fromkeys(sides, size) for size in _PICTURES)
    if "channels" in words:
        yield from ({"channels": 1} | dict.fromkeys(sides, size) for size in (224, *_PICTURES[:3]))
    for word, sizes in _LENGTHS.items():
        if word in words:
            yield from ({word: size} for size in sizes)


def _fetch(workload: ModelWorkload, context: RunContext, python: str) -> ModelFiles:
    options = FetchOptions(
        cache=context.cache,
        formats=plugins.load_plugin(plugins.ENGINES, workload.engine).formats,
        checksum=workload.checksum,
        base=context.base,
        python=python,
        policy=context.policy,
    )
    options.policy.check_scheme(workload.model)
    return source_of(workload.model).fetch(workload.model, options, lambda *_: None)


def _inputs_of(done: Message) -> list[InputFacts]:
    return [InputFacts.read(item) for item in done["inputs"]]


def _error_of(failure: Failure, workload: ModelWorkload) -> PronyError:
    """Return the error of a trial that failed: the file and the sizes are the caller's, the rest is the engine's."""
    where = f"{workload.model} on {workload.engine}"
    if failure.whose == "input":
        message = failure.message if workload.model in failure.message else f"{where}: {failure.message}"
        return InputError(message, hint=failure.hint or _ANOTHER, code=failure.code)
    if failure.whose == "capacity":
        return CapacityError(f"{where}: {failure.message}", hint=failure.hint, code=failure.code)
    if failure.code == "engine_error" and failure.phase == "load":
        message = f"{workload.engine} cannot load {workload.model}: {failure.message}"
        return InputError(message, hint=failure.hint or _ANOTHER, code="model_invalid")
    if failure.code == "engine_error" and failure.hint:
        return InputError(f"{where}: {failure.message}", hint=failure.hint, code="wrong_size")
    return SutError(f"{where}: {failure.message}", hint=failure.hint, code=failure.code)


def _describe_choice(one: InputFacts) -> Assumption:
    shape = "x".join(map(str, one.shape))
    return Assumption(
        what=f"input {one.name} is {shape}: the model leaves {' and '.join(one.chosen_axes)} open",
        flag=f"--shape {one.name}={shape}",
        key=f"workload.inputs.shapes.{one.name}: {list(one.shape)}",
        is_guess=True,
    )
