"""`prony matrix`: compare the configurations of experiments in rows and columns."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from prony.cli.arguments import add_experiments, add_json, add_server
from prony.cli.documents import Faces, add_format, show_document


def arguments(parser: ArgumentParser) -> None:
    """Compare configurations in rows and columns; the best is marked only if its interval does not overlap with
    others."""
    add_experiments(parser)
    where = "device, engine, precision, batch, concurrency, labels.NAME or a setting's path"
    parser.add_argument("--rows", metavar="WORD", default="device", help=f"{where} (device)")
    parser.add_argument("--columns", metavar="WORD", default="engine", help="same choices as rows (engine)")
    parser.add_argument(
        "--metric",
        metavar="KEY",
        help="for example inference_ms.p50; `prony docs metrics` lists the keys (default: the headline metric)",
    )
    parser.add_argument(
        "--against",
        choices=("cost", "power", "energy"),
        help="second axis of the Pareto front (default: cost, else power)",
    )
    add_json(parser)
    add_format(parser)
    add_server(parser)


def command(options: Namespace) -> int:
    from prony.cli.remote import open_bench
    from prony.model.matrix import MatrixTerms
    from prony.report.html import matrix
    from prony.report.markdown import matrix as matrix_markdown
    from prony.report.terminal.matrix import print_matrix

    terms = MatrixTerms(rows=options.rows, columns=options.columns, metric=options.metric, against=options.against)
    with open_bench(options) as bench:
        found = bench.analyses.matrix([bench.experiments.find(text) for text in options.experiments], terms)
    faces = Faces(print_matrix, matrix.render, matrix_markdown.render)
    return show_document(found, options, f"matrix-{found.experiments[0]}", faces)
