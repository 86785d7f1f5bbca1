"""`prony baseline`: a series in, the result that it is held against set, shown or cleared."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from prony.cli.arguments import add_actions, add_branch, end_actions
from prony.ports.metric_titles import metric_title

_ACTIONS = {
    "set": "pin a result: the newest valid one, or the one of --job",
    "show": "show the baseline",
    "clear": "remove the baseline; the result itself stays",
}


def arguments(parser: ArgumentParser) -> None:
    """Pin a result of a series as the baseline for later results; show it, or clear it."""
    actions = add_actions(parser, _ACTIONS)
    for acting in actions.values():
        acting.add_argument("name", metavar="NAME", help="a recipe's name, a series id, or the start of one")
        add_branch(acting)
    actions["set"].add_argument("--job", metavar="ID", help="job whose result becomes the baseline")
    actions["set"].add_argument("--reason", default="", help="the reason, shown to others later")
    end_actions(actions)


def command(options: Namespace) -> int:
    from prony.cli.columns import one_series
    from prony.cli.output import print_answer
    from prony.cli.remote import open_bench
    from prony.model.history import NewBaseline
    from prony.report.number import format_observed

    with open_bench(options) as bench:
        series = one_series(bench, options.name, options.branch)
        if options.action == "clear":
            bench.histories.clear_baseline(series.id)
            return print_answer({"cleared": series.id}, f"{series.id} no longer has a baseline", as_json=options.json)
        if options.action == "set":
            found = bench.histories.set_baseline(series.id, NewBaseline(job_id=options.job, reason=options.reason))
        else:
            found = bench.histories.baseline(series.id)
    value = "-" if found.value is None else format_observed(found.value, series.unit, 4)
    why = f" ({found.reason})" if found.reason else ""
    number = f"{metric_title(series.metric)} {value}"
    told = f"{series.id} {series.title}: job {found.job_id}, {number}, set {found.set_at:%Y-%m-%d}{why}"
    return print_answer(found, told, as_json=options.json)
