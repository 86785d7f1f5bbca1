"""`prony schedule`: add, list, pause, resume, run and remove schedules that a server fires."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from prony.cli.arguments import add_actions, add_set, end_actions, noun_of

if TYPE_CHECKING:
    from prony.model.schedule import NewSchedule
    from prony.ports.use_cases import UseCases

_ACTIONS = {
    "add": "run a recipe at these times",
    "list": "list schedules and their next run times",
    "show": "show a schedule and its past runs",
    "pause": "stop it until it is resumed",
    "resume": "continue with the next run",
    "run-now": "run its recipe once now",
    "remove": "remove it; its experiments stay",
}


def arguments(parser: ArgumentParser) -> None:
    """Run a recipe on a server on a schedule. Without --server, the schedule is stored in the home, for its server."""
    actions = add_actions(parser, _ACTIONS, of="schedule")
    adding = actions["add"]
    adding.add_argument("recipe", type=Path, metavar="RECIPE", help="a recipe: .yaml, .toml or .json")
    adding.add_argument(
        "--cron", metavar="TEXT", help="cron expression: five fields, or @daily (the recipe's schedule.cron)"
    )
    adding.add_argument("--zone", metavar="NAME", help="time zone, for example Europe/Paris (UTC)")
    adding.add_argument(
        "--missed",
        choices=("skip", "once", "all"),
        help="what to do about runs missed while the server was down (once)",
    )
    adding.add_argument("--name", help="name of the schedule (the recipe's name)")
    add_set(adding)
    adding.add_argument("--priority", type=int, metavar="N", help="-100 to 100; higher runs first")
    actions["show"].add_argument("--limit", "-n", type=int, default=20, help="number of newest runs to show (20)")
    end_actions(actions)


def command(options: Namespace) -> int:
    from prony.cli.remote import open_bench

    acts = {
        "add": _add, "list": _list, "show": _show, "pause": _move, "resume": _move, "run-now": _run_now,
        "remove": _remove,
    }  # fmt: skip
    with open_bench(options) as bench:
        return acts[options.action](bench, options)


def _add(bench: UseCases, options: Namespace) -> int:
    from prony.cli.columns import format_next
    from prony.cli.output import print_answer
    from prony.cli.remote import note_unserved

    made = bench.schedules.add(_build_schedule(options, bench))
    print_answer(made, f"{made.name} ({made.id}) is {made.state}{format_next(made)}", as_json=options.json)
    note_unserved(options)
    return 0


def _build_schedule(options: Namespace, bench: UseCases) -> NewSchedule:
    from prony.cli.submit import submission_of, upload_scripts
    from prony.model.schedule import NewSchedule
    from prony.recipe import load
    from prony.recipe.overrides import anchor_overrides

    overrides = anchor_overrides(options.set, Path.cwd(), here=False)
    loaded = load(options.recipe, overrides)
    scripts = upload_scripts(bench, loaded)
    submission = submission_of(loaded, [*overrides, *scripts], priority=options.priority)
    given = {name: getattr(options, name) for name in ("name", "cron", "zone", "missed")}
    hints = {"": "for example --cron '0 3 * * *' --zone Europe/Paris", "name": "letters, digits, '.', '_' and '-'"}
    return noun_of(NewSchedule, {"submission": submission, **given}, hints=hints)


def _list(bench: UseCases, options: Namespace) -> int:
    from prony.cli.columns import SCHEDULE, schedule_cells
    from prony.cli.output import print_listed
    from prony.ports.use_cases import iterate_pages

    none = "no schedules yet; create one with: prony schedule add RECIPE --cron '0 3 * * *'"
    return print_listed(
        list(iterate_pages(bench.schedules.page)), SCHEDULE, schedule_cells, none=none, as_json=options.json
    )


def _move(bench: UseCases, options: Namespace) -> int:
    from prony.cli.columns import format_next
    from prony.cli.output import print_answer

    act = bench.schedules.pause if options.action == "pause" else bench.schedules.resume
    found = act(options.schedule)
    return print_answer(found, f"{found.name} is {found.state}{format_next(found)}", as_json=options.json)


def _show(bench: UseCases, options: Namespace) -> int:
    from functools import partial

    from prony.cli.columns import FIRE, SCHEDULE, fire_cells, schedule_cells
    from prony.cli.output import print_columns, print_json, print_note
    from prony.ports.use_cases import iterate_pages

    found = bench.schedules.get(options.schedule)
    fires = list(iterate_pages(partial(bench.schedules.fires, options.schedule), options.limit))
    if options.json:
        told = [fire.model_dump(mode="json") for fire in fires]
        print_json({"schedule": found.model_dump(mode="json"), "fires": told})
        return 0
    print_columns(SCHEDULE, [schedule_cells(found)])
    if fires:
        print_columns(FIRE, [fire_cells(fire) for fire in fires])
    else:
        print_note("it has not run yet")
    return 0


def _run_now(bench: UseCases, options: Namespace) -> int:
    from prony.cli.output import print_answer
    from prony.cli.remote import note_unserved

    fire = bench.schedules.run(options.schedule)
    print_answer(fire, str(fire.experiment_id), as_json=options.json)
    note_unserved(options)
    return 0


def _remove(bench: UseCases, options: Namespace) -> int:
    from prony.cli.output import print_answer

    bench.schedules.remove(options.schedule)
    return print_answer({"removed": options.schedule}, f"removed {options.schedule}", as_json=options.json)
