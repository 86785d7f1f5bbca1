"""`prony matrix`: experiments in, a comparison of their configurations out."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from prony.cli.arguments import add_experiments, add_json, add_server
from prony.cli.documents import Faces, add_format, show

if TYPE_CHECKING:
    from prony.model.matrix import MatrixReport


def arguments(parser: ArgumentParser) -> None:
    """Compare configurations in rows and columns; the best is marked only where its interval lies apart."""
    add_experiments(parser)
    where = "device, engine, precision, batch, concurrency, labels.NAME, or the path of a setting"
    parser.add_argument("--rows", metavar="WORD", default="device", help=f"{where} (device)")
    parser.add_argument("--columns", metavar="WORD", default="engine", help="the same (engine)")
    parser.add_argument("--metric", metavar="KEY", help="as in inference_ms.p50; default: the workload's headline")
    parser.add_argument("--against", choices=("cost", "power"), help="of the Pareto front; default: cost, else power")
    add_json(parser)
    add_format(parser)
    add_server(parser)


def command(options: Namespace) -> int:
    from prony.cli.remote import address
    from prony.report.html import matrix
    from prony.report.markdown import matrix as matrix_markdown
    from prony.report.terminal.matrix import print_matrix

    found = _from_there(options) if address(options) else _from_here(options)
    faces = Faces(print_matrix, matrix.render, matrix_markdown.render)
    return show(found, options, f"matrix-{found.experiments[0]}", faces)


def _from_here(options: Namespace) -> MatrixReport:
    from prony.app.api import Bench
    from prony.model.matrix import MatrixTerms

    terms = MatrixTerms(
        rows=options.rows, columns=options.columns, metric=options.metric, against=options.against
    )  # fmt: skip
    with Bench.open() as bench:
        return bench.matrix(options.experiments, terms)


def _from_there(options: Namespace) -> MatrixReport:
    from prony.cli.remote import connect
    from prony.client.resolve_id import experiment_named

    with connect(options) as client:
        ids = [experiment_named(client, text) for text in options.experiments]
        return client.matrix(
            ids, rows=options.rows, columns=options.columns, metric=options.metric, against=options.against
        )
