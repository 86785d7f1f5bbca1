"""The page about commands tells everything of every command, and every example on any page is one that works."""

from __future__ import annotations

import argparse
import importlib
import re
import shlex
from argparse import ArgumentParser
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path

import pytest

from prony.cli.main import COMMANDS
from prony.errors import exit_code

from .house import ROOT, page, pages, rows, section

CONSOLE = re.compile(r"```console\n(.*?)```", re.DOTALL)
OPTION = re.compile(r"(?<![\w-])--?[a-zA-Z][\w-]*")


def parser_of(name: str) -> ArgumentParser:
    """Return the real parser of a command, one that raises where it would end the process."""
    parser = ArgumentParser(prog=f"prony {name}", allow_abbrev=False, exit_on_error=False)
    importlib.import_module(f"prony.cli.commands.{COMMANDS[name][0]}").arguments(parser)
    return parser


def parsers() -> Iterator[tuple[str, ArgumentParser]]:
    """Yield every command, and every action of a command, with its parser."""
    for name in COMMANDS:
        parser = parser_of(name)
        yield f"prony {name}", parser
        for action in parser._actions:
            if isinstance(action, argparse._SubParsersAction):
                yield from ((f"prony {name} {word}", inner) for word, inner in action.choices.items())


def words_of(parser: ArgumentParser) -> set[str]:
    """Return what a person may write: options by every name that they have, positional arguments as help shows them."""
    shown = [action for action in parser._actions if action.help != argparse.SUPPRESS and action.dest != "help"]
    found: set[str] = set()
    for action in shown:
        if isinstance(action, argparse._SubParsersAction):
            found |= set(action.choices)
        else:
            found |= set(action.option_strings) or {str(action.metavar or action.dest)}
    return found


def told(title: str) -> set[str]:
    """Return what the tables under a command's heading name."""
    level = "##" if title.count(" ") == 1 else "###"
    text = section(page("commands"), f"{level} {title}")
    text = text if level == "###" else text.partition("\n### ")[0]
    cells = [row[0] for row in rows(text) if row[0] != "argument"]
    return {word.split()[0] for cell in cells for word in re.findall(r"`([^`]+)`", cell)}


@pytest.mark.parametrize(("title", "parser"), list(parsers()), ids=lambda one: one if isinstance(one, str) else "")
def test_the_page_tells_just_the_arguments_that_a_command_has(title: str, parser: ArgumentParser) -> None:
    assert told(title) == words_of(parser)


@pytest.mark.parametrize(("title", "parser"), list(parsers()), ids=lambda one: one if isinstance(one, str) else "")
def test_the_help_has_no_quotation_mark_left_over_from_the_source(title: str, parser: ArgumentParser) -> None:
    name = title.split()[1]
    about = importlib.import_module(f"prony.cli.commands.{COMMANDS[name][0]}").arguments.__doc__ or ""
    assert not re.search(r'"\s+"', " ".join((about, parser.format_help()))), title


def test_there_is_a_section_for_every_command_and_for_no_other() -> None:
    assert re.findall(r"^##+ (prony .*)$", page("commands"), re.MULTILINE) == [title for title, _ in parsers()]


def test_the_page_lists_every_command_with_the_words_of_the_help() -> None:
    table = rows(section(page("commands"), "## All commands"))[1:]
    listed = {row[0].strip("`").split()[1]: row[1] for row in table}
    said = {name: text.partition(";")[0] for name, (_, text) in COMMANDS.items()}
    assert listed == said


def examples() -> list[tuple[Path, str]]:
    """Return every line of a console block, and of the README's tables, that calls prony, with its page."""
    shown = [cell for row in rows((ROOT / "README.md").read_text()) for cell in row if cell.startswith("`prony ")]
    found = [(ROOT / "README.md", cell.strip("`")) for cell in shown]
    for path in pages():
        lines = [line for block in CONSOLE.findall(path.read_text()) for line in block.splitlines()]
        commands = [line.removeprefix("$ ") for line in lines if re.match(r"(\$ )?prony\b", line)]
        found += [(path, command) for command in commands]
    return found


@pytest.mark.parametrize(("path", "command"), examples(), ids=lambda one: one if isinstance(one, str) else one.name)
def test_an_example_is_a_command_that_prony_takes(path: Path, command: str) -> None:
    # What begins a pipe or a file ends the command; inside of quotes it is part of a word.
    words = list(takewhile(lambda word: word[:1] not in ("|", ">", "&"), shlex.split(command, comments=True)))[1:]
    if words[0] in ("--help", "--version", "-V", "-h"):
        return
    assert words[0] in COMMANDS, path
    if "--help" not in words:
        parser_of(words[0]).parse_args(words[1:])


def test_a_wrong_example_would_be_refused() -> None:
    with pytest.raises((argparse.ArgumentError, SystemExit)):
        parser_of("run").parse_args(["recipes/yolo.yaml", "--batch", "8"])


@pytest.mark.parametrize("path", [path for path in pages() if path.name != "recipe.md"], ids=lambda path: path.name)
def test_a_recipe_that_an_example_runs_is_there(path: Path) -> None:
    named = set(re.findall(r"\brecipes/[\w.-]+\.(?:yaml|toml|json)", path.read_text()))
    assert [name for name in named if not (ROOT / name).is_file()] == []


def test_the_exit_codes_on_the_page_are_those_of_the_errors() -> None:
    from prony import errors

    codes = {row[0] for row in rows(page("commands").partition("\n## ")[0])[1:]}
    assert {str(exit_code(kind("x"))) for kind in errors.EXIT_CODES} | {"0", "130"} == codes
