"""Submit a recipe and its folder of scripts to a server, and follow it to its end like one that runs here."""

from __future__ import annotations

import os
import tempfile
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prony.cli.arguments import RunOutput
from prony.cli.columns import format_next
from prony.cli.finish_run import finish_there
from prony.cli.output import print_json, print_note, print_text
from prony.cli.remote import again, connect_server
from prony.cli.run_here import tell_notes
from prony.cli.watch import follow_experiment
from prony.errors import InputError
from prony.model.queue import ExperimentView, Submission
from prony.ports.workload import kind_of

if TYPE_CHECKING:
    from prony.client import Client
    from prony.ports.use_cases import UseCases
    from prony.recipe import LoadedRecipe


_PIECE = 2**20


def upload_scripts(bench: UseCases, loaded: LoadedRecipe) -> list[str]:
    """Bring the folder that a script's recipe names; return what to set in the recipe, or nothing."""
    from prony.runner.script_folders import REFERENCE, directory_of, pack_folder

    work = loaded.recipe.workload
    if "workload.directory" in loaded.recipe.matrix.axes:
        raise InputError(
            "the matrix varies workload.directory, and one folder travels with a recipe",
            hint="name a folder that holds all of them, and vary workload.command",
            code="recipe",
        )
    if work.folder is None or REFERENCE.fullmatch(work.folder):
        return []
    base = loaded.path.parent if loaded.path is not None else Path.cwd()
    folder = directory_of(work.folder, base)
    with tempfile.TemporaryDirectory(prefix="prony-scripts-") as scratch:
        tar = Path(scratch) / "scripts.tar"
        sha256 = pack_folder(folder, tar)
        bench.scripts.keep(sha256, _pieces(tar if tar.exists() else folder))
    return [f"workload.directory=sha256:{sha256}"]


def _pieces(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while piece := file.read(_PIECE):
            yield piece


_MOST = 100
AGENTS_MACHINE = "the agent's machine"


def submit(loaded: LoadedRecipe, overrides: Sequence[str], output: RunOutput, options: Namespace) -> int:
    """Submit a recipe that was read here to the server that the options name; follow it, unless --detach is given."""
    if options.priority is not None and not -_MOST <= options.priority <= _MOST:
        raise InputError(f"--priority {options.priority} lies outside -{_MOST} to {_MOST}")
    with connect_server(options) as client:
        every = [*overrides, *upload_scripts(client, loaded)]
        view = client.experiments.submit(submission_of(loaded, every, priority=options.priority))
        prepare = kind_of(loaded.recipe.workload).prepare
        tell_notes((*view.experiment.notes, *prepare.notes(loaded.jobs("run"), AGENTS_MACHINE)))
        if not options.detach:
            return see_through(client, view, output, options)
        schedule = _note_schedule(client, view, options)
    if output.as_json:
        print_json(view.model_dump(mode="json") | schedule)
    else:
        print_text(view.experiment.id)
        print_note(f"submitted; prony watch {view.experiment.id}{again(options)} follows it")
    return 0


def submission_of(loaded: LoadedRecipe, overrides: Sequence[str], *, priority: int | None = None) -> Submission:
    """Return a recipe as it travels: its text as it was written, for the server reads it anew, and the repository that
    it lies in."""
    from prony.instruments.repository import read_git

    name = loaded.path.name if loaded.path else "recipe.yaml"
    reading = read_git(loaded.path.parent if loaded.path else Path.cwd(), os.environ)
    if reading.trouble:
        print_note(f"note: {reading.trouble}")
    return Submission(
        text=loaded.text, name=name, overrides=tuple(overrides), priority=priority, git=reading.git
    )  # fmt: skip


def see_through(
    client: Client,
    view: ExperimentView,
    output: RunOutput,
    options: Namespace,
    *,
    closing: Callable[[int], int] | None = None,
) -> int:
    """Follow an experiment that was just made to its end, and let `closing` show what comes below its numbers; return
    the exit code."""
    schedule = _note_schedule(client, view, options)
    for model in _paths(view):
        print_note(f"note: {model} is a path: it must lie on the agents too, and they must allow it; zoo: and https:// "
                   "work everywhere")  # fmt: skip
    ended = follow_experiment(client, view.experiment.id, cancels=True)
    return finish_there(ended, output, options, beside=schedule, closing=closing)


def _note_schedule(client: Client, view: ExperimentView, options: Namespace) -> dict[str, Any]:
    """Say which schedule was made with an experiment, where one was; return it as `--json` tells it."""
    if view.experiment.schedule_id is None:
        return {}
    made = client.schedules.get(view.experiment.schedule_id)
    print_note(
        f"note: schedule {made.name} ({made.id}) runs it again at {made.timing.cron!r}{format_next(made)}: "
        f"prony schedule show {made.name}{again(options)}"
    )
    return {"schedule": made.model_dump(mode="json", exclude={"submission"})}


def _paths(view: ExperimentView) -> list[str]:
    """Return the models that are files of some machine."""
    recipe = view.experiment.recipe
    return kind_of(recipe.workload).prepare.local_files(recipe)
