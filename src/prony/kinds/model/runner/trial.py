"""Load a model and run it once, unmeasured: does it work here, and which sizes had to be chosen for it?"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from prony.errors import CapacityError, InputError, PronyError, SutError
from prony.kinds.model.runner.find_sizes import SizeSearch, find_working_shapes
from prony.kinds.model.runner.job_run import model_order
from prony.kinds.model.schema import ModelWorkload
from prony.model.assumption import Assumption
from prony.model.job import Job
from prony.model.result import Failure, InputFacts
from prony.ports import plugins
from prony.ports.engine import shape_flag
from prony.ports.models import FetchOptions, ModelFiles
from prony.runner.child.wire import Message
from prony.runner.context import RunContext
from prony.runner.engines import check_engine_version, interpreter
from prony.runner.host import EngineHost, Watch
from prony.runner.models import source_of

_ANOTHER = "check that the file is complete and in this format, or try another engine: --engine NAME, --engines all"


def try_model(job: Job, context: RunContext) -> tuple[Assumption, ...]:
    """Run the model of a job once; return the input sizes that nobody gave.

    Raises:
        InputError: the model cannot be read by its engine, or does not run with these inputs.
        CapacityError: its engine is missing here.
        SutError: the engine failed for another reason.
    """
    inputs = [InputFacts.read(item) for item in _run_once(job, context)["inputs"]]
    return tuple(_describe_choice(one) for one in inputs if one.chosen_axes or one.read_beside)


def _run_once(job: Job, context: RunContext) -> Message:
    workload = job.work(ModelWorkload)
    python = interpreter(workload.engine, context.engines, workload.engine_version)
    with (
        tempfile.TemporaryDirectory(prefix="prony-") as scratch,
        EngineHost(workload.engine, python, Path(scratch) / "trial.log") as host,
    ):
        check_engine_version(workload.engine, workload.engine_version, host.hello["version"])
        files = _fetch(workload, context, python)
        order = model_order("load", workload, files, workload.threads or len(os.sched_getaffinity(0)))
        watch = Watch(timeout_ns=job.limits.timeout, memory_bytes=job.limits.memory, stop_asked=context.stop_asked)
        answer = host.perform(order, watch)
        if answer.failure is None and answer.done is not None:
            return answer.done
        if answer.failure is None:
            raise SutError(f"{workload.engine} did not answer", hint="check whether prony engines lists it as ready")
        error = _error_of(answer.failure, workload)
        if error.code in ("wrong_size", "unknown_size"):
            found = find_working_shapes(host, order, watch)
            error.hint = _suggest(found.shapes) if found.shapes else f"{error.hint}\n{_say_fruitless(found)}"
        raise error


def _say_fruitless(search: SizeSearch) -> str:
    if search.is_cut_off:
        return "other sizes were tried for one minute without success; not all were tried"
    return "other common sizes failed too"


def _suggest(shapes: Mapping[str, Sequence[int]]) -> str:
    """Return the hint that gives these shapes, in a recipe and on a command line."""
    lines = "\n".join(f"      {name}: {list(shape)}" for name, shape in shapes.items())
    flags = " ".join(shape_flag(name, shape) for name, shape in shapes.items())
    said = "it runs at these sizes; write these or your own sizes in the recipe:"
    return f"{said}\nworkload:\n  inputs:\n    shapes:\n{lines}\nor with prony bench: {flags}"


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
    reasons = [f"the model does not fix {' and '.join(one.chosen_axes)}"] if one.chosen_axes else []
    reasons += [f"it is read from {' and '.join(one.read_beside)}"] if one.read_beside else []
    return Assumption(
        what=f"input {one.name} is {'x'.join(map(str, one.shape))}: {'; '.join(reasons)}",
        flag=shape_flag(one.name, one.shape),
        key=f"workload.inputs.shapes.{one.name}: {list(one.shape)}",
        is_guess=bool(one.chosen_axes),
    )
