"""Look whether a language model could be measured here, without loading its weights."""

from __future__ import annotations

from prony.errors import CapacityError, about_key
from prony.kinds.llm.child.suite import check_context, check_kv_type
from prony.kinds.llm.runner.answers import make_prompts
from prony.kinds.llm.runner.files import check_model_files
from prony.kinds.llm.runner.runner import find_fetch_options
from prony.kinds.llm.schema import LlmWorkload
from prony.model.job import Job
from prony.ports import plugins
from prony.ports.models import LooksUpModels, scheme_of
from prony.runner.context import RunContext
from prony.runner.engine_units import require_unit
from prony.runner.models import source_of


def try_llm(job: Job, context: RunContext) -> None:
    """Look for the models, the data and the engines of a job, as far as that goes without weights.

    Raises:
        InputError: a model is missing or damaged, or what the recipe asks for does not fit it.
        CapacityError: an engine or a unit is missing here.
    """
    work = job.work(LlmWorkload)
    most = _check_model(job, work.model, work.engine, context, wants_texts=work.task is not None or work.quality)
    if work.task is None:
        check_context(work.context, most)
    if work.draft_model is not None:
        with about_key("workload.draft"):
            _check_model(job, work.draft_model, work.engine, context)
    if work.task is not None:
        with about_key("workload.prompts"):
            make_prompts(job)
    _check_types(work)
    require_unit(work.engine, work.unit, context.engines)
    if work.quality:
        _check_reference(job, work, context)


def is_looked_up(model: str) -> bool:
    """Say whether a check looks for a model, which it does where that needs no download."""
    return scheme_of(model) == "file" or isinstance(source_of(model), LooksUpModels)


def _check_model(job: Job, model: str, engine: str, context: RunContext, *, wants_texts: bool = False) -> int:
    """Refuse a model that is missing or damaged; return the context that it was made for, 0 where that is unknown."""
    options = find_fetch_options(job, model, engine, context)
    options.policy.check_scheme(model)
    source = source_of(model)
    if isinstance(source, LooksUpModels):
        source.look_up(model, options)
    if scheme_of(model) != "file":
        return 0
    files = source.fetch(model, options, lambda *_: None)
    formats = plugins.load_plugin(plugins.ENGINES, engine).formats
    return check_model_files(files.path, formats, wants_texts=wants_texts)


def _check_types(work: LlmWorkload) -> None:
    engine = plugins.load_plugin(plugins.ENGINES, work.engine)
    check_kv_type(engine, work.kv_type)
    if work.precision != "default" and getattr(engine, "computes_in_file_types", False):
        raise CapacityError(
            f"{work.engine} computes in the types of the file", hint="use another file, or remove precision",
            code="precision_unavailable",
        )  # fmt: skip


def _check_reference(job: Job, work: LlmWorkload, context: RunContext) -> None:
    name = work.reference_engine or work.engine
    if work.reference is not None:
        with about_key("workload.reference"):
            _check_model(job, work.reference, name, context)
    if work.reference_engine is not None:
        with about_key("workload.reference_engine"):
            require_unit(name, work.unit if name == work.engine else "cpu", context.engines)
