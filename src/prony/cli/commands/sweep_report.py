"""`prony sweep-report`: experiments in, where their loads saturate out."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from prony.cli.arguments import add_experiments, add_json, add_server
from prony.cli.documents import Faces, add_format, show

if TYPE_CHECKING:
    from prony.model.sweep import SweepReport


def arguments(parser: ArgumentParser) -> None:
    """Say where loads saturate, which load holds the SLO and what was the limit, each with its evidence."""
    add_experiments(parser)
    parser.add_argument(
        "--slo", action="append", default=[], metavar="KEY=LIMIT",
        help="a limit instead of the recipe's, as in ttft_ms.p99=200; repeatable",
    )  # fmt: skip
    add_json(parser)
    add_format(parser)
    add_server(parser)


def command(options: Namespace) -> int:
    from prony.cli.remote import address
    from prony.report.html import sweep
    from prony.report.markdown import sweep as sweep_markdown
    from prony.report.terminal.load import print_sweep

    options.experiments = [word for text in options.experiments for word in text.split(",") if word]
    found = _from_there(options) if address(options) else _from_here(options)
    faces = Faces(print_sweep, sweep.render, sweep_markdown.render)
    return show(found, options, f"sweep-{found.experiments[0]}", faces)


def _from_here(options: Namespace) -> SweepReport:
    from prony.app.api import Bench
    from prony.app.sweeps import slo_of

    with Bench.open() as bench:
        return bench.sweep_report(options.experiments, slo_of(options.slo))


def _from_there(options: Namespace) -> SweepReport:
    from prony.cli.remote import connect
    from prony.client.resolve_id import experiment_named

    with connect(options) as client:
        ids = [experiment_named(client, text) for text in options.experiments]
        return client.sweep_report(ids, slo=options.slo)
