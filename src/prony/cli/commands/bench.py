"""`prony bench`: measure a model or a command without a recipe."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from prony.cli.arguments import RunOutput, add_busy, add_json, add_report, wait_quiet_s
from prony.cli.bench_options import add_bench_options, request_of

if TYPE_CHECKING:
    from prony.app.bench import Bench
    from prony.app.quick_recipe import QuickRecipe
    from prony.model.experiment_data import ExperimentData

_WIDEST = 72  # of what was assumed, before the options that change it


def arguments(parser: ArgumentParser) -> None:
    """Measure a model without a recipe: Prony chooses an engine and inputs, and prints its assumptions. Two
    models run alternately and are compared. The result is stored like any other experiment."""
    add_bench_options(parser)
    parser.add_argument(
        "--export", action="append", default=[], type=Path, metavar="FILE",
        help="also write .json, .csv, .md, .html or .xml (JUnit); repeatable",
    )  # fmt: skip
    parser.add_argument("--no-save", action="store_true", help="store nothing: no experiment, no report")
    add_busy(parser)
    add_json(parser)
    add_report(parser)


def command(options: Namespace) -> int:
    from prony.cli.busy_machine import heed_others, watch_others
    from prony.cli.run_here import pause_garbage_collection
    from prony.report import format_of_path

    request, output = request_of(options), RunOutput.of(options)
    formats = {path: format_of_path(path) for path in options.export}
    waits_s = wait_quiet_s(options)
    watch = watch_others()
    with pause_garbage_collection():
        from prony.app.bench import Bench
        from prony.app.plan_bench import plan_bench
        from prony.app.run_bench import delete_afterwards
        from prony.cli.progress import following
    with Bench.open() as bench, delete_afterwards(bench, is_wanted=options.no_save) as note:
        quick, loaded = plan_bench(bench, request, base=Path.cwd(), overrides=options.set)
        _tell_assumptions(quick)
        heed_others(watch, waits_s)
        with following() as follower:
            data = bench.run(loaded, base=Path.cwd(), on_start=note(follower.start), on_event=follower.event)
        # What is not kept takes no part in a history, and is not judged with it.
        analysed = data if options.no_save or not formats else bench.experiments.analyse(data)
        for path, form in formats.items():
            _export(analysed, path, form)
        return _finish(bench, data, quick, output._replace(report=output.report and not options.no_save))


def _export(data: ExperimentData, path: Path, form: str) -> None:
    from prony.cli.output import print_note
    from prony.report import render

    content = render(data, form)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    print_note(f"wrote {path}")


def _tell_assumptions(quick: QuickRecipe) -> None:
    """Say what was assumed, each with the option that changes it."""
    from prony.cli.output import print_note
    from prony.report.escaping import one_line

    lines = [(one_line(f"{'guess: ' if one.is_guess else ''}{one.what}"), one.flag) for one in quick.assumptions]
    width = min(_WIDEST, max((len(what) for what, _ in lines), default=0))
    if lines:
        print_note("assumed:")
    for what, flag in lines:
        print_note(f"  {what:<{width}}  change: {one_line(flag)}")


def _finish(bench: Bench, data: ExperimentData, quick: QuickRecipe, output: RunOutput) -> int:
    """Show the table, and which is the fastest where there are several."""
    from prony.app.run_bench import name_winners
    from prony.cli.finish_run import finish
    from prony.cli.output import print_text

    found, sentences = name_winners(bench, data)
    beside = {
        "assumed": [one.model_dump(mode="json") for one in quick.assumptions],
        "comparisons": [one.model_dump(mode="json") for one in found],
        "winner": sentences,
    }

    def print_winner(code: int) -> int:
        for sentence in () if output.as_json else sentences:
            print_text(sentence)
        return code

    return finish(
        data, output, write_report=bench.experiments.write_report, beside=beside, closing=print_winner
    )  # fmt: skip
