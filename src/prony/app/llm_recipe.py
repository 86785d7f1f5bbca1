"""Make a recipe that measures a language model, and choose engines that load its format."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from prony.errors import InputError


@dataclass(frozen=True)
class LlmRequest:
    """A language model and how it is measured.

    `lists` are keys of the workload with the values that were asked for: several are an axis. `others` are further
    keys, each with one value.
    """

    model: str
    lists: Mapping[str, tuple[Any, ...]]
    passes: int = 3
    runs: int = 5
    others: Mapping[str, Any] = field(default_factory=dict)


def draft_llm_recipe(request: LlmRequest) -> dict[str, Any]:
    """Return the recipe as a document."""
    asked = request.lists
    workload: dict[str, Any] = {"kind": "llm", "model": request.model, "passes": request.passes}
    workload |= {name: values[0] for name, values in asked.items()} | dict(request.others)
    axes: dict[str, Any] = {f"workload.{name}": list(values) for name, values in asked.items() if len(values) > 1}
    if {"workload.draft", "workload.draft_tokens"} <= set(axes) and "none" in asked["draft"]:
        # Without guesses their number says nothing.
        same = [{"workload.draft": "none", "workload.draft_tokens": one} for one in asked["draft_tokens"][1:]]
        axes["exclude"] = same
    return {"name": "llm", "workload": workload, "matrix": axes, "measure": {"repeats": request.runs}}


def fitting_engines(model: str, files: Collection[str] = (), *, is_file: bool = False) -> list[str]:
    """Return the engines that load a model's format, the one that knows it best first.

    Args:
        model: Its name in a recipe.
        files: The names in its folder, where it is one that can be looked into.
        is_file: It is known to be a file: its ending alone says its format.

    Raises:
        InputError: No engine loads it.
    """
    from prony.ports import plugins
    from prony.ports.llm import LlmEngine
    from prony.ports.models import FOLDER, find_folder_formats

    ending = Path(model).suffix.lower()
    is_any = model.startswith("zoo:")
    found: dict[str, tuple[str, ...]] = {}
    for name in plugins.find_plugins(plugins.ENGINES):
        engine = plugins.load_plugin(plugins.ENGINES, name)
        if issubclass(engine, LlmEngine):
            found[name] = engine.formats
    is_known = bool(ending) and any(ending in formats for formats in found.values())
    wanted = [ending] if is_known or is_file else [FOLDER]
    wanted = find_folder_formats(set(files)) or wanted
    places = {
        name: min((wanted.index(one), formats.index(one)) for one in formats if one in wanted)
        for name, formats in found.items()
        if set(wanted) & set(formats)
    }
    fits = [name for name in found if name in places or (is_any and name != "null")]
    if not fits:
        known = ", ".join(sorted({one for formats in found.values() for one in formats}))
        raise InputError(f"no engine supports {model}", hint=f"supported formats: {known}", code="format_unavailable")
    return sorted(fits, key=lambda name: places.get(name, (0, 0)))
