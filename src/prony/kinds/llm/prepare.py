"""Check a language model's job, say what it needs of a device, and make its paths absolute."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prony.errors import CapacityError, InputError, PronyError
from prony.kinds.llm.schema import LlmWorkload
from prony.model.assumption import Assumption
from prony.model.device import AbilityReport
from prony.model.job import Job
from prony.model.recipe import Recipe
from prony.model.workload import work_of
from prony.ports import plugins
from prony.ports.driver import ScoresAnswers
from prony.ports.find_task import find_task, make_options_absolute
from prony.ports.llm import LlmEngine
from prony.ports.models import scheme_of
from prony.ports.unit_names import split_unit
from prony.ports.workload import Needs, Prepare

if TYPE_CHECKING:
    from prony.runner.context import RunContext

# Which key an error is about, by its code; the others are about the model itself.
_KEYS = {
    "unknown_engine": "engine", "engine_missing": "engine", "engine_broken": "engine", "engine_unsupported": "engine",
    "no_llm_engine": "engine", "unit_unavailable": "unit", "precision_unavailable": "precision",
    "kv_type_unavailable": "kv_type", "context_exceeded": "prompt", "no_reference": "reference", "unknown_task": "task",
    "draft_unavailable": "draft", "draft_mismatch": "draft",
}  # fmt: skip


class LlmPrepare(Prepare):
    """Before a language model runs."""

    def check(self, job: Job) -> None:
        work = job.work(LlmWorkload)
        plugins.target(plugins.MODELS, scheme_of(work.model))
        for name in (work.engine, *filter(None, [work.reference_engine])):
            engine = plugins.load_plugin(plugins.ENGINES, name)
            if not issubclass(engine, LlmEngine):
                raise InputError(
                    f"{name} does not run language models", hint=f"these do: {', '.join(llm_engines())}",
                    code="no_llm_engine",
                )  # fmt: skip
        if work.draft != "none" and not getattr(plugins.load_plugin(plugins.ENGINES, work.engine), "speculates", False):
            raise CapacityError(
                f"{work.engine} does not support speculative decoding in Prony",
                hint="use llamacpp, transformers or mlx, or remove workload.draft", code="draft_unavailable",
            )  # fmt: skip
        if work.task is not None:
            task, _ = find_task(work.task, work.prompts)
            if isinstance(task, ScoresAnswers) and work.passes != LlmWorkload.model_fields["passes"].default:
                raise InputError(
                    f"workload.passes has no effect with the task {work.task}: it asks every item once per run",
                    hint="remove passes; use measure.repeats for more runs", code="recipe",
                )  # fmt: skip

    def needs(self, workload: LlmWorkload) -> Needs:
        unit, card = split_unit(workload.unit)
        return {
            "engine": workload.engine,
            "unit": unit,
            "card": card,
            "precision": None if workload.precision == "default" else workload.precision,
            "scheme": scheme_of(workload.model),
        }

    def access(self, engines: Sequence[str], abilities: Sequence[AbilityReport]) -> tuple[str, ...]:
        del abilities
        return ("white",) if set(engines) & set(llm_engines()) else ()

    def make_paths_absolute(self, job: Job, base: Path) -> Job:
        work = job.work(LlmWorkload)
        named = {"model": work.model, "reference": work.reference, "draft": work.draft_model}
        paths = {
            key: str((base / Path(name.removeprefix("file:")).expanduser()).absolute())
            for key, name in named.items()
            if name is not None and scheme_of(name) == "file" and not name.startswith("file://")
        }
        changes: dict[str, Any] = dict(paths)
        if work.task is not None:
            task, _ = find_task(work.task, work.prompts)
            changes["prompts"] = make_options_absolute(work.prompts, task.Options, base)
        return job.model_copy(update={"workload": work.model_copy(update=changes)})

    def local_files(self, recipe: Recipe) -> list[str]:
        work = work_of(recipe.workload, LlmWorkload, recipe.name)
        models = [work.model, *map(str, recipe.matrix.axes.get("workload.model", ())), work.reference, work.draft_model]
        return [one for one in dict.fromkeys(models) if one is not None and scheme_of(one) == "file"]

    def named_options(self, job: Job) -> Iterator[tuple[str, Any]]:
        work = job.work(LlmWorkload)
        if work.task is not None:
            yield "workload.prompts", find_task(work.task, work.prompts)[1]

    def try_once(self, job: Job, context: RunContext) -> tuple[Assumption, ...]:
        """Look for models, data and engines. No weights are loaded."""
        from prony.kinds.llm.runner.trial import try_llm

        try_llm(job, context)
        return ()

    def refusals_here(self, jobs: Sequence[Job]) -> tuple[str, ...]:
        """Say which models a check does not look for."""
        from prony.kinds.llm.runner.trial import is_looked_up

        works = [job.work(LlmWorkload) for job in jobs]
        named = dict.fromkeys(one for work in works for one in (work.model, work.draft_model, work.reference) if one)
        return tuple(f"{one} was not looked for: prony run fetches it" for one in named if not is_looked_up(one))

    def key_behind(self, error: PronyError) -> str:
        return f"workload.{_KEYS.get(error.code, 'model')}"


def llm_engines() -> list[str]:
    """Return the engines that host language models."""
    known = {name: plugins.load_plugin(plugins.ENGINES, name) for name in plugins.find_plugins(plugins.ENGINES)}
    return [name for name, engine in known.items() if issubclass(engine, LlmEngine)]


PART = LlmPrepare()
