"""`prony calibrate`: the instrument measured by itself on this machine."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace

from prony.cli.arguments import add_json
from prony.errors import InputError

_FEWEST = 6
_USUAL = 20


def arguments(parser: ArgumentParser) -> None:
    """Measure clock, harness and run-to-run noise; every later report states them."""
    parser.add_argument(
        "--repeats", type=int, help=f"fresh processes of each kind (20; at least {_FEWEST}), or loads (6)"
    )
    parser.add_argument(
        "--load", action="store_true", help="measure the load generator instead: how fast, and how exactly"
    )
    add_json(parser)


def command(options: Namespace) -> int:
    from prony.app.api import Bench
    from prony.cli.output import print_columns, print_json, print_note
    from prony.model.metric import METRICS
    from prony.report.number import text

    repeats = options.repeats if options.repeats is not None else _FEWEST if options.load else _USUAL
    if repeats < _FEWEST:
        raise InputError(f"--repeats must be {_FEWEST} or more", hint="with fewer there is no 95 % interval")

    def progress(done: int, total: int) -> None:
        if sys.stderr.isatty():
            sys.stderr.write(f"\rcalibrating: {done} of {total}")

    with Bench.open() as bench:
        measure = bench.calibrate_load if options.load else bench.calibrate
        calibration = measure(repeats=repeats, progress=progress)
    if sys.stderr.isatty():
        print_note("")  # the end of the line that counted
    if options.json:
        print_json(calibration.model_dump(mode="json"))
        return 0
    rows = [(name, text(figure), METRICS[name].meaning) for name, figure in calibration.figures.items()]
    print_columns(("FIGURE", "VALUE", "WHAT IT IS"), rows)
    for note in calibration.notes:
        print_note(f"while it was taken: {note}")
    return 0
