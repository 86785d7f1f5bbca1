"""`prony calibrate`: the instrument measured by itself on this machine."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from prony.cli.arguments import add_json
from prony.errors import InputError

if TYPE_CHECKING:
    from prony.model.calibration import Calibration

_FEWEST = 6
_USUAL = 20
_FEWEST_DEEP = 20
_USUAL_DEEP = 40


def arguments(parser: ArgumentParser) -> None:
    """Measure clock, harness and run-to-run noise; every later report states them."""
    parser.add_argument(
        "--repeats", type=int,
        help=f"fresh processes of each kind ({_USUAL}; at least {_FEWEST}), loads ({_FEWEST}), or with --deep "
        f"equal runs ({_USUAL_DEEP}; at least {_FEWEST_DEEP})",
    )  # fmt: skip
    kind = parser.add_mutually_exclusive_group()
    kind.add_argument("--load", action="store_true", help="measure the load generator instead: its speed and accuracy")
    kind.add_argument(
        "--deep",
        action="store_true",
        help="find the machine's noise class, its false alarm rate and the smallest visible change, from "
        f"{_USUAL_DEEP} equal runs",
    )
    add_json(parser)


def command(options: Namespace) -> int:
    from prony.app.bench import Bench
    from prony.cli.output import print_columns, print_json, print_note, print_text
    from prony.model.calibration import describe_disturbance
    from prony.model.metric import METRICS
    from prony.report.number import format_number

    repeats = _repeats(options)

    def progress(done: int, total: int) -> None:
        if sys.stderr.isatty():
            sys.stderr.write(f"\rcalibrating: {done} of {total}")

    with Bench.open() as bench:
        measure = bench.calibrate_load if options.load else bench.calibrate_deep if options.deep else bench.calibrate
        calibration = measure(repeats=repeats, progress=progress)
    if sys.stderr.isatty():
        print_note("")  # the end of the line that counted
    if options.json:
        print_json(calibration.model_dump(mode="json"))
        return 0
    rows = [(name, format_number(figure), METRICS[name].meaning) for name, figure in calibration.figures.items()]
    print_columns(("FIGURE", "VALUE", "WHAT IT IS"), rows)
    if options.deep and calibration.noise_class is not None:
        print_text(_describe_calibration(calibration))
    for note in calibration.notes:
        print_note(f"during the calibration: {note}")
    if calibration.disturbed:
        print_note(f"warning: this calibration is not used: {describe_disturbance(calibration)}")
    return 0


def _repeats(options: Namespace) -> int:
    usual = _FEWEST if options.load else _USUAL_DEEP if options.deep else _USUAL
    fewest = _FEWEST_DEEP if options.deep else _FEWEST
    repeats = usual if options.repeats is None else int(options.repeats)
    if repeats < fewest:
        why = "fewer runs cannot be split into two sets" if options.deep else "fewer runs give no 95 % interval"
        raise InputError(f"--repeats must be {fewest} or more", hint=why)
    return repeats


def _describe_calibration(calibration: Calibration) -> str:
    """Return what a deep calibration found, in a sentence."""
    from prony.analyse.noise import describe_sessions

    figures = calibration.figures
    noise, seen, wrong = (figures[name].value for name in ("run_noise", "seen_with_10_runs", "false_alarm_rate"))
    sessions = figures.get("session_spread")
    apart = "" if sessions is None else f" {describe_sessions(sessions.value)}"
    return (
        f"This machine is {calibration.noise_class}: equal runs spread by {noise:.1%}.{apart} With 10 runs on each "
        f"side it can detect {seen:.1%}. Equal runs were called different in {wrong:.1%} of the splits; comparisons "
        f"here use alpha = {calibration.alpha:.2g}."
    )
