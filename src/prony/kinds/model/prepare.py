"""Check a model's job, say what it needs of a device, and make its paths absolute."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from prony.errors import PronyError
from prony.kinds.model.schema import ModelWorkload
from prony.model.assumption import Assumption
from prony.model.device import AbilityReport
from prony.model.job import Job
from prony.model.recipe import Recipe
from prony.model.workload import work_of
from prony.ports import plugins
from prony.ports.models import scheme_of
from prony.ports.unit_names import split_unit
from prony.ports.workload import Needs, Prepare

if TYPE_CHECKING:
    from prony.runner.context import RunContext


# Which key an error is about, by its code; the others are about the model itself.
_KEYS = {
    "unknown_engine": "engine",
    "engine_missing": "engine",
    "engine_broken": "engine",
    "engine_unsupported": "engine",
    "engine_version": "engine_version",
    "unit_unavailable": "unit",
    "precision_unavailable": "precision",
    "unknown_size": "inputs",
    "wrong_size": "inputs",
    "fixed_batch": "batch_size",
}


class ModelPrepare(Prepare):
    """Before a model runs."""

    def check(self, job: Job) -> None:
        workload = job.work(ModelWorkload)
        plugins.target(plugins.ENGINES, workload.engine)
        plugins.target(plugins.MODELS, scheme_of(workload.model))

    def needs(self, workload: ModelWorkload) -> Needs:
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
        return ("white",) if engines else ()

    def make_paths_absolute(self, job: Job, base: Path) -> Job:
        workload = job.work(ModelWorkload)
        model = workload.model
        if scheme_of(model) == "file":
            model = _anchored_path(model, base)
        values = {
            name: spec.model_copy(update={"file": _absolute(base, spec.file)}) if spec.file else spec
            for name, spec in workload.inputs.values.items()
        }
        inputs = workload.inputs.model_copy(update={"values": values})
        return job.model_copy(update={"workload": workload.model_copy(update={"model": model, "inputs": inputs})})

    def local_files(self, recipe: Recipe) -> list[str]:
        model = work_of(recipe.workload, ModelWorkload, recipe.name).model
        models = [model, *map(str, recipe.matrix.axes.get("workload.model", ()))]
        return [one for one in dict.fromkeys(models) if scheme_of(one) == "file"]

    def try_once(self, job: Job, context: RunContext) -> tuple[Assumption, ...]:
        from prony.kinds.model.runner.trial import try_model

        return try_model(job, context)

    def key_behind(self, error: PronyError) -> str:
        return f"workload.{_KEYS.get(error.code, 'model')}"

    def engine_version(self, workload: ModelWorkload) -> tuple[str, str] | None:
        return None if workload.engine_version is None else (workload.engine, workload.engine_version)


def _anchored_path(model: str, base: Path) -> str:
    if model.startswith("file://"):
        return model  # refused by its job, with a hint
    text = model.removeprefix("file:")
    return _absolute(base, os.path.expanduser(text))  # noqa: PTH111 - leaves the home of an unknown user as it is


def _absolute(base: Path, text: str) -> str:
    """Return where a path leads from `base`; what is wrong with it is told where it is read, by its own job."""
    path = base / text
    try:
        return str(path.resolve())
    except (OSError, ValueError, RuntimeError):  # a name that is too long or holds a NUL, a circle of links
        return str(path)


PART = ModelPrepare()
