"""`prony drivers`: what can speak to a server, and what it takes."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from prony.cli.arguments import add_json


def arguments(parser: ArgumentParser) -> None:
    """List the load drivers and the LLM tasks; with a name, show its options."""
    parser.add_argument("name", nargs="?", help="a driver or a task; shows its options")
    add_json(parser)


def command(options: Namespace) -> int:
    from prony.app.abilities import drivers, tasks
    from prony.cli.columns import show_options
    from prony.cli.output import print_columns, print_json

    if options.name:
        kind = "tasks" if options.name in {one.name for one in tasks()} else "drivers"
        return show_options(kind, options.name, as_json=options.json)
    found = [*drivers(), *tasks()]
    if options.json:
        print_json({"drivers": [one.model_dump(mode="json") for one in found]})
        return 0
    print_columns(("NAME", "KIND", "WHAT IT IS"), [(one.name, one.kind, one.about) for one in found])
    return 0
