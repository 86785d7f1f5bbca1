"""Targets of this home: read, add and remove them in `targets.toml`, and open the executor of one."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from prony.errors import ConflictError, InputError, NotFoundError
from prony.model.place import QueueWish
from prony.model.target import TARGET_NAME, OptionValue, Target
from prony.model.validation_words import describe_invalid_value
from prony.ports import plugins
from prony.ports.clock import Clock, SystemClock
from prony.ports.executor import Executor, ExecutorSite
from prony.store.home import Home
from prony.store.lock import hold_file_lock

FILE = "targets.toml"
HERE = "local"
_BY_ADDRESS = "ssh:"


def targets_path(home: Home) -> Path:
    """Return where the targets of a home are written."""
    return home.root / FILE


def read_targets(home: Home) -> dict[str, Target]:
    """Return every target by name.

    Raises:
        InputError: the file cannot be read, or an option of a target is wrong.
    """
    path = targets_path(home)
    if not path.exists():
        return {}
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as exc:
        raise InputError(f"{path}: {exc}", hint="it is TOML: a table for each target") from exc
    return {name: check_target_options(name, table, str(path)) for name, table in document.items()}


def check_target_options(name: str, table: Any, source: str) -> Target:
    """Return a target as it is written, or say which of its options is wrong.

    Raises:
        InputError: the name, the kind or an option is wrong.
    """
    if not re.match(TARGET_NAME, name) or name == HERE:
        raise InputError(
            f"{source}: {name!r} is not a valid name for a target",
            hint="lower-case letters, digits and -, at most 32; not local",
        )
    options = dict(table) if isinstance(table, Mapping) else {}
    kind = options.pop("kind", None)
    if not isinstance(kind, str):
        raise InputError(
            f"{source}: {name} has no kind", hint=f"one of {', '.join(plugins.find_plugins(plugins.EXECUTORS))}"
        )
    executor = plugins.load_plugin(plugins.EXECUTORS, kind)
    try:
        executor.Options.model_validate(options)
    except ValidationError as exc:
        first = exc.errors()[0]
        where = ".".join(map(str, first["loc"]))
        near = plugins.nearest(where, executor.Options.model_fields) if first["type"] == "extra_forbidden" else None
        hint = f"did you mean {near}?" if near else f"options of {kind}: {', '.join(executor.Options.model_fields)}"
        raise InputError(
            f"{source}: {name}.{where}: {describe_invalid_value(first)}", hint=hint, code="bad_target"
        ) from exc
    return Target(name=name, kind=kind, options={key: _freeze(value) for key, value in options.items()})


def find_target(home: Home, name: str) -> Target:
    """Return the target of a name, or of an address as in `ssh:host`.

    Raises:
        NotFoundError: there is no such target.
    """
    if name.startswith(_BY_ADDRESS):
        host = name.removeprefix(_BY_ADDRESS)
        written = "ssh-" + re.sub(r"[^a-z0-9]+", "-", host.lower())[:28].strip("-")
        return check_target_options(written, {"kind": "ssh", "ssh": host}, name)
    known = read_targets(home)
    if name in known:
        return known[name]
    near = plugins.nearest(name, known)
    hint = f"did you mean {near}?" if near else f"known: {', '.join((HERE, *known))}; prony targets add makes one"
    raise NotFoundError(f"no target is called {name!r}", hint=hint, code="unknown_target")


def ask_target(target: Target, wish: QueueWish | None) -> Target:
    """Return a target with what a recipe asks of its queue, where its kind has that option and its owner is silent.

    Raises:
        InputError: what is asked cannot be an option.
    """
    if wish is None:
        return target
    known = plugins.load_plugin(plugins.EXECUTORS, target.kind).Options.model_fields
    asked = {name: value for name, value in wish.model_dump(exclude_none=True).items() if name in known}
    options = asked | target.options
    return check_target_options(target.name, {"kind": target.kind, **options}, "place.queue")


def target_names(wanted: str | None, home: Home) -> list[str]:
    """Return the names that a recipe may give as its target, beside `local`; an address is its own name."""
    if wanted is None or wanted == HERE:
        return []
    return [wanted] if wanted.startswith(_BY_ADDRESS) else list(read_targets(home))


def add_target(home: Home, name: str, options: Mapping[str, OptionValue]) -> Target:
    """Write a new target below the others.

    Raises:
        ConflictError: the name is taken.
    """
    path = targets_path(home)
    target = check_target_options(name, options, str(path))
    home.create()
    with hold_file_lock(home.lock):
        if name in read_targets(home):
            raise ConflictError(
                f"there is a target {name} already", hint=f"prony targets remove {name}, or edit {path}"
            )
        before = path.read_text(encoding="utf-8") if path.exists() else ""
        lines = [f"[{name}]", *(f"{key} = {json.dumps(value)}" for key, value in options.items())]
        gap = "\n" if before else ""
        _write(path, before + gap + "\n".join(lines) + "\n")
    return target


def remove_target(home: Home, name: str) -> None:
    """Take a target out of the file and leave the rest of it as it is.

    Raises:
        InputError: it is an address, or not written as a table of its own.
        NotFoundError: there is no such target.
    """
    if name.startswith(_BY_ADDRESS):
        raise InputError(f"{name} is an address, not a stored target", hint="`prony targets list` shows those")
    path = targets_path(home)
    with hold_file_lock(home.create().lock):
        find_target(home, name)
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
        heading = re.compile(rf"\s*\[\s*\"?{re.escape(name)}\"?\s*\]")
        begin = next((at for at, line in enumerate(lines) if heading.match(line)), None)
        if begin is None:
            raise InputError(f"{name} has no [{name}] line in {path}", hint=f"remove {name} from {path} by hand")
        end = next((at for at in range(begin + 1, len(lines)) if lines[at].lstrip().startswith("[")), len(lines))
        _write(path, "".join(lines[:begin] + lines[end:]))


def open_executor(target: Target, home: Home, clock: Clock | None = None) -> Executor:
    """Return what goes to a target."""
    site = ExecutorSite(folder=home.root / "ssh", clock=clock or SystemClock())
    executor: Executor = plugins.load_plugin(plugins.EXECUTORS, target.kind)(target, site)
    return executor


# What two targets must have in common for one job to have nodes of both: how the cluster is reached, and the folder.
_SAME_CLUSTER = ("ssh", "ssh_options", "prefix", "python", "setup")


def check_same_cluster(first: Target, second: Target) -> None:
    """Refuse two targets that cannot give nodes to one job.

    Raises:
        InputError: they are of different kinds, or differ in how they are reached or where Prony lies.
    """
    same = [first.kind == second.kind, *(first.options.get(name) == second.options.get(name) for name in _SAME_CLUSTER)]
    if not all(same):
        raise InputError(
            f"{first.name} and {second.name} cannot share a job: they are not on the same cluster",
            hint=f"two targets share one if they have the same kind, {', '.join(_SAME_CLUSTER)}",
            code="clients_apart",
        )


def joins_nodes(target: Target) -> bool:
    """Can the target run a job on several nodes at once?"""
    executor: type[Executor] = plugins.load_plugin(plugins.EXECUTORS, target.kind)
    return executor.joins_nodes


def _freeze(value: Any) -> OptionValue:
    return tuple(map(str, value)) if isinstance(value, list | tuple) else value


def _write(path: Path, text: str) -> None:
    unfinished = path.with_name(f".{path.name}.tmp")
    unfinished.write_text(text, encoding="utf-8")
    unfinished.replace(path)
