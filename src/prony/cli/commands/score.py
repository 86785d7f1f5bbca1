"""`prony score`: score the kept answers of an experiment again."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from prony.cli.arguments import add_experiment_argument, add_json


def arguments(parser: ArgumentParser) -> None:
    """Score the stored answers of an experiment again, without calling a model, and show its numbers."""
    add_experiment_argument(parser)
    parser.add_argument(
        "--scorer", metavar="COMMAND", help="custom scorer: a command (JSON lines in, numbers out) or FILE.py:FUNCTION"
    )
    parser.add_argument("--limit", metavar="TIME", default="60s", help="timeout of that command (60s)")
    add_json(parser)


def command(options: Namespace) -> int:
    from prony.app.bench import Bench
    from prony.cli.finish_run import show
    from prony.cli.output import print_note
    from prony.model.quantity import read_seconds

    limit_s = read_seconds(options.limit, "--limit", "60s")
    with Bench.open() as bench:
        experiment_id = bench.experiments.find(options.experiment)
        count = bench.score(experiment_id, scorer=options.scorer, limit_s=limit_s)
        print_note(f"scored the answers of {count} job{'' if count == 1 else 's'}")
        show(bench.experiments.results(experiment_id), as_json=options.json)
    return 0
