"""Run a recipe that a command wrote of its options, here or on the server that they name."""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prony.cli.arguments import RunOutput, wait_quiet_s
from prony.cli.run_here import pause_garbage_collection, run_recipe_here
from prony.errors import InputError

if TYPE_CHECKING:
    from prony.recipe import LoadedRecipe


def read_written(written: Mapping[str, Any], options: Namespace) -> LoadedRecipe:
    """Check a recipe that a command wrote of its options, as one that a user wrote."""
    with pause_garbage_collection():
        from prony.recipe import loads
        from prony.recipe.problems import OPTIONS
    return loads(json.dumps(written), "json", OPTIONS, options.set)


def run_written(written: Mapping[str, Any], options: Namespace, *, is_remote: bool) -> int:
    """Run a recipe that a command wrote of its options: on the server that they name, or here."""
    loaded, output = read_written(written, options), RunOutput.of(options)
    if is_remote:
        from prony.cli.submit import submit

        return submit(loaded, options.set, output, options)
    if options.detach or options.priority is not None:
        raise InputError("--detach and --priority need a server", hint="use --server or set PRONY_SERVER")
    return run_recipe_here(loaded, output, base=Path.cwd(), waits_s=wait_quiet_s(options))
