"""`prony watch`: follow an experiment on a server or at a target until it has ended."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from prony.cli.arguments import RunOutput, add_experiment_argument, add_json, add_server

if TYPE_CHECKING:
    from prony.client import Client


def arguments(parser: ArgumentParser) -> None:
    """Follow an experiment on a server, or at a target of this home, until it ends, and show its numbers.
    Ctrl-C detaches; the experiment continues."""
    add_experiment_argument(parser)
    add_json(parser)
    add_server(parser)


def command(options: Namespace) -> int:
    from prony.cli.remote import connect_server
    from prony.cli.submit import watch_placed

    code = watch_placed(options)
    if code is not None:
        return code
    with connect_server(options) as client:
        experiment_id = client.experiments.find(options.experiment)
        if options.json:
            return _print_updates(client, experiment_id)
        from prony.cli.finish_run import finish_there
        from prony.cli.watch import follow_experiment

        return finish_there(follow_experiment(client, experiment_id, cancels=False), RunOutput(), options)


def _print_updates(client: Client, experiment_id: str) -> int:
    """Print every update as a line of JSON, for programs: its kind, and the noun."""
    import json

    from prony.cli.finish_run import exit_code_there
    from prony.cli.output import CONTROLS
    from prony.client.watching import Snapshot, event_kind
    from prony.model.queue import ExperimentView

    view = None
    for update in client.experiments.watch(experiment_id):
        line = {"kind": event_kind(update), "data": update.model_dump(mode="json")}
        sys.stdout.write(json.dumps(line, ensure_ascii=False).translate(CONTROLS) + "\n")
        sys.stdout.flush()
        if isinstance(update, Snapshot | ExperimentView):
            view = update.experiment if isinstance(update, Snapshot) else update
    return 0 if view is None else exit_code_there(client, view)
