"""`prony run`: run a recipe here or on a server, and show its numbers."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from prony.cli.arguments import (
    RunOutput,
    add_busy,
    add_gates,
    add_json,
    add_no_container,
    add_report,
    add_set,
    add_submission,
    wait_quiet_s,
)

if TYPE_CHECKING:
    from prony.recipe import LoadedRecipe


def arguments(parser: ArgumentParser) -> None:
    """Run a recipe on this machine, on the agents of a server, or at a target. Ctrl-C stops and keeps completed
    measurements; at a target it only detaches, and `prony watch` reattaches."""
    parser.add_argument("recipe", type=Path, help="a recipe: .yaml, .toml or .json")
    add_set(parser)
    parser.add_argument(
        "--clients",
        metavar="N[,N...]",
        help="for a service: concurrent users; several values make a sweep, one job each",
    )
    parser.add_argument(
        "--on", metavar="TARGET",
        help="where to run, instead of place.on: a target from `prony targets`, ssh:HOST or local",
    )  # fmt: skip
    parser.add_argument(
        "--script", type=Path, metavar="PATH", help="for a script: its folder, a .tar of it or one file; same as "
        "--set workload.directory=PATH, "
        "relative to the current folder; a descriptor's folder keeps its name"
    )  # fmt: skip
    add_no_container(parser)
    add_json(parser)
    add_report(parser)
    add_gates(parser)
    add_busy(parser)
    parser.add_argument(
        "--github-summary", action="store_true", help="append a summary to the file in GITHUB_STEP_SUMMARY"
    )
    add_submission(parser, "a server or a target")


def command(options: Namespace) -> int:
    from prony.cli.remote import server_address
    from prony.cli.run_here import run_recipe_here

    output, waits_s = RunOutput.of(options), wait_quiet_s(options)
    is_remote = server_address(options) is not None
    if is_remote:
        _check_there(options)
    elif options.priority is not None:
        _refuse("--priority needs a server", "use --server URL or PRONY_SERVER, or leave out --priority")
    loaded, overrides = _load(options, here=not is_remote)
    if is_remote:
        from prony.cli.submit import submit

        return submit(loaded, overrides, output, options)
    if loaded.recipe.place.on not in (None, "local"):
        from prony.cli.submit import run_recipe_on_target

        _check_there(options)
        return run_recipe_on_target(loaded, output, detach=options.detach)
    if options.detach:
        _refuse("--detach needs a server or a target", "use --server, PRONY_SERVER or --on, or leave out --detach")
    return run_recipe_here(loaded, output, waits_s=waits_s)


def _load(options: Namespace, *, here: bool) -> tuple[LoadedRecipe, list[str]]:
    """Return the recipe as the options change it, and the overrides that they stand for."""
    from prony.cli.run_here import pause_garbage_collection

    with pause_garbage_collection():
        from prony.recipe import load
        from prony.recipe.overrides import anchor_overrides
    given = anchor_overrides(options.set, Path.cwd(), here=here)
    overrides = [*given, *([f"place.on={options.on}"] if options.on else [])]
    loaded = load(options.recipe, overrides)
    if options.script is not None:
        # What is relative to the recipe travels to a target; an absolute path would mean a folder there.
        base = options.recipe.parent if loaded.recipe.place.on not in (None, "local") else None
        overrides = [*_script(options.script, is_named=loaded.keeps_folder_name, base=base), *overrides]
        loaded = load(options.recipe, overrides)
    if options.clients is not None:
        overrides = [*overrides, *_clients(options.clients, loaded.users_of_client)]
        loaded = load(options.recipe, overrides)
    return loaded, overrides


def _clients(text: str, users_of_client: int) -> list[str]:
    """Return the overrides that `--clients 1,2,4` stands for."""
    from prony.errors import InputError

    try:
        counts = [int(word) * users_of_client for word in text.split(",")]
    except ValueError as exc:
        raise InputError(f"--clients {text}: must be whole numbers", hint="for example --clients 1,2,4,8") from exc
    if len(counts) == 1:
        return [f"load.closed.concurrency={counts[0]}"]
    return [f"matrix.load.closed.concurrency={counts}"]


def _script(path: Path, *, is_named: bool, base: Path | None) -> list[str]:
    """Return the overrides that `--script PATH` stands for: relative to here, as paths of a command line are.

    They are absolute, or lead from `base` to the same place.
    """
    import json
    import os

    place = path.expanduser().absolute()
    named = [f"workload.directory_name={json.dumps(place.resolve().name)}"] if is_named and place.is_dir() else []
    written = str(place) if base is None else os.path.relpath(place.resolve(), base.resolve())
    return [f"workload.directory={json.dumps(written)}", *named]


def _check_there(options: Namespace) -> None:
    from prony.errors import InputError

    if options.wait_quiet is not None:
        raise InputError("--wait-quiet works only for jobs on this machine", hint="leave it out")


def _refuse(what: str, hint: str) -> NoReturn:
    from prony.errors import InputError

    raise InputError(what, hint=hint)
