"""`prony services`: which services can be started, and which here."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from prony.cli.arguments import add_json


def arguments(parser: ArgumentParser) -> None:
    """List the services that Prony can start and load; with a name, show its settings."""
    parser.add_argument("name", nargs="?", help="a service; shows its settings")
    add_json(parser)


def command(options: Namespace) -> int:
    from prony.app.abilities import services
    from prony.cli.columns import show_options
    from prony.cli.output import print_columns, print_json

    if options.name:
        return show_options("services", options.name, as_json=options.json)
    found = services()
    if options.json:
        print_json({"services": [one.model_dump(mode="json") for one in found]})
        return 0
    rows = [(one.name, one.driver, "yes" if not one.lacks else f"no: {one.lacks}") for one in found]
    print_columns(("SERVICE", "DRIVER", "HERE"), rows)
    return 0
