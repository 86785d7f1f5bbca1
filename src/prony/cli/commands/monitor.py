"""`prony monitor`: what this machine does now, until Ctrl-C."""

from __future__ import annotations

import sys
import time
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from prony.model.monitor import MachineMoment

_LEAST_S = 0.1
_ONCE_S = 0.5


def arguments(parser: ArgumentParser) -> None:
    """Show this machine live: CPU by core, memory, load, pressure, the busiest processes, and each GPU's clock, power,
    temperature, use, memory, throttle reasons and processes. Ctrl-C ends it."""
    parser.add_argument("--json", action="store_true", help="print a line of JSON for each reading")
    parser.add_argument("--once", action="store_true", help="one reading (over 0.5 s, or --interval)")
    parser.add_argument("--interval", type=_seconds, metavar="S", help="seconds between readings (1); at least 0.1")


def command(options: Namespace) -> int:
    interval_s = options.interval or (_ONCE_S if options.once else 1.0)
    moments = read_moments(interval_s, time.sleep)
    if options.once:
        moments = iter([next(moments)])
    try:
        if options.json:
            _print_lines(moments)
        else:
            _show(moments, is_live=not options.once)
    except KeyboardInterrupt:
        return 0
    return 0


def read_moments(interval_s: float, wait: Callable[[float], None]) -> Iterator[MachineMoment]:
    """Read the machine again and again; `wait` lets the time between two readings pass."""
    from prony.instruments.monitor import MachineMonitor
    from prony.ports.clock import SystemClock

    monitor = MachineMonitor(SystemClock().now)
    while True:
        wait(interval_s)
        yield monitor.read()


def _print_lines(moments: Iterator[MachineMoment]) -> None:
    from prony.cli.output import CONTROLS

    for moment in moments:
        sys.stdout.write(moment.model_dump_json().translate(CONTROLS) + "\n")
        sys.stdout.flush()


def _show(moments: Iterator[MachineMoment], *, is_live: bool) -> None:
    """Draw over the last reading in a terminal, and below it anywhere else."""
    from prony.cli.output import terminal
    from prony.report.terminal.monitor import render_machine

    console = terminal()
    if not (is_live and console.is_terminal):
        for moment in moments:
            console.print(render_machine(moment, console.width))
            console.print()
            sys.stdout.flush()
        return
    from rich.live import Live

    with Live(console=console, screen=True, auto_refresh=False) as live:
        for moment in moments:
            live.update(render_machine(moment, console.width), refresh=True)


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError as exc:
        raise ArgumentTypeError(f"{text!r} is not a number of seconds") from exc
    if not _LEAST_S <= value <= 3600:
        raise ArgumentTypeError(f"{text}: must be between {_LEAST_S:g} and 3600 seconds")
    return value
