"""Plan what `prony bench` runs: draft a recipe, try each of its jobs once, and leave out engines that cannot."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prony.app.check_jobs import check_names
from prony.app.choose_engine import ALL_ENGINES
from prony.app.command_recipe import CommandRequest, draft_command_recipe
from prony.app.model_recipe import ModelRequest, draft_model_recipe
from prony.app.try_jobs import try_jobs
from prony.errors import PronyError
from prony.model.assumption import Assumption
from prony.ports.workload import kind_of
from prony.recipe import LoadedRecipe, loads
from prony.recipe.problems import OPTIONS

if TYPE_CHECKING:
    from prony.app.bench import Bench
    from prony.app.quick_recipe import QuickRecipe
    from prony.model.job import Job

_ENGINE = "workload.engine"
_LONGEST = 160  # of what an engine said, in one line


def plan_bench(
    bench: Bench, request: ModelRequest | CommandRequest, *, base: Path, overrides: Sequence[str] = ()
) -> tuple[QuickRecipe, LoadedRecipe]:
    """Return the recipe of a request, whose jobs were each run once, and all that was assumed for it.

    Args:
        bench: Whose engines run it.
        request: The models, or the commands.
        base: What relative paths are relative to.
        overrides: Keys of the recipe that were set besides.

    Raises:
        InputError: Something that was named is not there, cannot be read or does not fit together.
        CapacityError: Something that is needed is missing here.
        SutError: A job failed when it was tried.
    """
    if isinstance(request, CommandRequest):
        quick, is_open = draft_command_recipe(request), False
    else:
        quick = draft_model_recipe(
            request, cache=bench.home.cache, base=base, inspect=lambda name: bench.engines([name])[0]
        )
        is_open = ALL_ENGINES in request.engines
    loaded = loads(quick.text, name=OPTIONS, overrides=overrides)
    prepare = kind_of(loaded.recipe.workload).prepare
    jobs = [prepare.make_paths_absolute(job, base) for job in loaded.jobs("trial")]
    check_names(jobs)
    prepare.check_here(jobs)
    assumed, failures = try_jobs(bench, jobs, base)
    if failures:
        quick = _without(quick, failures, is_open=is_open)
    quick = quick.having(assumed)
    return quick, loads(quick.text, name=OPTIONS, overrides=overrides)


def _without(quick: QuickRecipe, failures: Sequence[tuple[Job, PronyError]], *, is_open: bool) -> QuickRecipe:
    """Return the recipe without the engines that failed where any would do; else raise what the first one said."""
    matrix: dict[str, Any] = dict(quick.document.get("matrix", {}))
    failed = {str(job.cell.get(_ENGINE, "")): error for job, error in failures}
    kept = [name for name in matrix.get(_ENGINE, ()) if name not in failed]
    if not is_open or not kept:
        raise failures[0][1]
    told = [
        Assumption(what=f"{name} left out: {_shorten(name, error)}", flag=f"--engine {name}", key=_ENGINE)
        for name, error in failed.items()
    ]
    document = dict(quick.document)
    document["workload"] = {"kind": document["workload"]["kind"], "engine": kept[0]} | document["workload"]
    excluded = [one for one in matrix.pop("exclude", ()) if one[_ENGINE] in kept]
    matrix[_ENGINE] = kept
    if len(kept) == 1:
        del matrix[_ENGINE]
        excluded = []
    else:
        del document["workload"]["engine"]
    matrix |= {"exclude": excluded} if excluded else {}
    document = {key: value for key, value in (document | {"matrix": matrix}).items() if value != {}}
    return type(quick)(document, (*quick.assumptions, *told))


def _shorten(engine: str, error: PronyError) -> str:
    """Return what an engine said as one line: without the path of the model, and of a long text the two ends, for the
    reason stands in the last words mostly."""
    text = error.message.rpartition(f" on {engine}: ")[2]
    plain = re.sub(r"(?<!\S)/\S*/(?=[^/\s])", "", " ".join(text.split()))
    return plain if len(plain) <= _LONGEST else f"{plain[: _LONGEST // 2]} … {plain[-_LONGEST // 2 :]}"
