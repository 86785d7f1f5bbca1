"""`prony watch-regressions`: list the open changes of all histories, with an exit code for builds."""

from __future__ import annotations

import time
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from prony.cli.arguments import add_branch, add_json, add_server
from prony.errors import InputError

if TYPE_CHECKING:
    from prony.model.history import Change

_PAUSE_S = 10.0


def arguments(parser: ArgumentParser) -> None:
    """List the open changes of all series of a branch; exits 1 if one is a regression."""
    parser.add_argument(
        "--fail-on",
        choices=("confirmed", "suspect"),
        default="confirmed",
        help="changes that give exit code 1 (confirmed). confirmed: by the history or by extra runs, and suspects "
        "that runs cannot settle; suspect: also unconfirmed changes",
    )
    parser.add_argument("--follow", action="store_true", help="keep watching and print new changes, until Ctrl-C")
    add_branch(parser)
    add_json(parser)
    add_server(parser)


def command(options: Namespace) -> int:
    from prony.cli.columns import resolve_branch
    from prony.cli.output import print_text
    from prony.cli.remote import open_bench
    from prony.ports.use_cases import iterate_pages

    if options.follow and options.json:
        raise InputError(
            "--follow prints sentences, not JSON", hint="leave out --json, or repeat the command without --follow"
        )
    with open_bench(options) as bench:
        open_changes = partial(bench.histories.changes, branch=resolve_branch(bench, options.branch))
        found = list(iterate_pages(open_changes))
        _print(found, as_json=options.json)
        known = {one.id for one in found}
        while options.follow:
            time.sleep(_PAUSE_S)
            for change in iterate_pages(open_changes):
                if change.id not in known:
                    known.add(change.id)
                    print_text(f"{change.noticed_at:%Y-%m-%d %H:%M} {change.kind} {change.id}: {change.sentence}")
    return 1 if any(fails_a_build(one, options.fail_on) for one in found) else 0


def fails_a_build(change: Change, fail_on: str) -> bool:
    """An improvement, a drift and a change of the machine fail no build."""
    is_counted = fail_on == "suspect" or change.state.value != "suspect" or change.unsettled
    return change.kind == "regression" and is_counted and not change.machine_changed


def _print(found: Sequence[Change], *, as_json: bool) -> None:
    from prony.cli.columns import CHANGES, change_cells
    from prony.cli.output import print_columns, print_json, print_note, print_text

    if as_json:
        print_json([one.model_dump(mode="json") for one in found])
    elif not found:
        print_note("no open changes")
    else:
        print_columns(CHANGES, [change_cells(one) for one in found])
        for one in found:
            print_text(f"\n{one.id}: {one.sentence}")
        if moved := [one.id for one in found if one.machine_changed]:
            print_note(
                f"{len(moved)} not counted ({', '.join(moved)}): the canary shows that the machine changed too. "
                "Compare both versions with `prony duet`, then acknowledge known changes with `prony ack`"
            )
        if unsettled := [one.id for one in found if one.unsettled]:
            print_note(
                f"{len(unsettled)} suspected, which runs cannot settle ({', '.join(unsettled)}): counted as "
                "regressions. Compare both versions with `prony "
                "duet`, then acknowledge known changes with `prony ack`"
            )
