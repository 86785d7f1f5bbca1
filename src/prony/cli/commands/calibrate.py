"""`prony calibrate`: the instrument measured by itself on this machine."""

from __future__ import annotations

from typing import Annotated

import typer


def command(
    repeats: Annotated[int, typer.Option(min=6, help="fresh processes of each kind")] = 20,
    json: Annotated[bool, typer.Option("--json", help="print as JSON")] = False,
) -> None:
    """Measure clock, harness and run-to-run noise; every later report states them."""
    import sys

    from prony.app.api import Bench
    from prony.cli.output import print_columns, print_json, print_note
    from prony.model.metric import METRICS
    from prony.report.number import text

    def progress(done: int, total: int) -> None:
        if sys.stderr.isatty():
            sys.stderr.write(f"\rcalibrating: {done} of {total}")

    with Bench.open() as bench:
        calibration = bench.calibrate(repeats=repeats, progress=progress)
    print_note("")
    if json:
        print_json(calibration.model_dump(mode="json"))
        return
    rows = [(name, text(figure), METRICS[name].meaning) for name, figure in calibration.figures.items()]
    print_columns(("FIGURE", "VALUE", "WHAT IT IS"), rows)
