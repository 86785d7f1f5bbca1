"""Make a recipe of models: one alone, two that take turns, or more side by side."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prony.app.choose_engine import EngineChooser, EngineWish, model_endings
from prony.app.quick_recipe import QuickRecipe, join_as_name, plain_name
from prony.errors import CapacityError, InputError
from prony.model.assumption import Assumption
from prony.model.quantity import duration_text
from prony.model.recipe import UNLIMITED_RUNS, Measure
from prony.ports import plugins
from prony.ports.models import FetchOptions, LooksUpModels, policy_of, scheme_of
from prony.runner.models import source_of
from prony.stats.spread import FEWEST_RUNS

if TYPE_CHECKING:
    from prony.model.device import EngineReport

_REPEATS = 5
_PAIRS = 10
_TIME_NS = 30 * 10**9
# Where a recipe says which of several things a job is about.
_MODEL, _ENGINE = "workload.model", "workload.engine"


@dataclass(frozen=True)
class ModelRequest:
    """What was asked for of one model or several; what is None or empty is for Prony to choose.

    `engines` may hold the word `all`: every engine that is installed and reads the model.
    """

    models: tuple[str, ...]
    engines: tuple[str, ...] = ()
    units: tuple[str, ...] = ()
    batch_sizes: tuple[int, ...] = ()
    threads: tuple[int, ...] = ()
    precision: str | None = None
    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    runs: int | None = None
    time_ns: int | None = None
    repeats: int | None = None


def draft_model_recipe(
    request: ModelRequest, *, cache: Path, base: Path, inspect: Callable[[str], EngineReport]
) -> QuickRecipe:
    """Return the recipe of one model, of two that take turns, or of more side by side.

    Args:
        request: What was asked for.
        cache: Where fetched models are kept.
        base: What relative paths are relative to.
        inspect: Starts an engine and reports what it can do here.

    Raises:
        InputError: A model is not there or is empty, no engine here reads it, or an engine lacks what was asked for.
    """
    _refuse_twice(request.models)
    wish = EngineWish(request.engines, request.units, request.precision)
    chooser = EngineChooser(wish, inspect, lambda model, formats: _is_offered(model, formats, cache, base))
    engines = [chooser.choose(model, _ending_of(model, cache, base)) for model in request.models]
    quick = draft_with_engines(request, engines)
    return QuickRecipe(quick.document, (*chooser.assumptions, *quick.assumptions))


def draft_with_engines(request: ModelRequest, engines: Sequence[Sequence[str]]) -> QuickRecipe:
    """Return the recipe where the engines of each model are known; nothing is looked at.

    Raises:
        InputError: A model is named twice, or there are too few runs to compare two.
    """
    _refuse_twice(request.models)
    sides = _sides(request.models, engines)
    repeats = request.repeats or (_PAIRS if sides else _REPEATS)
    if sides and repeats < FEWEST_RUNS:
        hint = f"--repeats {FEWEST_RUNS} or more (default: {_PAIRS})"
        raise InputError(f"--repeats {repeats}: two models need at least {FEWEST_RUNS} runs each", hint=hint)
    matrix = _list_several(request) if sides else _matrix_of(request.models, engines) | _list_several(request)
    workload = _workload(request, engines[0][0])
    document: dict[str, Any] = {"name": join_as_name([_name_of(model) for model in request.models])}
    document["workload"] = {key: value for key, value in workload.items() if f"workload.{key}" not in matrix}
    document |= {"matrix": matrix} if matrix else {}
    document |= {"duet": sides | {"pairs": repeats}} if sides else {}
    document["measure"] = _measure(request, repeats) | ({} if sides else {"repeats": repeats})
    return QuickRecipe(document, tuple(_assume_settings(request, repeats)))


def _refuse_twice(models: Sequence[str]) -> None:
    twice = next((one for one in models if models.count(one) > 1), None)
    if twice is not None:
        raise InputError(f"{twice} is named twice", hint="name two different models")


def _workload(request: ModelRequest, engine: str) -> dict[str, Any]:
    """Return the workload with all that has one value."""
    found: dict[str, Any] = {"kind": "model", "model": request.models[0], "engine": engine}
    found |= {"unit": request.units[0]} if request.units else {}
    found |= {"batch_size": request.batch_sizes[0]} if request.batch_sizes else {}
    found |= {"threads": request.threads[0]} if request.threads else {}
    found |= {"precision": request.precision} if request.precision else {}
    shapes = {name: list(shape) for name, shape in request.shapes.items()}
    return found | ({"inputs": {"shapes": shapes}} if shapes else {})


def _list_several(request: ModelRequest) -> dict[str, Any]:
    """Return the axes of settings that have several values."""
    given: dict[str, Sequence[Any]] = {
        "workload.unit": request.units, "workload.batch_size": request.batch_sizes, "workload.threads": request.threads,
    }  # fmt: skip
    return {path: list(values) for path, values in given.items() if len(values) > 1}


def _sides(models: Sequence[str], engines: Sequence[Sequence[str]]) -> dict[str, dict[str, str]] | None:
    """Return both sides of a duet where there are two models, each on one engine."""
    if len(models) != 2 or any(len(one) != 1 for one in engines):
        return None
    by_side = {side: {_MODEL: model} for side, model in zip("ab", models, strict=True)}
    if engines[0] != engines[1]:
        for side, (engine,) in zip("ab", engines, strict=True):
            by_side[side][_ENGINE] = engine
    return by_side


def _matrix_of(models: Sequence[str], engines: Sequence[Sequence[str]]) -> dict[str, Any]:
    """Return the axes of models and engines; combinations that an engine cannot read are left out."""
    together = list(dict.fromkeys(name for one in engines for name in one))
    matrix: dict[str, Any] = {_MODEL: list(models)} if len(models) > 1 else {}
    matrix |= {_ENGINE: together} if len(together) > 1 else {}
    wrong = [
        {_MODEL: model, _ENGINE: name}
        for model, mine in zip(models, engines, strict=True)
        for name in together
        if name not in mine
    ]
    return matrix | ({"exclude": wrong} if wrong else {})


def _measure(request: ModelRequest, repeats: int) -> dict[str, Any]:
    time_ns = request.time_ns or _TIME_NS
    # With a time and no number, as many inferences as fit.
    runs = request.runs or (UNLIMITED_RUNS if request.time_ns else "auto")
    most_ns = max(10**6, time_ns // repeats // 10**6 * 10**6)
    return {"runs": runs, "max_time": duration_text(most_ns)}


def _assume_settings(request: ModelRequest, repeats: int) -> list[Assumption]:
    found = []
    if not request.units:
        found.append(Assumption(what="unit cpu", flag="--unit NAME", key="workload.unit"))
    if not request.batch_sizes:
        found.append(Assumption(what="batch 1", flag="--batch N", key="workload.batch_size"))
    if not request.threads:
        found.append(Assumption(what="threads: every CPU", flag="--threads N", key="workload.threads"))
    if request.precision is None:
        found.append(
            Assumption(what="precision: what the engine chooses", flag="--precision fp32", key="workload.precision")
        )
    if request.runs is None and request.time_ns is None:
        counted = f"{Measure().least_runs} to {Measure().most_runs} inferences"
        what = f"{repeats} fresh processes of {counted}, {duration_text(_TIME_NS)} of measuring at most"
        found.append(Assumption(what=what, flag="--runs N, --time 60s", key="measure.runs, measure.max_time"))
    return found


def _ending_of(model: str, cache: Path, base: Path) -> str:
    """Return how the name of a model's file ends, after it was fetched and found to hold something."""
    plugins.target(plugins.MODELS, scheme_of(model))
    path = _plain_folder(model, base)
    if path is not None:
        raise InputError(f"{path} is a folder", hint=_describe_contents(path), code="format_unavailable")
    options = FetchOptions(cache=cache, formats=(), base=base, policy=policy_of(os.environ))
    options.policy.check_scheme(model)
    files = source_of(model).fetch(model, options, lambda *_: None)
    if files.path.is_file() and files.path.stat().st_size == 0:
        raise InputError(
            f"{files.path} is empty", hint="the file is incomplete: export or copy it again", code="damaged_model"
        )
    return files.path.suffix.lower()


def _is_offered(model: str, formats: tuple[str, ...], cache: Path, base: Path) -> bool:
    """Return whether a model's source has it in one of these formats too, as the zoo has its models."""
    source = source_of(model)
    if not isinstance(source, LooksUpModels):
        return False
    try:
        source.look_up(model, FetchOptions(cache=cache, formats=formats, base=base, policy=policy_of(os.environ)))
    except CapacityError:
        return False
    return True


def _plain_folder(model: str, base: Path) -> Path | None:
    """Return a folder that is no model: its name ends as no format does."""
    if scheme_of(model) != "file" or not model.strip():
        return None
    path = base / Path(model.removeprefix("file:")).expanduser()
    return path if path.is_dir() and path.suffix.lower() not in model_endings() else None


def _describe_contents(folder: Path) -> str:
    names = sorted(item.name for item in folder.iterdir() if item.suffix.lower() in model_endings())[:3]
    return f"name a model in it: {', '.join(str(folder / name) for name in names)}" if names else "name a model file"


def _name_of(model: str) -> str:
    """Return what an experiment on a model is called: the name of its file, or of the model in the zoo."""
    last = model.partition("?")[0].rstrip("/").rpartition("/")[2]
    scheme, colon, rest = last.partition(":")
    name = rest if colon and len(scheme) > 1 else last
    return plain_name(Path(name).stem if Path(name).suffix.lower() in model_endings() else name)
