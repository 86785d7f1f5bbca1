"""`prony matrix`: compare the configurations of experiments in rows and columns."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from prony.cli.arguments import add_experiments, add_json, add_server
from prony.cli.documents import Faces, add_format, show_document


def arguments(parser: ArgumentParser) -> None:
    """Compare configurations in rows and columns; the best is marked only where its interval lies apart."""
    add_experiments(parser)
    where = "device, engine, precision, batch, concurrency, labels.NAME, or the path of a setting"
    parser.add_argument("--rows", metavar="WORD", default="device", help=f"{where} (device)")
    parser.add_argument("--columns", metavar="WORD", default="engine", help="the same (engine)")
    parser.add_argument("--metric", metavar="KEY", help="as in inference_ms.p50; default: the workload's headline")
    parser.add_argument(
        "--against", choices=("cost", "power", "energy"), help="of the Pareto front; default: cost, else power"
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
