"""Run a recipe on this machine, and show it while it runs."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from prony.ports.workload import kind_of

if TYPE_CHECKING:
    from prony.cli.arguments import RunOutput
    from prony.load.processes import ClientProcesses
    from prony.model.experiment import Experiment
    from prony.model.job import Job
    from prony.model.recipe import Recipe
    from prony.recipe import LoadedRecipe


def run_recipe_here(loaded: LoadedRecipe, output: RunOutput, *, base: Path | None = None, waits_s: float = 0.0) -> int:
    """Run a recipe to its end and show it; relative paths in it are relative to `base`, or else to its own folder.

    Where others use the machine it is said at once, and waited for `waits_s` seconds at most.
    """
    from prony.cli.busy_machine import heed_others, watch_others

    watch = watch_others()
    tell_notes(loaded.notes)
    _note_server_only(loaded)
    _note_containers(loaded)
    with _clients_ahead(loaded.recipe) as clients:  # first of all: they import while this process does
        with pause_garbage_collection():
            from prony.app.bench import Bench
            from prony.cli.finish_run import finish
            from prony.cli.progress import following
        heed_others(watch, waits_s)
        with Bench.open() as bench:
            with following() as follower:

                def begin(experiment: Experiment, jobs: Sequence[Job]) -> None:
                    tell_notes(experiment.notes[len(loaded.notes) :])  # the others are told already
                    follower.start(experiment, jobs)

                data = bench.run(loaded, base=base, on_start=begin, on_event=follower.event, clients=clients)
            return finish(data, output, write_report=bench.experiments.write_report)


def tell_notes(notes: Sequence[str]) -> None:
    """Say what of a text in another program's format is not honoured."""
    from prony.cli.output import print_note
    from prony.report.escaping import one_line

    for note in notes:
        print_note(one_line(f"note: {note}"))


def _note_server_only(loaded: LoadedRecipe) -> None:
    """Say what of a recipe that runs here only a server could do."""
    from prony.cli.output import print_note

    path = loaded.path
    if loaded.recipe.schedule is not None:
        print_note(f"note: this runs once; a schedule needs a server: prony schedule add {path} on its machine, or "
                   f"prony run {path} --server URL")  # fmt: skip
    if loaded.recipe.alarms:
        print_note(f"note: no alarms for this run; alarms need a server: prony run {path} --server URL")


def _note_containers(loaded: LoadedRecipe) -> None:
    """Say which images are not used, before anything runs."""
    tell_notes(kind_of(loaded.recipe.workload).prepare.notes(loaded.jobs("run"), "this machine"))


@contextmanager
def pause_garbage_collection() -> Iterator[None]:
    """Import what the block imports without searching it for garbage again and again: it all stays."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def _clients_ahead(recipe: Recipe) -> ClientProcesses:
    from prony.load.processes import ClientProcesses

    ahead = kind_of(recipe.workload).prepare.client_processes(recipe)
    return ClientProcesses(ahead=ahead) if ahead else ClientProcesses()
