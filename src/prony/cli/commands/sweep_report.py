"""`prony sweep-report`: find where load saturates and which load holds the SLO."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from prony.cli.arguments import add_experiments, add_json, add_server
from prony.cli.documents import Faces, add_format, show_document


def arguments(parser: ArgumentParser) -> None:
    """Find where load saturates, which load meets the SLO and what was the bottleneck, with evidence."""
    add_experiments(parser)
    parser.add_argument(
        "--slo", action="append", default=[], metavar="KEY=LIMIT",
        help="a limit that replaces the recipe's, for example ttft_ms.p99=200; repeatable",
    )  # fmt: skip
    add_json(parser)
    add_format(parser)
    add_server(parser)


def command(options: Namespace) -> int:
    from prony.cli.remote import open_bench
    from prony.report.html import sweep
    from prony.report.markdown import sweep as sweep_markdown
    from prony.report.terminal.load import print_sweep

    options.experiments = [word for text in options.experiments for word in text.split(",") if word]
    with open_bench(options) as bench:
        found = bench.analyses.sweep([bench.experiments.find(text) for text in options.experiments], slo=options.slo)
    faces = Faces(print_sweep, sweep.render, sweep_markdown.render)
    return show_document(found, options, f"sweep-{found.experiments[0]}", faces)
