"""`prony show`: print an experiment's numbers on the terminal."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from prony.cli.arguments import add_experiment_argument, add_json, add_server

if TYPE_CHECKING:
    from prony.ports.use_cases import UseCases


def arguments(parser: ArgumentParser) -> None:
    """Show one experiment's numbers, each with its interval and verdict. Exits 3 where samples are damaged."""
    add_experiment_argument(parser)
    add_json(parser)
    add_server(parser)


def command(options: Namespace) -> int:
    from prony.cli.finish_run import show
    from prony.cli.remote import open_bench, server_address

    with open_bench(options) as bench:
        experiment_id = bench.experiments.find(options.experiment)
        show(bench.experiments.results(experiment_id), as_json=options.json)
        return 0 if server_address(options) else _report_damages(bench, experiment_id)


def _report_damages(bench: UseCases, experiment_id: str) -> int:
    """Look at the sample files, which lie here; a server's lie elsewhere."""
    from prony.app.bench import Bench
    from prony.app.results import damages_of
    from prony.cli.finish_run import report_damages

    assert isinstance(bench, Bench)  # it is this machine's where no server is named
    return report_damages(damages_of(bench.store, experiment_id))
