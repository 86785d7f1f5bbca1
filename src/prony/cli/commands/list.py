"""`prony list`: the home in, one line for each experiment out."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import Any

from prony.cli.arguments import add_json
from prony.store.home import Home, home


def arguments(parser: ArgumentParser) -> None:
    """List the newest experiments."""
    parser.add_argument("--limit", "-n", type=int, default=20, help="how many of the newest (20)")
    parser.add_argument("--name", help="only recipes of this name")
    parser.add_argument("--state", choices=("running", "complete", "partial", "failed"), help="only those")
    add_json(parser)


def command(options: Namespace) -> int:
    from prony.cli.output import print_columns, print_json, print_note
    from prony.store.glance import glance

    rows = glance(home(), options.limit, name=options.name, state=options.state, refresh=_recover)
    if options.json:
        print_json(rows)
    elif rows:
        heads = ("ID", "NAME", "STATE", "JOBS", "STARTED", "VERDICT", "FASTEST")
        print_columns(heads, [_cells(row) for row in rows])
    elif options.name or options.state:
        print_note("no experiment is like that; prony list shows all")
    else:
        print_note("no experiment yet: prony run recipes/quickstart.yaml makes one")
    return 0


def _recover(place: Home) -> None:
    """Bring in what a killed run left; needs the whole bench, so only when there is something."""
    from prony.app.api import Bench

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
    interval = f" [{low * factor:.4g}, {high * factor:.4g}]" if low is not None and high is not None else ""
    return f"{value * factor:.4g} {unit}{interval}  {row['headline_title']}"
