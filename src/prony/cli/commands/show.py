"""`prony show`: print an experiment's numbers on the terminal."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from prony.cli.arguments import add_experiment_argument, add_json, add_server


def arguments(parser: ArgumentParser) -> None:
    """Show one experiment's numbers, each with its interval and verdict. Exits 3 if samples are damaged."""
    add_experiment_argument(parser)
    parser.add_argument("--wide", action="store_true", help="show all columns, even if the table is wide")
    add_json(parser)
    add_server(parser)


def command(options: Namespace) -> int:
    from prony.cli.finish_run import report_damages, show
    from prony.cli.remote import open_bench

    with open_bench(options) as bench:
        data = bench.experiments.results(bench.experiments.find(options.experiment), verify=True)
        show(data, as_json=options.json, is_wide=options.wide)
        return report_damages(data.damages)
