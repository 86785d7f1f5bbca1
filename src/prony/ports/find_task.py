"""Find the task that a workload names, check the options of plug-ins as strictly as the recipe, resolve their paths."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from prony.errors import InputError
from prony.model.validation_words import describe_invalid_value
from prony.ports import plugins
from prony.ports.driver import Driver, Task
from prony.ports.service import Service

# The marks of options that are one path and nothing else.
_WHOLE = (True, "slash", "there")
# The mark of one that is a command: those of its words that are files beside the recipe are paths.
_COMMAND = "command"
_SYNTHETIC = "synthetic"


def find_task(name: str | None, prompts: Mapping[str, Any]) -> tuple[Task, Any]:
    """Return the task and its options; a name that no plug-in has or an option that it does not take is refused."""
    task: Task = plugins.load_plugin(plugins.TASKS, name or _SYNTHETIC)()
    return task, read_plugin_options(task, prompts, "workload.prompts")


def read_plugin_options(plugin: Driver | Task | Service, written: Mapping[str, Any], place: str) -> Any:
    """Return the plug-in's options, checked as strictly as the recipe itself.

    Raises:
        InputError: A key is not known, or its value is wrong.
    """
    try:
        return plugin.Options.model_validate_json(json.dumps(written), strict=True)
    except ValidationError as exc:
        first = exc.errors(include_url=False)[0]
        where = ".".join([place, *map(str, first["loc"])])
        known = ", ".join(plugin.Options.model_fields)
        if first["type"] == "extra_forbidden":
            near = plugins.nearest(str(first["loc"][-1]), plugin.Options.model_fields)
            hint = f"did you mean {near}?" if near else f"{plugin.name} takes: {known or 'nothing'}"
            raise InputError(f"{where}: unknown key", hint=hint, code="recipe") from exc
        raise InputError(
            f"{where}: {describe_invalid_value(first)}", hint=f"{plugin.name} takes: {known}", code="recipe"
        ) from exc


def make_options_absolute(options: Mapping[str, Any], kind: Any, base: Path) -> dict[str, Any]:
    """Return options with their paths made absolute: those that the options of the plug-in mark as such."""
    marks = {name: (field.json_schema_extra or {}).get("path") for name, field in kind.model_fields.items()}
    paths = {name: way for name, way in marks.items() if way in (*_WHOLE, _COMMAND)}
    return {
        name: _absolute(value, base, paths[name]) if name in paths and isinstance(value, str) and value else value
        for name, value in options.items()
    }


def _absolute_word(word: str, base: Path) -> str:
    """Return a word of a command with its path made absolute; `FILE.py:FUNCTION` names a function of a file."""
    file, colon, name = word.rpartition(":")
    if colon and file.endswith(".py") and name.isidentifier():
        return f"{_absolute(file, base, 'there')}:{name}"
    return _absolute(word, base, "there")


def _absolute(value: str, base: Path, way: bool | str) -> str:
    """Return a path made absolute; what may be a name too is one where it has no slash, or where nothing lies there."""
    if way == _COMMAND:
        return shlex.join(_absolute_word(word, base) for word in shlex.split(value))
    path = (base / Path(value).expanduser()).absolute()
    is_name = (way == "slash" and "/" not in value) or (way == "there" and not path.exists())
    return value if is_name else str(path)
