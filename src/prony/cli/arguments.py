"""Arguments that several commands share: how they are written, and what those of a run's end mean."""

from __future__ import annotations

import os
import sys
from argparse import SUPPRESS, ArgumentParser, BooleanOptionalAction, Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, NoReturn, Self, TypeVar

if TYPE_CHECKING:
    from pydantic import BaseModel

N = TypeVar("N", bound="BaseModel")


class CommandParser(ArgumentParser):
    """The parser of a command, which says where wrong arguments are explained."""

    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        # Misspelled, or left out: of `prony agent --server URL`, the address is taken for the action.
        first = "write one of these actions first; " if message.startswith("argument ACTION: invalid choice") else ""
        self.exit(2, f"{self.prog}: error: {message}\n hint: {first}{self.prog} --help explains the arguments\n")


def add_json(parser: ArgumentParser, *, inner: bool = False) -> None:
    """Add --json; `inner` for an action of a command that has it too, so that it may stand before or after the word."""
    default = SUPPRESS if inner else False
    parser.add_argument("--json", action="store_true", default=default, help="print as JSON")


def add_branch(parser: ArgumentParser) -> None:
    parser.add_argument("--branch", metavar="NAME", default="", help="branch name (default: the default branch)")


def add_actions(parser: ArgumentParser, meanings: Mapping[str, str], *, of: str = "") -> dict[str, ArgumentParser]:
    """Add the words that may follow a command; `of` is what those of them take that are about one."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    made: dict[str, ArgumentParser] = {}
    for name, meaning in meanings.items():
        described = f"{meaning[:1].upper()}{meaning[1:]}."
        made[name] = actions.add_parser(name, help=meaning, description=described, allow_abbrev=False)
        if of and name not in ("add", "list"):
            made[name].add_argument(of, metavar="NAME", help="its name or id")
    return made


def end_actions(actions: Mapping[str, ArgumentParser]) -> None:
    """Add what all of them have, after what is their own."""
    for parser in actions.values():
        add_json(parser)
        add_server(parser)


def noun_of(kind: type[N], given: Mapping[str, object], *, hints: Mapping[str, str], words: Sequence[str] = ()) -> N:
    """Return what the options ask for, or say which of them is wrong; `words` are those that have no dashes.

    `hints` by option tell how it is written; the one of "" goes for all others.
    """
    from pydantic import ValidationError

    from prony.errors import InputError
    from prony.model.validation_words import describe_invalid_value

    try:
        return kind.model_validate(given)
    except ValidationError as exc:
        # Without what was given: an address may hold a secret.
        first = exc.errors(include_url=False, include_input=False)[0]
        key, said = str(first["loc"][0]), describe_invalid_value(first)
        said = "not a valid value" if first["type"].startswith("string_") and key in hints else said
        hint = hints.get(key, hints.get("", ""))
        raise InputError(f"{key.upper() if key in words else f'--{key}'}: {said}", hint=hint) from None


def add_report(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--report", action=BooleanOptionalAction, default=True, help="write an HTML report beside the results"
    )


def add_gates(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--gates", choices=("lenient", "strict"), default="lenient", help="strict: undecided gates fail too (lenient)"
    )


def add_busy(parser: ArgumentParser) -> None:
    """Add what to do on a machine that others use."""
    parser.add_argument(
        "--wait-quiet", metavar="TIME",
        help="if the machine is busy, wait up to this long, for example 5m; then measure anyway",
    )  # fmt: skip
    parser.add_argument("--strict", action="store_true", help="exit with code 1 if a result is void")


def add_set(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--set", action="append", default=[], metavar="PATH=VALUE", help="override one key of the recipe; repeatable"
    )


def add_submission(parser: ArgumentParser, where: str = "a server") -> None:
    """Add where a run may be sent to, and how."""
    add_server(parser)
    parser.add_argument("--priority", type=int, metavar="N", help="on a server: -100 to 100; higher runs first")
    parser.add_argument("--detach", action="store_true", help=f"on {where}: submit, print the id and exit")


def add_recipe_run(parser: ArgumentParser) -> None:
    """Add what every command has that writes a recipe of its options and runs it, here or on a server."""
    add_set(parser)
    add_busy(parser)
    add_json(parser)
    add_report(parser)
    add_submission(parser)


class RunOutput(NamedTuple):
    """How the end of a run is shown: what --json, --report, --gates, --github-summary, --no-save and --strict say of
    it."""

    as_json: bool = False
    report: bool = False
    strict: bool = False
    github: bool = False
    is_kept: bool = True
    fails_if_void: bool | None = None  # None: the command has no --strict

    @classmethod
    def of(cls, options: Namespace) -> Self:
        """Read it from the options of a command, which need not have all of them.

        Raises:
            InputError: There is no place for a summary, which is said before anything is measured.
        """
        from prony.errors import InputError

        given = vars(options)
        found = cls(
            as_json=options.json,
            report=given.get("report", False),
            strict=given.get("gates") == "strict",
            github=given.get("github_summary", False),
            is_kept=not given.get("no_save", False),
            fails_if_void=given.get("strict"),
        )
        if found.github and not os.environ.get("GITHUB_STEP_SUMMARY"):
            hint = "GitHub sets it in its jobs; elsewhere use prony report --format github"
            raise InputError("--github-summary: GITHUB_STEP_SUMMARY names no file", hint=hint)
        return found


def wait_quiet_s(options: Namespace) -> float:
    """Return how long to wait for a quiet machine, in seconds."""
    from prony.model.quantity import read_seconds

    return 0.0 if options.wait_quiet is None else read_seconds(options.wait_quiet, "--wait-quiet", "5m")


def add_experiment_argument(parser: ArgumentParser, *, required: bool = False) -> None:
    meaning = "an id, the start of an id, or last"
    if required:
        parser.add_argument("experiment", metavar="ID", help=meaning)
    else:
        parser.add_argument("experiment", metavar="ID", nargs="?", default="last", help=f"{meaning} (last)")


def add_experiments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "experiments", metavar="ID", nargs="*", default=["last"], help="ids, the starts of ids, or last (last)"
    )


def add_no_container(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--no-container", action="append_const", dest="set", const="workload.container=false",
        help="for a script with an image: run its command directly on the machine, without a container",
    )  # fmt: skip


def add_server(parser: ArgumentParser, *, inner: bool = False) -> None:
    """Add where the server is and who asks; the token itself is never written on a command line, where others read."""
    default = SUPPRESS if inner else None
    parser.add_argument("--server", metavar="URL", default=default, help="the server to ask (PRONY_SERVER)")
    parser.add_argument(
        "--token-file", metavar="PATH", type=Path, default=default, help="file that holds the token (PRONY_TOKEN)"
    )
