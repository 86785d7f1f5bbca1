"""A recipe that was read in, its experiment on this machine out: shown while it runs, and its exit code returned."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from prony.load.processes import Clients
    from prony.model.recipe import Recipe
    from prony.recipe import Loaded


def run_here(loaded: Loaded, options: Namespace, *, base: Path | None = None) -> int:
    """Run a recipe to its end; relative paths in it are relative to `base`, or else to its own folder."""
    with _clients_ahead(loaded.recipe) as clients:  # first of all: they import while this process does
        from prony.app.api import Bench
        from prony.cli.outcome import finish
        from prony.cli.progress import following

        with Bench.open() as bench:
            with following() as follower:
                dossier = bench.run(
                    loaded, base=base, on_start=follower.start, on_event=follower.event, clients=clients
                )
            return finish(dossier, as_json=options.json, report=bench.write_report if options.report else None)


def _clients_ahead(recipe: Recipe) -> Clients:
    from prony.load.processes import Clients
    from prony.model.recipe import ServiceWorkload

    if not isinstance(recipe.workload, ServiceWorkload):
        return Clients()
    return Clients(ahead=recipe.load.clients.processes or 1)
