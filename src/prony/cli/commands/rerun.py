"""`prony rerun`: run the recipe of an earlier experiment again."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from prony.cli.arguments import RunOutput, add_experiment_argument, add_gates, add_json, add_report, add_server


def arguments(parser: ArgumentParser) -> None:
    """Run an earlier experiment's recipe again, with the same overrides."""
    add_experiment_argument(parser, required=True)
    add_json(parser)
    add_report(parser)
    add_gates(parser)
    add_server(parser)


def command(options: Namespace) -> int:
    from prony.cli.remote import connect_server, server_address

    output = RunOutput.of(options)
    if server_address(options):
        from prony.cli.submit import see_through

        with connect_server(options) as client:
            view = client.experiments.rerun(client.experiments.find(options.experiment))
            return see_through(client, view, output, options)

    from prony.app.bench import Bench
    from prony.cli.finish_run import finish
    from prony.cli.progress import following

    with Bench.open() as bench:
        earlier, loaded = bench.load_earlier(options.experiment)
        if loaded.recipe.place.on not in (None, "local"):
            from prony.cli.submit import place_recipe

            return place_recipe(bench, loaded, output, base=Path(earlier.base), rerun_of=earlier.id)
        with following() as follower:
            data = bench.rerun(options.experiment, on_start=follower.start, on_event=follower.event)
        return finish(data, output, write_report=bench.experiments.write_report)
