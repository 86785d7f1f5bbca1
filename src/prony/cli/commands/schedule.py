"""`prony schedule`: a recipe and times in, a schedule out, that a server fires; and what people do with one."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from prony.cli.arguments import add_json, add_server

if TYPE_CHECKING:
    from prony.app.local_schedules import LocalSchedules
    from prony.client import Client
    from prony.model.schedule import NewSchedule, Schedule

    Book = Client | LocalSchedules

_ACTIONS = {
    "show": "show one, with when it fired",
    "pause": "let nothing fire until it is resumed",
    "resume": "go on with its next time",
    "run-now": "run its recipe now, beside its times",
    "remove": "forget it; its experiments stay",
}


def arguments(parser: ArgumentParser) -> None:
    """Have a server run a recipe again and again. Without --server it is kept in the home, for a server there."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    adding = actions.add_parser("add", help="run a recipe at these times from now on", allow_abbrev=False)
    adding.add_argument("recipe", type=Path, metavar="RECIPE", help="a recipe: .yaml, .toml or .json")
    adding.add_argument("--cron", metavar="TEXT", help="when: five fields, or @daily (the recipe's schedule.cron)")
    adding.add_argument("--zone", metavar="NAME", help="whose wall clock decides, as Europe/Paris (UTC)")
    adding.add_argument(
        "--missed", choices=("skip", "once", "all"), help="what runs for times at which no server was up (once)"
    )
    adding.add_argument("--name", help="what the schedule is called (the recipe's name)")
    adding.add_argument("--set", action="append", default=[], metavar="PATH=VALUE", help="override one key; repeatable")
    adding.add_argument("--priority", type=int, metavar="N", help="-100 to 100, higher goes first")
    listing = actions.add_parser("list", help="list schedules, with when each is due next", allow_abbrev=False)
    named = [actions.add_parser(name, help=meaning, allow_abbrev=False) for name, meaning in _ACTIONS.items()]
    for one in named:
        one.add_argument("schedule", metavar="NAME", help="a schedule's name or id")
    named[0].add_argument("--limit", "-n", type=int, default=20, help="how many of its newest fires (20)")
    for one in (adding, listing, *named):
        add_json(one)
        add_server(one)


def command(options: Namespace) -> int:
    from prony.cli.output import print_json, print_text

    acts = {"add": _add, "list": _list, "show": _show, "run-now": _run_now, "remove": _remove}
    with _book(options) as book:
        if options.action in acts:
            return acts[options.action](book, options)
        act = book.pause_schedule if options.action == "pause" else book.resume_schedule
        found = act(options.schedule)
    if options.json:
        print_json(found.model_dump(mode="json"))
    else:
        print_text(f"{found.name} is {found.state}{_next(found)}")
    return 0


@contextmanager
def _book(options: Namespace) -> Iterator[Book]:
    from prony.cli.remote import address, connect

    if address(options):
        with connect(options) as client:
            yield client
    else:
        from prony.app.local_schedules import opened

        with opened() as local:
            yield local


def _add(book: Book, options: Namespace) -> int:
    from prony.cli.output import print_json, print_text

    made = book.add_schedule(_wanted(options, book))
    if options.json:
        print_json(made.model_dump(mode="json"))
    else:
        print_text(f"{made.name} ({made.id}) is {made.state}{_next(made)}")
        _note_server(options)
    return 0


def _wanted(options: Namespace, book: Book) -> NewSchedule:
    """Return what the options ask for, or say which of them is wrong."""
    from pydantic import ValidationError

    from prony.cli.bringing import brought
    from prony.cli.submitting import submission_of
    from prony.errors import InputError
    from prony.model.schedule import NewSchedule
    from prony.recipe import load

    loaded = load(options.recipe, options.set)
    scripts = brought(book, loaded)
    submission = submission_of(loaded, [*options.set, *scripts], priority=options.priority)
    given = {"name": options.name, "cron": options.cron, "zone": options.zone, "missed": options.missed}
    try:
        return NewSchedule.model_validate({"submission": submission, **given})
    except ValidationError as exc:
        first = exc.errors(include_url=False)[0]
        said = first["msg"].removeprefix("Value error, ")
        hint = "as in --cron '0 3 * * *' --zone Europe/Paris"
        raise InputError(f"--{first['loc'][0]}: {said}", hint=hint) from exc


def _list(book: Book, options: Namespace) -> int:
    from prony.cli.columns import SCHEDULE, schedule_cells
    from prony.cli.output import print_columns, print_json, print_note
    from prony.client.names import listed

    found = list(listed(book.schedules))
    if options.json:
        print_json([one.model_dump(mode="json") for one in found])
    elif found:
        print_columns(SCHEDULE, [schedule_cells(one) for one in found])
    else:
        print_note("no schedule yet: prony schedule add RECIPE --cron '0 3 * * *' makes one")
    return 0


def _show(book: Book, options: Namespace) -> int:
    from functools import partial

    from prony.cli.columns import FIRE, SCHEDULE, fire_cells, schedule_cells
    from prony.cli.output import print_columns, print_json, print_note
    from prony.client.names import listed

    found = book.schedule(options.schedule)
    fires = list(listed(partial(book.fires, options.schedule), options.limit))
    if options.json:
        told = [fire.model_dump(mode="json") for fire in fires]
        print_json({"schedule": found.model_dump(mode="json"), "fires": told})
        return 0
    print_columns(SCHEDULE, [schedule_cells(found)])
    if fires:
        print_columns(FIRE, [fire_cells(fire) for fire in fires])
    else:
        print_note("it has not fired yet")
    return 0


def _run_now(book: Book, options: Namespace) -> int:
    from prony.cli.output import print_json, print_text

    fire = book.run_schedule(options.schedule)
    if options.json:
        print_json(fire.model_dump(mode="json"))
    else:
        print_text(str(fire.experiment_id))
        _note_server(options)
    return 0


def _remove(book: Book, options: Namespace) -> int:
    from prony.cli.output import print_json, print_text

    book.remove_schedule(options.schedule)
    if options.json:
        print_json({"removed": options.schedule})
    else:
        print_text(f"removed {options.schedule}")
    return 0


def _next(found: Schedule) -> str:
    from prony.model.cron import zone_of

    if found.next_at is None:
        return ""
    zone = found.timing.zone
    return f"; next at {found.next_at.astimezone(zone_of(zone)):%Y-%m-%d %H:%M} {zone}"


def _note_server(options: Namespace) -> None:
    """Say what is needed besides, where it was written into the home."""
    from prony.cli.output import print_note
    from prony.cli.remote import address, is_served

    if not address(options) and not is_served():
        print_note("no server runs in this home: it waits for one; `prony server` starts it")
