"""`prony gates`: judge the gates of an experiment; exit code 1 where one fails."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from prony.cli.arguments import RunOutput, add_experiment_argument, add_gates, add_json, add_server


def arguments(parser: ArgumentParser) -> None:
    """Check the gates of an experiment against the intervals of its numbers; exits 1 if one fails."""
    add_experiment_argument(parser)
    parser.add_argument("--gate", action="append", default=[], metavar="TEXT", help="an extra gate; repeatable")
    add_gates(parser)
    add_json(parser)
    parser.add_argument(
        "--github-summary", action="store_true", help="append a summary to the file in GITHUB_STEP_SUMMARY"
    )
    add_server(parser)


def command(options: Namespace) -> int:
    from prony.cli.finish_run import add_summary
    from prony.cli.output import print_json, terminal
    from prony.cli.remote import open_bench

    output = RunOutput.of(options)
    with open_bench(options) as bench:
        experiment_id = bench.experiments.find(options.experiment)
        found = bench.analyses.gates(experiment_id, strict=output.strict, more=options.gate)
        if output.github:
            document = bench.experiments.report(experiment_id, "github", strict=output.strict)
    if output.as_json:
        print_json(found.model_dump(mode="json") | {"passed": found.passed})
    else:
        from prony.report.terminal.experiment import print_gates

        print_gates(found.outcomes, terminal())
    if output.github:
        add_summary(document)
    return 0 if found.passed else 1
