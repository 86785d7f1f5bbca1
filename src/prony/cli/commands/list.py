"""`prony list`: list the newest experiments of the home or of a server."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import Any

from prony.cli.arguments import add_json, add_server
from prony.cli.remote import server_address
from prony.store.home import Home, home

_STATES = ("pending", "running", "complete", "partial", "failed", "cancelled")


def arguments(parser: ArgumentParser) -> None:
    """List the newest experiments."""
    parser.add_argument("--limit", "-n", type=int, default=20, help="number of newest experiments (20)")
    parser.add_argument("--name", help="only recipes with this name")
    parser.add_argument("--state", choices=_STATES, help="only experiments in this state")
    parser.add_argument("--schedule", metavar="NAME", help="only experiments of this schedule: its name or id")
    add_json(parser)
    add_server(parser)


def command(options: Namespace) -> int:
    from prony.cli.output import print_columns, print_json, print_note

    heads, rows, cells = _there(options) if server_address(options) else _here(options)
    if options.json:
        print_json(rows)
    elif rows:
        print_columns(heads, cells)
    elif options.name or options.state or options.schedule:
        print_note("no experiment matches; `prony list` shows all")
    else:
        print_note("no experiments yet; create one with: prony bench MODEL, or prony run RECIPE")
    return 0


def _here(options: Namespace) -> tuple[tuple[str, ...], list[dict[str, Any]], list[tuple[str, ...]]]:
    from prony.store.glance import glance

    rows = glance(
        home(), options.limit, name=options.name, state=options.state, schedule=options.schedule, refresh=_recover
    )
    heads = ("ID", "NAME", "STATE", "JOBS", "STARTED", "VERDICT", "FASTEST")
    return heads, rows, [_cells(row) for row in rows]


def _there(options: Namespace) -> tuple[tuple[str, ...], list[dict[str, Any]], list[tuple[str, ...]]]:
    from functools import partial

    from prony.cli.columns import EXPERIMENT, experiment_cells, experiment_columns
    from prony.cli.remote import connect_server
    from prony.model.experiment import ExperimentState
    from prony.ports.use_cases import iterate_pages

    state = ExperimentState(options.state) if options.state else None
    with connect_server(options) as client:
        ask = partial(client.experiments.page, state=state, name=options.name, schedule=options.schedule)
        views = list(iterate_pages(ask, options.limit))
    return EXPERIMENT, [experiment_columns(view) for view in views], [experiment_cells(view) for view in views]


def _recover(place: Home) -> None:
    """Bring in what a killed run left; needs the whole bench, so only when there is something."""
    from prony.app.bench import Bench

    with Bench.open(place):
        pass


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    started = str(row["created_at"])[:16].replace("T", " ")
    done = row["jobs_complete"]
    return (
        row["id"],
        row["name"],
        row["state"],
        f"{done}/{row['job_count']}",
        started,
        row["worst_grade"] or "-",
        _headline(row),
    )


def _headline(row: dict[str, Any]) -> str:
    value, low, high = row["headline_value"], row["headline_low"], row["headline_high"]
    if value is None:
        return "-"
    # The store counts in milliseconds; what is shorter reads better in microseconds, as in the table of `prony show`.
    factor, unit = (1000, "µs") if row["headline_unit"] == "ms" and value < 1 else (1, row["headline_unit"])
    has_width = low is not None and high is not None and low != high
    interval = f" [{low * factor:.4g}, {high * factor:.4g}]" if has_width else ""
    return f"{value * factor:.4g} {unit}{interval}  {row['headline_title']}"
