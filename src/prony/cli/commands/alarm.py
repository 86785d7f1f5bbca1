"""`prony alarm`: a condition and addresses in, an alarm out, that a server raises; and what people do with one."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from prony.cli.arguments import add_json, add_server

if TYPE_CHECKING:
    from prony.app.local_alarms import LocalAlarms
    from prony.client import Client
    from prony.model.alarm import NewAlarm

    Book = Client | LocalAlarms

_NAMED = {
    "show": "show one, with what it found and what it sent",
    "test": "really send a message to each of its addresses; exits with 1 where one does not take it",
    "remove": "forget it, with what it found",
}


def arguments(parser: ArgumentParser) -> None:
    """Be told when something is not as it should be. Without --server it is kept in the home, for a server there."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    adding = actions.add_parser("add", help="make an alarm; the secret of its webhooks is printed this one time")
    adding.add_argument("name", metavar="NAME", help="what it is called")
    adding.add_argument(
        "--when", required=True, metavar="CONDITION", help="as 'inference_ms.p99 > 20' or 'experiment failed'"
    )
    adding.add_argument("--severity", choices=("info", "warning", "critical"), help="(warning)")
    adding.add_argument("--to", action="append", metavar="URL", help="whom to tell: webhook+https://..., or apprise's")
    adding.add_argument("--via", action="append", metavar="NAME", help="tell those that this alarm tells, too")
    adding.add_argument("--recipe", metavar="NAME", help="only of recipes of this name")
    adding.add_argument("--quiet", metavar="TIME", help="the least time between two messages (10m)")
    adding.add_argument("--again", metavar="TIME", help="after so long it is told again, if it has not ended (24h)")
    listing = actions.add_parser("list", help="list alarms, with how much of what each found has not ended")
    named = [actions.add_parser(name, help=meaning) for name, meaning in _NAMED.items()]
    for one in named:
        one.add_argument("alarm", metavar="NAME", help="an alarm's name or id")
    named[0].add_argument("--limit", "-n", type=int, default=20, help="how many of the newest (20)")
    for one in (adding, listing, *named):
        add_json(one)
        add_server(one)


def command(options: Namespace) -> int:
    acts = {"add": _add, "list": _list, "show": _show, "test": _test, "remove": _remove}
    with _book(options) as book:
        return acts[options.action](book, options)


@contextmanager
def _book(options: Namespace) -> Iterator[Book]:
    from prony.cli.remote import address, connect

    if address(options):
        with connect(options) as client:
            yield client
    else:
        from prony.app.local_alarms import opened

        with opened() as local:
            yield local


def _add(book: Book, options: Namespace) -> int:
    from prony.cli.output import print_json, print_note, print_text
    from prony.cli.remote import address, is_served

    made = book.add_alarm(_wanted(options))
    if options.json:
        print_json(made.model_dump(mode="json"))
        return 0
    if any(shown.startswith("webhook+") for shown in made.alarm.to):
        print_note(f"alarm {made.alarm.name} is on; the secret that signs its webhooks is shown this one time:")
        print_text(made.secret)
    else:
        print_text(f"alarm {made.alarm.name} is on")
    if not address(options) and not is_served():
        print_note("no server runs in this home: it waits for one; `prony server` starts it")
    return 0


def _wanted(options: Namespace) -> NewAlarm:
    """Return what the options ask for, or say which of them is wrong."""
    from pydantic import ValidationError

    from prony.errors import InputError
    from prony.model.alarm import NewAlarm

    keys = ("name", "when", "severity", "to", "via", "recipe", "quiet", "again")
    given = {key: value for key in keys if (value := getattr(options, key)) is not None}
    try:
        return NewAlarm.model_validate(given)
    except ValidationError as exc:
        first = exc.errors(include_url=False, include_input=False)[0]
        key = str(first["loc"][0])
        said = first["msg"].removeprefix("Value error, ")
        hint = "see `prony alarm add --help`"
        raise InputError(f"{'NAME' if key == 'name' else f'--{key}'}: {said}", hint=hint) from None


def _list(book: Book, options: Namespace) -> int:
    from prony.cli.columns import ALARM, alarm_cells
    from prony.cli.output import print_columns, print_json, print_note
    from prony.client.names import listed

    found = list(listed(book.alarms))
    if options.json:
        print_json([one.model_dump(mode="json") for one in found])
    elif found:
        print_columns(ALARM, [alarm_cells(one) for one in found])
    else:
        print_note("no alarm yet: prony alarm add NAME --when 'experiment failed' --to URL makes one")
    return 0


def _show(book: Book, options: Namespace) -> int:
    from functools import partial

    from prony.cli.columns import ALARM, DELIVERY, INCIDENT, alarm_cells, delivery_cells, incident_cells
    from prony.cli.output import print_columns, print_json, print_note
    from prony.client.names import listed

    found = book.alarm(options.alarm)
    incidents = list(listed(partial(book.incidents, options.alarm), options.limit))
    deliveries = list(listed(partial(book.deliveries, options.alarm), options.limit))
    if options.json:
        told = {
            "alarm": found.model_dump(mode="json"),
            "incidents": [one.model_dump(mode="json") for one in incidents],
            "deliveries": [one.model_dump(mode="json") for one in deliveries],
        }
        print_json(told)
        return 0
    print_columns(ALARM, [alarm_cells(found)])
    if incidents:
        print_columns(INCIDENT, [incident_cells(one) for one in incidents])
    else:
        print_note("it has found nothing yet")
    if deliveries:
        print_columns(DELIVERY, [delivery_cells(one) for one in deliveries])
    return 0


def _test(book: Book, options: Namespace) -> int:
    """Exit with 1 where somebody was not reached, or there is nobody to reach."""
    from prony.cli.columns import DELIVERY, delivery_cells
    from prony.cli.output import print_columns, print_json, print_note

    answer = book.test_alarm(options.alarm)
    if options.json:
        print_json(answer.model_dump(mode="json"))
    elif answer.deliveries:
        print_columns(DELIVERY, [delivery_cells(one) for one in answer.deliveries])
    else:
        print_note("it has no address, so nobody is told: remove it, and add it with --to URL")
    return 0 if answer.ok else 1


def _remove(book: Book, options: Namespace) -> int:
    from prony.cli.output import print_json, print_text

    book.remove_alarm(options.alarm)
    if options.json:
        print_json({"removed": options.alarm})
    else:
        print_text(f"removed {options.alarm}")
    return 0
