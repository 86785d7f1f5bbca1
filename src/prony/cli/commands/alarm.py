"""`prony alarm`: add, list, show, test and remove alarms."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from prony.cli.arguments import add_actions, end_actions, noun_of

if TYPE_CHECKING:
    from prony.ports.use_cases import UseCases

_ACTIONS = {
    "add": "make an alarm; the secret of its webhooks is printed this one time",
    "list": "list alarms, with how much of what each found has not ended",
    "show": "show one, with what it found and what it sent",
    "test": "really send a message to each of its addresses; exits with 1 where one does not take it",
    "remove": "forget it, with what it found",
}
_KEYS = ("name", "when", "severity", "to", "via", "recipe", "owner", "quiet", "again")
_NAME = "letters, digits, '.', '_' and '-', at most 100"
_HINTS = {
    "": "see `prony alarm add --help`",
    "name": _NAME,
    "via": f"the name of another alarm: {_NAME}",
    "recipe": f"a recipe's name: {_NAME}",
    "to": "as in webhook+https://host/path, or what apprise knows: mailto://, slack://, msteams://",
}


def arguments(parser: ArgumentParser) -> None:
    """Be told when something is not as it should be. Without --server it is kept in the home, for a server there."""
    actions = add_actions(parser, _ACTIONS, of="alarm")
    adding = actions["add"]
    adding.add_argument("name", metavar="NAME", help="what it is called")
    adding.add_argument(
        "--when", required=True, metavar="CONDITION", help="as 'inference_ms.p99 > 20' or 'experiment failed'"
    )
    adding.add_argument("--severity", choices=("info", "warning", "critical"), help="how bad it is (warning)")
    adding.add_argument("--to", action="append", metavar="URL", help="whom to tell: webhook+https://..., or apprise's")
    adding.add_argument("--via", action="append", metavar="NAME", help="tell those that this alarm tells, too")
    adding.add_argument("--recipe", metavar="NAME", help="only of recipes of this name")
    adding.add_argument(
        "--label", action="append", default=[], metavar="KEY=VALUE", help="only of what has this label; repeatable"
    )
    adding.add_argument("--owner", metavar="NAME", help="only of what this person submitted")
    adding.add_argument("--quiet", metavar="TIME", help="the least time between two messages (10m)")
    adding.add_argument("--again", metavar="TIME", help="after so long it is told again, if it has not ended (24h)")
    actions["show"].add_argument("--limit", "-n", type=int, default=20, help="how many of the newest (20)")
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
        print_note(f"alarm {made.alarm.name} is on; the secret that signs its webhooks is shown this one time:")
        print_text(made.secret)
    else:
        print_text(f"alarm {made.alarm.name} is on")
    if not made.alarm.to and not made.alarm.via:
        print_note("it has no address: what it finds is kept, and nobody is told")
    note_unserved(options)
    return 0


def _label(text: str) -> tuple[str, str]:
    from prony.errors import InputError

    key, equals, value = text.partition("=")
    if not key or not equals:
        raise InputError(f"--label {text!r} is no label", hint="write --label KEY=VALUE")
    return key, value


def _list(bench: UseCases, options: Namespace) -> int:
    from prony.cli.columns import ALARM, alarm_cells
    from prony.cli.output import print_listed
    from prony.ports.use_cases import iterate_pages

    none = "no alarm yet: prony alarm add NAME --when 'experiment failed' --to URL makes one"
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
        print_note("it has found nothing yet")
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
        print_note("it has no address, so nobody is told: remove it, and add it with --to URL")
    return 0 if answer.ok else 1


def _remove(bench: UseCases, options: Namespace) -> int:
    from prony.cli.output import print_answer

    bench.alarms.remove(options.alarm)
    return print_answer({"removed": options.alarm}, f"removed {options.alarm}", as_json=options.json)
