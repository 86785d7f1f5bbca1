"""`prony alarm`: add, list, show, test and remove alarms."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from prony.cli.arguments import add_actions, end_actions, noun_of

if TYPE_CHECKING:
    from prony.ports.use_cases import UseCases

_ACTIONS = {
    "add": "create an alarm; the secret of its webhooks is printed only once",
    "list": "list alarms, with the number of open findings of each",
    "show": "show an alarm, its findings and its messages",
    "test": "send a test message to each of its addresses; exits with 1 if one fails",
    "remove": "delete it and its findings",
}
_KEYS = ("name", "when", "severity", "to", "via", "recipe", "owner", "quiet", "again")
_NAME = "letters, digits, '.', '_' and '-', at most 100"
_HINTS = {
    "": "see `prony alarm add --help`",
    "name": _NAME,
    "via": f"the name of another alarm: {_NAME}",
    "recipe": f"a recipe's name: {_NAME}",
    "to": "for example webhook+https://host/path, or an apprise URL: mailto://, slack://, msteams://",
}


def arguments(parser: ArgumentParser) -> None:
    """Get a notification when something goes wrong. Without --server, the alarm is stored in the home, for its
    server."""
    actions = add_actions(parser, _ACTIONS, of="alarm")
    adding = actions["add"]
    adding.add_argument("name", metavar="NAME", help="name of the alarm")
    adding.add_argument(
        "--when",
        required=True,
        metavar="CONDITION",
        help="condition, for example 'inference_ms.p99 > 20' or 'experiment failed'",
    )
    adding.add_argument("--severity", choices=("info", "warning", "critical"), help="severity (warning)")
    adding.add_argument(
        "--to", action="append", metavar="URL",
        help="where to send messages: webhook+https://... or an apprise URL; repeatable",
    )  # fmt: skip
    adding.add_argument(
        "--via", action="append", metavar="NAME", help="also send to the addresses of this alarm; repeatable"
    )
    adding.add_argument("--recipe", metavar="NAME", help="only recipes with this name")
    adding.add_argument(
        "--label", action="append", default=[], metavar="KEY=VALUE", help="only experiments with this label; repeatable"
    )
    adding.add_argument("--owner", metavar="NAME", help="only experiments submitted by this person")
    adding.add_argument("--quiet", metavar="TIME", help="minimum time between two messages (10m)")
    adding.add_argument("--again", metavar="TIME", help="remind after this time if it is still open (24h)")
    actions["show"].add_argument("--limit", "-n", type=int, default=20, help="number of newest findings (20)")
    end_actions(actions)


def command(options: Namespace) -> int:
    from prony.cli.remote import open_bench

    acts = {"add": _add, "list": _list, "show": _show, "test": _test, "remove": _remove}
    with open_bench(options) as bench:
        return acts[options.action](bench, options)


def _add(bench: UseCases, options: Namespace) -> int:
    from prony.cli.output import print_json, print_note, print_text
    from prony.cli.remote import note_unserved
    from prony.model.alarm import NewAlarm

    given = {key: value for key in _KEYS if (value := getattr(options, key)) is not None}
    given |= {"labels": dict(map(_label, options.label))}
    made = bench.alarms.add(noun_of(NewAlarm, given, hints=_HINTS, words=("name",)))
    if options.json:
        print_json(made.model_dump(mode="json"))
        return 0
    if any(shown.startswith("webhook+") for shown in made.alarm.to):
        print_note(f"alarm {made.alarm.name} is on. The secret that signs its webhooks is shown only once:")
        print_text(made.secret)
    else:
        print_text(f"alarm {made.alarm.name} is on")
    if not made.alarm.to and not made.alarm.via:
        print_note("it has no address: findings are stored, but no message is sent")
    note_unserved(options)
    return 0


def _label(text: str) -> tuple[str, str]:
    from prony.errors import InputError

    key, equals, value = text.partition("=")
    if not key or not equals:
        raise InputError(f"--label {text!r} is not a label", hint="write --label KEY=VALUE")
    return key, value


def _list(bench: UseCases, options: Namespace) -> int:
    from prony.cli.columns import ALARM, alarm_cells
    from prony.cli.output import print_listed
    from prony.ports.use_cases import iterate_pages

    none = "no alarms yet; create one with: prony alarm add NAME --when 'experiment failed' --to URL"
    return print_listed(list(iterate_pages(bench.alarms.page)), ALARM, alarm_cells, none=none, as_json=options.json)


def _show(bench: UseCases, options: Namespace) -> int:
    from functools import partial

    from prony.cli.columns import ALARM, DELIVERY, INCIDENT, alarm_cells, delivery_cells, incident_cells
    from prony.cli.output import print_columns, print_json, print_note
    from prony.ports.use_cases import iterate_pages

    found = bench.alarms.get(options.alarm)
    incidents = list(iterate_pages(partial(bench.alarms.incidents, options.alarm), options.limit))
    deliveries = list(iterate_pages(partial(bench.alarms.deliveries, options.alarm), options.limit))
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
        print_note("no findings yet")
    if deliveries:
        print_columns(DELIVERY, [delivery_cells(one) for one in deliveries])
    return 0


def _test(bench: UseCases, options: Namespace) -> int:
    """Exit with 1 where somebody was not reached, or there is nobody to reach."""
    from prony.cli.columns import DELIVERY, delivery_cells
    from prony.cli.output import print_columns, print_json, print_note

    answer = bench.alarms.test(options.alarm)
    if options.json:
        print_json(answer.model_dump(mode="json"))
    elif answer.deliveries:
        print_columns(DELIVERY, [delivery_cells(one) for one in answer.deliveries])
    else:
        print_note("it has no address, so no message is sent: remove it and add it again with --to URL")
    return 0 if answer.ok else 1


def _remove(bench: UseCases, options: Namespace) -> int:
    from prony.cli.output import print_answer

    bench.alarms.remove(options.alarm)
    return print_answer({"removed": options.alarm}, f"removed {options.alarm}", as_json=options.json)
