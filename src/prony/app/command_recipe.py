"""Make a recipe of commands: one alone, two that take turns, or more side by side."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

from prony.app.quick_recipe import QuickRecipe, join_as_name, plain_name
from prony.errors import InputError
from prony.model.assumption import Assumption

_EXECUTIONS = 10
_COMMAND = "workload.command"
# Words that only a shell understands.
_OF_SHELLS = frozenset(("|", "||", "&", "&&", ";", "<", ">", ">>", "2>", "2>&1"))


@dataclass(frozen=True)
class CommandRequest:
    """Commands to execute whole, with `{NAME}` in them for each value of a parameter; without a `directory`, in an
    empty folder."""

    commands: tuple[str, ...]
    parameters: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    runs: int | None = None
    warmup: int = 0
    directory: str | None = "."


def draft_command_recipe(request: CommandRequest) -> QuickRecipe:
    """Return the recipe of one command, of two that take turns, or of more side by side.

    Raises:
        InputError: A parameter is named in no command, or a command is empty.
    """
    commands = _fill_parameters(request)
    runs = request.runs or _EXECUTIONS
    workload: dict[str, Any] = {"kind": "script", "command": commands[0]}
    workload |= {} if request.directory is None else {"directory": request.directory, "copy_files": False}
    document: dict[str, Any] = {"name": join_as_name(list(dict.fromkeys(map(_program_of, request.commands))))}
    if len(commands) == 2:
        document["duet"] = {"a": {_COMMAND: commands[0]}, "b": {_COMMAND: commands[1]}, "pairs": max(5, runs)}
    document["workload"] = workload
    if len(commands) > 2:
        document["matrix"] = {_COMMAND: commands}
        del workload["command"]
    document["measure"] = {"repeats": runs, "warmup": request.warmup}
    found = []
    if request.runs is None:
        found.append(Assumption(what=f"{runs} executions", flag="--runs N", key="measure.repeats"))
    if not request.warmup:
        found.append(Assumption(what="no warm-up", flag="--warmup N", key="measure.warmup"))
    return QuickRecipe(document, (*found, *_assume_words(commands)))


def _fill_parameters(request: CommandRequest) -> list[str]:
    """Return every command with every combination of the parameters that it names."""
    for name in request.parameters:
        if not any(f"{{{name}}}" in command for command in request.commands):
            raise InputError(
                f"-L {name}: no command has {{{name}}} in it",
                hint=f"for example --command 'sleep {{{name}}}' -L {name} 1,2",
            )
    found: list[str] = []
    for command in request.commands:
        mine = [name for name in request.parameters if f"{{{name}}}" in command]
        for values in product(*(request.parameters[name] for name in mine)):
            filled = command
            for name, value in zip(mine, values, strict=True):
                filled = filled.replace(f"{{{name}}}", value)
            found.append(filled)
    return list(dict.fromkeys(found))


def _assume_words(commands: Sequence[str]) -> list[Assumption]:
    """Say where a word that means something to a shell is handed to the program like any other."""
    given = next((word for command in commands for word in shlex.split(command) if word in _OF_SHELLS), None)
    if given is None:
        return []
    what = f"no shell: {given} is passed to the program as it is"
    return [Assumption(what=what, flag="--command \"sh -c '...'\"", key=_COMMAND)]


def _program_of(command: str) -> str:
    try:
        words = shlex.split(command)
    except ValueError as exc:
        raise InputError(f"--command {command!r}: {str(exc).lower()}", hint="close the quote") from exc
    if not words or not words[0].strip():
        raise InputError("--command is empty", hint="as in --command 'python train.py'")
    script = next((word for word in words[1:] if Path(word).suffix in (".py", ".sh")), words[0])
    return plain_name(Path(script).stem)
