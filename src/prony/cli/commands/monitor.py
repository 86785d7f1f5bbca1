"""`prony monitor`: what this machine does now, until Ctrl-C; `prony monitor up`: Prometheus beside a server."""

from __future__ import annotations

import sys
import time
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from prony.cli.arguments import add_server

if TYPE_CHECKING:
    from prony.app.monitoring import MonitorPlan
    from prony.client import Client
    from prony.model.monitor import MachineMoment

_LEAST_S = 0.1
_ONCE_S = 0.5
_TOKEN_NAME = "prometheus"


def arguments(parser: ArgumentParser) -> None:
    """Show this machine live: CPU by core, memory, load, pressure, the busiest processes, and each GPU's clock, power,
    temperature, use, memory, throttle reasons and processes. Ctrl-C ends it."""
    parser.add_argument("--json", action="store_true", help="print a line of JSON for each reading")
    parser.add_argument("--once", action="store_true", help="one reading (over 0.5 s, or --interval)")
    parser.add_argument("--interval", type=_seconds, metavar="S", help="seconds between readings (1); at least 0.1")
    actions = parser.add_subparsers(dest="action", metavar="ACTION")
    up = actions.add_parser(
        "up", help="start Prometheus for a server, with the rules that come with Prony", allow_abbrev=False
    )
    up.add_argument("--port", type=int, default=9090, help="port of Prometheus on this machine (9090)")
    up.add_argument("--program", metavar="PATH", default="", help="the Prometheus to start (default: that of PATH)")
    add_server(up)


def command(options: Namespace) -> int:
    if options.action == "up":
        return _start_prometheus(options)
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


def _start_prometheus(options: Namespace) -> int:
    """Run Prometheus until Ctrl-C, or until it ends by itself."""
    from prony.app import monitoring
    from prony.cli.output import print_text
    from prony.cli.remote import connect_server, named_token
    from prony.errors import InputError
    from prony.store.home import home

    if not 1 <= options.port <= 65535:
        raise InputError(f"{options.port} is not a port", hint="a port is a number from 1 to 65535")
    program = monitoring.find_prometheus(options.program)
    plan = monitoring.MonitorPlan(program, home().root / "monitor", options.port)
    with connect_server(options) as client:
        token = named_token(options) or _find_token(client, plan.folder)
        monitoring.write_files(plan.folder, client.url, token)
        server = client.url
    with monitoring.running_prometheus(plan, monitoring.is_prometheus_ready) as process:
        print_text(_describe(plan, server))
        sys.stdout.flush()
        try:
            return 3 if process.wait() else 0
        except KeyboardInterrupt:
            return 0


def _find_token(client: Client, folder: Path) -> str:
    """Return the viewer's token of an earlier start, where the server still takes it, or a new one."""
    from prony.app.monitoring import read_token
    from prony.client import Client
    from prony.errors import AccessError
    from prony.model.access import NewToken, Role

    kept = read_token(folder)
    if kept is not None:
        try:
            with Client(client.url, kept) as viewer:
                viewer.agents.page(limit=1)
        except AccessError:  # revoked, or of another server
            kept = None
    return kept or client.tokens.add(NewToken(name=_TOKEN_NAME, role=Role.VIEWER)).secret


def _describe(plan: MonitorPlan, server: str) -> str:
    """Return where to look."""
    from prony.app.monitoring import dashboards_folder

    return (
        f"Prometheus reads {server}\n"
        f"  look     {plan.url}/graph?g0.expr=prony_jobs&g0.tab=0\n"
        f"  targets  {plan.url}/targets\n"
        f"  alerts   {plan.url}/alerts\n"
        f"  files    {plan.folder}\n"
        f"  Grafana  add {plan.url} as a data source, then import the dashboards in {dashboards_folder()}\n"
        f"Ctrl-C ends it. For a link in the web pages, start the server with PRONY_PROMETHEUS_URL={plan.url}"
    )


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
