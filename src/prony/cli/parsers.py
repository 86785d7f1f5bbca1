"""Build the parsers of all commands without running one: for reference pages, man pages and shell completion."""

from __future__ import annotations

import argparse
import importlib
from argparse import ArgumentParser
from collections.abc import Iterator
from functools import cache

from prony.cli.main import COMMANDS


def build_parser(name: str) -> ArgumentParser:
    """Return the parser of a command, one that raises where it would end the process."""
    module = importlib.import_module(f"prony.cli.commands.{COMMANDS[name][0]}")
    about = module.arguments.__doc__
    parser = ArgumentParser(prog=f"prony {name}", description=about, allow_abbrev=False, exit_on_error=False)
    module.arguments(parser)
    return parser


@cache
def list_parsers() -> dict[str, ArgumentParser]:
    """Return the parser of every command, and of every action of a command, by how it is called."""
    found: dict[str, ArgumentParser] = {}
    for name in COMMANDS:
        parser = found[f"prony {name}"] = build_parser(name)
        for action in find_subparsers(parser):
            found |= {f"prony {name} {word}": inner for word, inner in action.choices.items()}
    return found


def find_subparsers(parser: ArgumentParser) -> Iterator[argparse._SubParsersAction[ArgumentParser]]:
    """Yield the arguments of a parser that are actions with parsers of their own."""
    return (action for action in parser._actions if isinstance(action, argparse._SubParsersAction))


def list_options(parser: ArgumentParser) -> list[argparse.Action]:
    """Return the options that the help shows, `--help` with them."""
    return [action for action in parser._actions if action.option_strings and action.help != argparse.SUPPRESS]


def expand_help(parser: ArgumentParser, action: argparse.Action) -> str:
    """Return the help text of an argument as a person reads it, in one line."""
    text = parser._get_formatter()._expand_help(action) if action.help else ""
    return " ".join(text.split())
