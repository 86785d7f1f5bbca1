"""Run a recipe at a target, follow it, and show its numbers; Ctrl-C leaves and the run goes on."""

from __future__ import annotations

import signal
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from prony.app.bench import Bench
    from prony.cli.arguments import RunOutput
    from prony.recipe import LoadedRecipe


def run_recipe_on_target(loaded: LoadedRecipe, output: RunOutput, *, detach: bool = False) -> int:
    """Submit a recipe to the target that it names, and follow it unless `detach`."""
    from prony.app.bench import Bench
    from prony.cli.run_here import tell_notes

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
    from prony.cli.run_here import tell_notes

    experiment, _ = RemoteRuns(bench.store).plan(loaded, base=base, rerun_of=rerun_of)
    tell_notes(experiment.notes[len(loaded.notes) :])
    if loaded.recipe.place.where:
        tell_notes(["place.where is not checked at a target: its options choose the node"])
    return follow_placed(bench, experiment.id, output, detach=detach)


def follow_placed(bench: Bench, experiment_id: str, output: RunOutput, *, detach: bool = False) -> int:
    """Bring an experiment that is at a target to its end and show it; leaving is no end."""
    from prony.app.placing import RemoteRuns
    from prony.cli.finish_run import finish
    from prony.cli.progress import following
    from prony.errors import TransportError

    runs = RemoteRuns(bench.store)
    with following(elsewhere=True) as follower, _terminating():
        follower.start(bench.store.experiment(experiment_id), bench.store.jobs(experiment_id))
        try:
            data = runs.follow(experiment_id, follower, until_submitted=detach)
        except KeyboardInterrupt:
            follower.note(
                f"left; `prony watch {experiment_id}` comes back to it, `prony cancel {experiment_id}` stops it"
            )
            raise
        except TransportError:
            follower.note(f"not submitted yet, or not known: `prony watch {experiment_id}` tries again, once")
            raise
    if data is None:
        from prony.cli.output import print_text

        print_text(experiment_id)
        return 0
    return finish(data, output, write_report=bench.experiments.write_report)


def watch_placed(options: Namespace) -> int | None:
    """Follow an experiment of this home that is at a target; None where it is not one, or a server is meant."""
    from prony.cli.arguments import RunOutput

    with _open_placed(options, options.experiment) as found:
        if found is None:
            return None
        bench, experiment_id = found
        return follow_placed(bench, experiment_id, RunOutput(as_json=options.json))


def cancel_placed(options: Namespace) -> bool:
    """Stop an experiment of this home that is at a target; False where it is not one, or a server is meant."""
    from prony.app.placing import RemoteRuns
    from prony.cli.output import print_answer

    with _open_placed(options, options.id) as found:
        if found is None:
            return False
        bench, experiment_id = found
        RemoteRuns(bench.store).cancel(experiment_id)
        then = f"experiment {experiment_id} is asked to stop; prony watch {experiment_id} fetches what was measured"
        print_answer({"cancelled": experiment_id, "kind": "experiment"}, then, as_json=options.json)
        return True


@contextmanager
def _open_placed(options: Namespace, text: str) -> Iterator[tuple[Bench, str] | None]:
    """Open the home and find the experiment there, if a target runs it; nothing is opened where a server is named."""
    from prony.app.bench import Bench
    from prony.app.placing import RemoteRuns
    from prony.cli.remote import server_address
    from prony.errors import InputError
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


@contextmanager
def _terminating() -> Iterator[None]:
    """Treat SIGTERM as Ctrl-C for as long as the block runs."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
