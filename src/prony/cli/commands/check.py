"""`prony check`: say what is wrong with a recipe, which jobs it becomes and who could run it."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from prony.cli.arguments import add_json, add_no_container, add_server, add_set

if TYPE_CHECKING:
    from prony.model.check import RecipeCheck


def arguments(parser: ArgumentParser) -> None:
    """Check a recipe for errors, without measuring: each job is run once. With a server, also show which agents can run
    it, and how long that takes.

    Exits with 2 if it is wrong, with 1 if some of its jobs fit no agent.
    """
    parser.add_argument("recipe", type=Path, help="a recipe: .yaml, .toml or .json")
    add_set(parser)
    parser.add_argument("--on", metavar="TARGET", help="where it would run; same values as in `prony run`")
    add_no_container(parser)
    parser.add_argument("--no-trial", action="store_true", help="only read the recipe; do not load models or try jobs")
    add_json(parser)
    add_server(parser)


def command(options: Namespace) -> int:
    from prony.cli.output import print_json, print_text
    from prony.cli.remote import server_address
    from prony.cli.run_here import tell_notes
    from prony.recipe.overrides import anchor_overrides

    is_there = server_address(options) is not None
    given = anchor_overrides(options.set, Path.cwd(), here=not is_there)
    options.set = [*given, *([f"place.on={options.on}"] if options.on else [])]
    found = _there(options) if is_there else _here(options)
    if is_there and not options.json:
        tell_notes(found.notes)
    if options.json:
        print_json(found.model_dump(mode="json"))
    else:
        print_text(f"{found.name}: {found.jobs} {found.kind} job{'' if found.jobs == 1 else 's'}")
        if is_there:
            _show_there(found)
    return 1 if is_there and not found.runnable else 0


def _here(options: Namespace) -> RecipeCheck:
    from prony.app.bench import Bench
    from prony.app.check_recipe import check_by_trial, check_names_with_lines, runs_here
    from prony.cli.run_here import tell_notes
    from prony.model.check import Planned, RecipeCheck
    from prony.ports.workload import kind_of
    from prony.recipe import load

    loaded = load(options.recipe, options.set)
    jobs = loaded.jobs("check")
    check_names_with_lines(loaded, jobs)
    recipe = loaded.recipe
    kind = kind_of(recipe.workload).prepare
    planned = tuple(Planned(title=job.title, cell=job.cell) for job in jobs)
    notes: tuple[str, ...] = (*loaded.notes, *kind.notes(jobs, "this machine"))
    tell_notes(() if options.json else notes)
    found: tuple[str, ...] = ()
    if not options.no_trial:
        with Bench.open() as bench:
            found = check_by_trial(bench, loaded, jobs)
    if runs_here(loaded):
        found = (*found, *kind.refusals_here(jobs))
    tell_notes(() if options.json else found)
    notes = (*notes, *found)
    return RecipeCheck(
        name=recipe.name, kind=recipe.workload.kind, dialect=loaded.dialect, jobs=len(jobs), planned=planned,
        notes=notes,
    )  # fmt: skip


def _there(options: Namespace) -> RecipeCheck:
    from prony.cli.remote import connect_server
    from prony.cli.submit import AGENTS_MACHINE, submission_of
    from prony.errors import InputError
    from prony.ports.workload import kind_of
    from prony.recipe import load

    loaded = load(options.recipe, options.set)
    with connect_server(options) as client:
        found = client.recipes.check(submission_of(loaded, options.set))
    if found.problems:  # what is right here and wrong there: another version, or a plug-in that it lacks
        first = found.problems[0]
        raise InputError(f"the server says: {first.message}", hint=first.hint, code="recipe")
    notes = kind_of(loaded.recipe.workload).prepare.notes(loaded.jobs("check"), AGENTS_MACHINE)
    return found.model_copy(update={"notes": (*found.notes, *notes)})


def _show_there(found: RecipeCheck) -> None:
    from prony.cli.columns import show_fits
    from prony.cli.output import print_text

    show_fits(found.lots, runnable=found.runnable)
    if found.expected is not None and found.expected.seconds is not None:
        print_text(f"takes about {found.expected.seconds:.0f} s: {found.expected.basis}")
    elif found.expected is not None:
        print_text(f"duration unknown: {found.expected.basis}")
