"""`prony history`: show a benchmark's results over time and what changed."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from prony.cli.arguments import add_branch, add_json, add_server
from prony.errors import InputError

if TYPE_CHECKING:
    from prony.model.history import History, Series
    from prony.ports.use_cases import UseCases


def arguments(parser: ArgumentParser) -> None:
    """Show the results of a benchmark over time, its levels and what changed; without a name, list all series."""
    parser.add_argument("name", nargs="?", metavar="NAME", help="a recipe's name, a series id, or the start of one")
    parser.add_argument(
        "--metric",
        metavar="KEY",
        help="for example inference_ms.p99; `prony docs metrics` lists the keys (default: the headline metric)",
    )
    parser.add_argument("--plot", type=Path, metavar="FILE", help="also draw a plot: .svg, .png or .html")
    parser.add_argument(
        "--rebuild", action="store_true",
        help="first rebuild the histories from the result folders; baselines and acknowledgements stay",
    )  # fmt: skip
    add_branch(parser)
    parser.add_argument("--all-branches", action="store_true", help="without a name: list the series of all branches")
    add_json(parser)
    add_server(parser)


def command(options: Namespace) -> int:
    from prony.cli.remote import open_bench
    from prony.model.history import select_branch
    from prony.ports.use_cases import iterate_pages

    if options.plot is not None and options.plot.suffix not in (".svg", ".png", ".html"):
        raise InputError(f"{options.plot}: a plot must be .svg, .png or .html", hint="for example --plot history.html")
    if (options.metric or options.plot) and not options.name:
        raise InputError("no series named", hint="use prony history NAME; prony history lists all series")
    if options.all_branches and (options.branch or options.name):
        raise InputError("--all-branches lists the series of all branches", hint="leave out the name and --branch")
    with open_bench(options) as bench:
        if options.rebuild:
            _rebuild(bench)
        if options.name:
            found = bench.histories.find(options.name, branch=options.branch)
        else:
            wanted = None if options.all_branches else options.branch
            found = select_branch(tuple(iterate_pages(bench.histories.page)), "this home or server", wanted)
        if options.name and len(found) == 1:
            return _show(bench.histories.get(found[0].id, metric=options.metric), options)
    return _list(found, options)


def _rebuild(bench: UseCases) -> None:
    from prony.cli.columns import show_progress
    from prony.cli.output import print_note

    count = bench.histories.rebuild(show_progress)
    print_note(f"{count} results added to their histories")


def _show(history: History, options: Namespace) -> int:
    from prony.cli.output import print_json, print_note, print_text

    if options.plot is not None:
        from prony.report.plots.history import draw_history

        options.plot.parent.mkdir(parents=True, exist_ok=True)
        options.plot.write_bytes(draw_history(history, options.plot.suffix))
        print_note(f"plot: {options.plot}")
    if options.json:
        print_json(history.model_dump(mode="json"))
    else:
        from prony.report.terminal.history import history_text

        print_text(history_text(history))
    return 0


def _list(found: Sequence[Series], options: Namespace) -> int:
    from prony.cli.columns import SERIES, series_cells
    from prony.cli.output import print_columns, print_json, print_note

    wants_one = bool(found and (options.metric or options.plot))
    if options.json and not wants_one:
        print_json([one.model_dump(mode="json") for one in found])
        return 0
    if not found:
        print_note("no series yet; prony history --rebuild adds older results")
        return 0
    if not options.json:
        print_columns(SERIES, [series_cells(one) for one in found])
    if wants_one:
        hint = f"name one series by its id; prony history {options.name} lists them"
        raise InputError(f"{options.name!r} has {len(found)} series", hint=hint, code="ambiguous")
    return 0
