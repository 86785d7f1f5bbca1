"""Submit a recipe to a server or to a target, and follow it to its end like one that runs here.

At a target, Ctrl-C leaves and the run goes on.
"""

from __future__ import annotations

import os
import tempfile
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prony.cli.arguments import RunOutput
from prony.cli.columns import format_next
from prony.cli.finish_run import finish, finish_there
from prony.cli.output import print_answer, print_json, print_note, print_text
from prony.cli.remote import again, connect_server, server_address
from prony.cli.run_here import tell_notes
from prony.cli.watch import follow_experiment
from prony.errors import InputError, TransportError
from prony.model.queue import ExperimentView, Submission
from prony.ports.workload import kind_of
from prony.runner.context import interrupt_on_term

if TYPE_CHECKING:
    from prony.app.bench import Bench
    from prony.client import Client
    from prony.ports.use_cases import UseCases
    from prony.recipe import LoadedRecipe


def upload_scripts(bench: UseCases, loaded: LoadedRecipe) -> list[str]:
    """Bring the folder that a script's recipe names; return what to set in the recipe, or nothing."""
    from prony.client.transfer_experiment import read_pieces
    from prony.runner.script_folders import REFERENCE, directory_of, pack_folder

    work = loaded.recipe.workload
    if "workload.directory" in loaded.recipe.matrix.axes:
        raise InputError(
            "the matrix varies workload.directory, but only one folder can be sent with a recipe",
            hint="use one folder that holds all of them, and vary workload.command",
            code="recipe",
        )
    if work.folder is None or REFERENCE.fullmatch(work.folder):
        return []
    base = loaded.path.parent if loaded.path is not None else Path.cwd()
    folder = directory_of(work.folder, base)
    with tempfile.TemporaryDirectory(prefix="prony-scripts-") as scratch:
        tar = Path(scratch) / "scripts.tar"
        sha256 = pack_folder(folder, tar)
        bench.scripts.keep(sha256, read_pieces(tar if tar.exists() else folder))
    return [f"workload.directory=sha256:{sha256}"]


_MOST = 100
AGENTS_MACHINE = "the agent's machine"


def submit(loaded: LoadedRecipe, overrides: Sequence[str], output: RunOutput, options: Namespace) -> int:
    """Submit a recipe that was read here to the server that the options name; follow it, unless --detach is given."""
    if options.priority is not None and not -_MOST <= options.priority <= _MOST:
        raise InputError(
            f"--priority {options.priority} is outside -{_MOST} to {_MOST}",
            hint="the usual priority is 0; higher runs first",
        )
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
        print_note(f"note: {model} is a path: the file must also exist on the agents, and "
                   "they must allow it; zoo: and https:// work everywhere")  # fmt: skip
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


def run_recipe_on_target(loaded: LoadedRecipe, output: RunOutput, *, detach: bool = False) -> int:
    """Submit a recipe to the target that it names, and follow it unless `detach`."""
    from prony.app.bench import Bench

    tell_notes(loaded.notes)
    with Bench.open() as bench:
        return place_recipe(bench, loaded, output, detach=detach)


def place_recipe(
    bench: Bench,
    loaded: LoadedRecipe,
    output: RunOutput,
    *,
    base: Path | None = None,
    rerun_of: str | None = None,
    detach: bool = False,
) -> int:
    """Keep an experiment of a recipe that names a target, submit it and follow it; relative paths are of `base`."""
    from prony.app.placing import RemoteRuns

    experiment, _ = RemoteRuns(bench.store).plan(loaded, base=base, rerun_of=rerun_of)
    tell_notes(experiment.notes[len(loaded.notes) :])
    if loaded.recipe.place.where:
        tell_notes(["place.where is not checked at a target; the target's options choose the node"])
    return follow_placed(bench, experiment.id, output, detach=detach)


def follow_placed(bench: Bench, experiment_id: str, output: RunOutput, *, detach: bool = False) -> int:
    """Bring an experiment that is at a target to its end and show it; leaving is no end."""
    from prony.app.placing import RemoteRuns
    from prony.cli.progress import following

    runs = RemoteRuns(bench.store)
    with following(elsewhere=True) as follower, interrupt_on_term():
        follower.start(bench.store.experiment(experiment_id), bench.store.jobs(experiment_id))
        try:
            data = runs.follow(experiment_id, follower, until_submitted=detach)
        except KeyboardInterrupt:
            follower.note(
                f"detached; `prony watch {experiment_id}` follows it again, `prony cancel {experiment_id}` stops it"
            )
            raise
        except TransportError:
            follower.note(f"whether it was submitted is unknown: `prony watch {experiment_id}` finds out and goes on")
            raise
    if data is None:
        print_text(experiment_id)
        return 0
    return finish(data, output, write_report=bench.experiments.write_report)


def watch_placed(options: Namespace) -> int | None:
    """Follow an experiment of this home that is at a target; None where it is not one, or a server is meant."""
    with _open_placed(options, options.experiment) as found:
        if found is None:
            return None
        bench, experiment_id = found
        return follow_placed(bench, experiment_id, RunOutput(as_json=options.json))


def cancel_placed(options: Namespace) -> bool:
    """Stop an experiment of this home that is at a target; False where it is not one, or a server is meant."""
    from prony.app.placing import RemoteRuns

    with _open_placed(options, options.id) as found:
        if found is None:
            return False
        bench, experiment_id = found
        RemoteRuns(bench.store).cancel(experiment_id)
        then = f"experiment {experiment_id} was asked to stop; prony watch {experiment_id} fetches what was measured"
        print_answer({"cancelled": experiment_id, "kind": "experiment"}, then, as_json=options.json)
        return True


@contextmanager
def _open_placed(options: Namespace, text: str) -> Iterator[tuple[Bench, str] | None]:
    """Open the home and find the experiment there, if a target runs it; nothing is opened where a server is named."""
    from prony.app.bench import Bench
    from prony.app.placing import RemoteRuns
    from prony.store.home import home

    if server_address(options) or not home().database.exists():
        yield None
        return
    with Bench.open() as bench:
        try:
            experiment_id = bench.experiments.find(text)
        except InputError:  # it may be one of a server
            experiment_id = ""
        is_placed = bool(experiment_id) and RemoteRuns(bench.store).is_placed(experiment_id)
        yield (bench, experiment_id) if is_placed else None
