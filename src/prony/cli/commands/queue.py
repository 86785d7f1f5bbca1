"""`prony queue`: show which jobs wait on a server, and why."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from prony.cli.arguments import add_json, add_server


def arguments(parser: ArgumentParser) -> None:
    """Show the waiting jobs on a server, grouped by experiment and required device, and why they wait."""
    add_json(parser)
    add_server(parser)


def command(options: Namespace) -> int:
    from prony.cli.columns import LOT, lot_cells
    from prony.cli.output import print_columns, print_json, print_note
    from prony.cli.remote import connect_server

    with connect_server(options) as client:
        queue = client.server.queue()
    if options.json:
        print_json(queue.model_dump(mode="json"))
        return 0
    if queue.lots:
        print_columns(LOT, [lot_cells(lot) for lot in queue.lots])
    print_note(f"{queue.waiting} waiting, {queue.leased} leased")
    return 0
