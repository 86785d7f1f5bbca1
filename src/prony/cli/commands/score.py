"""`prony score`: score the kept answers of an experiment again."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from prony.cli.arguments import add_experiment_argument, add_json, add_server


def arguments(parser: ArgumentParser) -> None:
    """Score the stored answers of an experiment again, without calling a model, and show its numbers. A custom scorer
    runs on this machine, also when a server stores the answers."""
    add_experiment_argument(parser)
    parser.add_argument(
        "--scorer", metavar="COMMAND", help="custom scorer: a command (JSON lines in, numbers out) or FILE.py:FUNCTION"
    )
    parser.add_argument("--limit", metavar="TIME", default="60s", help="timeout of that command (60s)")
    add_json(parser)
    add_server(parser)


def command(options: Namespace) -> int:
    from prony.app.score_again import score_by_command
    from prony.cli.finish_run import show
    from prony.cli.output import print_note
    from prony.cli.remote import open_bench
    from prony.model.answer import NewScores
    from prony.model.quantity import read_seconds
    from prony.runner.scorer import ScorerOrder

    limit_s = read_seconds(options.limit, "--limit", "60s")
    with open_bench(options) as bench:
        experiment_id = bench.experiments.find(options.experiment)
        new = NewScores()
        if options.scorer is not None:
            new = score_by_command(bench, experiment_id, ScorerOrder(options.scorer, limit_s))
        count = len(bench.experiments.score(experiment_id, new).jobs)
        print_note(f"scored the answers of {count} job{'' if count == 1 else 's'}")
        show(bench.experiments.results(experiment_id), as_json=options.json)
    return 0
