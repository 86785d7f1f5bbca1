"""`prony duet`: run two sides of a recipe in turns on one machine and compare them."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prony.cli.arguments import RunOutput, add_json, add_report, add_server
from prony.ports.workload import kind_of

if TYPE_CHECKING:
    from prony.app.bench import Bench
    from prony.model.comparison import Comparison
    from prony.recipe import LoadedRecipe


def arguments(parser: ArgumentParser) -> None:
    """Run two variants of a recipe alternately on one machine and compare them pair by pair: for machines that are
    noisy.

    Exits 1 if side b is a regression against side a, or if a job or gate failed.
    """
    parser.add_argument("recipe", type=Path, help="a recipe: .yaml, .toml or .json")
    for side, what in (("a", "the first side"), ("b", "the second side, compared with the first")):
        parser.add_argument(
            f"--{side}", action="append", default=[], metavar="PATH=VALUE", help=f"a key of {what}; repeatable"
        )
    parser.add_argument(
        "--base", type=Path, metavar="FOLDER", help="another checkout of this repository, used as side a"
    )
    parser.add_argument(
        "--path",
        action="append",
        metavar="FOLDER",
        help="with --base: folders of the checkout that scripts import from (. and src)",
    )
    parser.add_argument("--pairs", type=int, metavar="N", help="runs of each side (10, or the recipe's value)")
    parser.add_argument(
        "--set", action="append", default=[], metavar="PATH=VALUE", help="override one key on both sides; repeatable"
    )
    parser.add_argument("--metric", action="append", default=[], metavar="KEY", help="metric that decides; repeatable")
    parser.add_argument("--threshold", metavar="SHARE", default="3%", help="the smallest change that matters (3%%)")
    parser.add_argument(
        "--github-summary", action="store_true", help="append the comparison to the file in GITHUB_STEP_SUMMARY"
    )
    add_json(parser)
    add_report(parser)
    add_server(parser)


def command(options: Namespace) -> int:
    from prony.cli.remote import server_address
    from prony.recipe import load
    from prony.recipe.overrides import anchor_overrides

    here = server_address(options) is None
    RunOutput.of(options)  # says what is wrong with it before anything runs
    options.set = anchor_overrides(options.set, Path.cwd(), here=here)
    options.set = [*options.set, *_sides(options, here=here)]
    loaded = load(options.recipe, options.set)
    if loaded.recipe.duet is None:
        from prony.errors import InputError

        raise InputError(
            "this recipe has one side only", hint="set what differs: --a threads=1 --b threads=2, or --base FOLDER"
        )
    return _here(loaded, options) if here else _there(loaded, options)


def _sides(options: Namespace, *, here: bool) -> list[str]:
    """Return the overrides that --base, --a, --b and --pairs stand for."""
    from prony.recipe.duet_overrides import SIDES, read_side, write_duet

    checkouts, base = _checkouts(options, here=here), Path.cwd() if here else None
    sides = {
        side: checkouts.get(side, {}) | read_side(getattr(options, side), said_as=f"--{side}", base=base)
        for side in SIDES
    }
    return write_duet(sides, options.pairs)


def _checkouts(options: Namespace, *, here: bool) -> dict[str, dict[str, Any]]:
    """Return what the sides are by --base: the same recipe with the files of two checkouts."""
    if options.base is None:
        return {}
    from prony.app.checkouts import FOLDERS, checkout_sides
    from prony.errors import InputError
    from prony.recipe import load

    if not here:
        raise InputError("--base compares two folders of this machine", hint="leave out --server")
    loaded = load(options.recipe, options.set)
    return dict(checkout_sides(loaded, options.recipe.resolve().parent, options.base, options.path or FOLDERS))


def _here(loaded: LoadedRecipe, options: Namespace) -> int:
    from prony.app.bench import Bench
    from prony.cli.documents import terms_of
    from prony.cli.finish_run import exit_code_of, finish
    from prony.cli.progress import following

    terms = terms_of(options)
    with Bench.open() as bench:
        _have_versions(bench, loaded)
        with following() as follower:
            data = bench.run(loaded, on_start=follower.start, on_event=follower.event)
        compare = partial(_compare, partial(bench.analyses.compare, [data.experiment.id], terms), options)
        if options.json:
            return compare(exit_code_of(data))
        return finish(
            data, RunOutput.of(options), write_report=bench.experiments.write_report, closing=compare
        )  # fmt: skip


def _there(loaded: LoadedRecipe, options: Namespace) -> int:
    from prony.cli.documents import terms_of
    from prony.cli.finish_run import exit_code_there
    from prony.cli.remote import connect_server
    from prony.cli.submit import see_through, submission_of, upload_scripts
    from prony.cli.watch import follow_experiment

    terms = terms_of(options)
    with connect_server(options) as client:
        view = client.experiments.submit(submission_of(loaded, [*options.set, *upload_scripts(client, loaded)]))
        compare = partial(_compare, partial(client.analyses.compare, [view.experiment.id], terms), options)
        if options.json:
            return compare(exit_code_there(client, follow_experiment(client, view.experiment.id, cancels=True).view))
        return see_through(client, view, RunOutput.of(options), options, closing=compare)


def _compare(compare: Callable[[], Comparison], options: Namespace, code: int) -> int:
    """Show the comparison and return the exit code; `code` is that of the run, which stays where it is not 0.

    A program gets a JSON document in any case: the comparison, or why there is none.
    """
    from prony.cli.finish_run import STOPPED
    from prony.cli.output import print_json, print_note
    from prony.errors import InputError

    if code == STOPPED and not options.json:
        return code
    try:
        found = compare()
    except InputError as exc:
        if not code:
            raise
        if options.json:
            print_json({"error": exc.to_dict()})
        else:
            print_note(f"not compared: {exc.message}")  # what failed was told
        return code
    shown = _print_comparison(found, options)
    return code or shown


def _print_comparison(found: Comparison, options: Namespace) -> int:
    from prony.cli.documents import show_comparison
    from prony.model.comparison import Conclusion

    show_comparison(found, as_json=options.json)
    if options.github_summary:
        from prony.cli.finish_run import add_summary
        from prony.report.markdown import comparison

        add_summary(comparison.render(found))
    return 1 if found.fails(Conclusion.REGRESSION) else 0


def _have_versions(bench: Bench, loaded: LoadedRecipe) -> None:
    """Give each version of an engine that the recipe names, and this machine has not, an environment of its own."""
    from prony.cli.output import print_note
    from prony.runner.engines import versions

    known = versions(bench.home.engines)
    for job in loaded.jobs("versions"):
        wanted = kind_of(job.workload).prepare.engine_version(job.workload)
        if wanted is not None and wanted not in known:
            bench.add_engine(wanted[0], version=wanted[1], say=print_note)
            known.append(wanted)
