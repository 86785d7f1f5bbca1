"""`prony gates`: an experiment in, whether its gates hold out."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from prony.cli.arguments import add_experiment, add_gates, add_json, add_server

if TYPE_CHECKING:
    from prony.model.gate_outcome import GateReport


def arguments(parser: ArgumentParser) -> None:
    """Judge the gates of an experiment by the intervals of its numbers; exit 1 where one fails."""
    add_experiment(parser)
    parser.add_argument("--gate", action="append", default=[], metavar="TEXT", help="one more gate; repeatable")
    add_gates(parser)
    add_json(parser)
    parser.add_argument(
        "--github-summary", action="store_true", help="add a summary to the file that GITHUB_STEP_SUMMARY names"
    )
    add_server(parser)


def command(options: Namespace) -> int:
    from prony.cli.github import add_summary, check_summary
    from prony.cli.output import print_json, terminal
    from prony.cli.remote import address

    check_summary(options)
    strict = options.gates == "strict"
    found, document = _from_there(options, strict=strict) if address(options) else _from_here(options, strict=strict)
    if options.json:
        print_json(found.model_dump(mode="json") | {"passed": found.passed})
    else:
        from prony.report.terminal.experiment import print_gates

        print_gates(found.outcomes, terminal())
    if document is not None:
        add_summary(document)
    return 0 if found.passed else 1


def _from_here(options: Namespace, *, strict: bool) -> tuple[GateReport, str | bytes | None]:
    from prony.app.api import Bench

    with Bench.open() as bench:
        found = bench.gates(options.experiment, strict=strict, more=options.gate)
        return found, bench.report(options.experiment, "github", strict=strict) if options.github_summary else None


def _from_there(options: Namespace, *, strict: bool) -> tuple[GateReport, str | bytes | None]:
    from prony.cli.remote import connect
    from prony.client.resolve_id import experiment_named

    with connect(options) as client:
        experiment_id = experiment_named(client, options.experiment)
        found = client.gates(experiment_id, strict=strict, gate=options.gate)
        return found, client.report(experiment_id, "github", strict=strict) if options.github_summary else None
