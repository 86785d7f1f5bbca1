"""The page about commands has the help of every command, and every example on any page is one that works."""

from __future__ import annotations

import argparse
import importlib
import re
import shlex
from argparse import ArgumentParser
from itertools import takewhile
from pathlib import Path

import pytest

from prony.cli.main import COMMANDS
from prony.cli.parsers import build_parser, list_parsers
from prony.error_codes import ERROR_CODES
from prony.errors import exit_code
from tools.reference.commands import write_command_tables

from .house import ROOT, page, pages, rows, section

CONSOLE = re.compile(r"```console\n(.*?)```", re.DOTALL)
OPTION = re.compile(r"(?<![\w-])--?[a-zA-Z][\w-]*")


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


def test_the_page_tells_just_the_arguments_that_a_command_has() -> None:
    assert {title: told(title) for title in list_parsers()} == {
        title: words_of(parser) for title, parser in list_parsers().items()
    }


def test_the_help_has_no_quotation_mark_left_over_from_the_source() -> None:
    for title, parser in list_parsers().items():
        name = title.split()[1]
        about = importlib.import_module(f"prony.cli.commands.{COMMANDS[name][0]}").arguments.__doc__ or ""
        assert not re.search(r'"\s+"', " ".join((about, parser.format_help()))), title


def test_there_is_a_section_for_every_command_and_for_no_other() -> None:
    assert re.findall(r"^##+ (prony .*)$", page("commands"), re.MULTILINE) == list(list_parsers())


def test_a_cell_with_other_words_than_the_help_is_replaced() -> None:
    changed = page("commands").replace("| number of requests, instead of a duration |", "| how many |")
    assert changed != page("commands")
    assert write_command_tables(changed) == page("commands")


def test_a_command_without_the_line_for_its_table_is_an_error() -> None:
    with pytest.raises(ValueError, match="prony zoo"):
        write_command_tables("## prony zoo\n\nModels that need no download.\n")


def test_the_page_lists_every_command_with_the_words_of_the_help() -> None:
    listed = rows(section(page("commands"), "## All commands"))[1:]
    assert listed == [[f"[prony {name}](#prony-{name})", text] for name, (_, text) in COMMANDS.items()]


def test_every_argument_has_a_help_text_with_its_default() -> None:
    for title, parser in list_parsers().items():
        shown = [action for action in parser._actions if action.help != argparse.SUPPRESS and action.nargs != "A..."]
        assert [action.dest for action in shown if not action.help] == [], title
        # A default of None, of nothing or of a list means that something else decides.
        given = [
            action for action in shown if isinstance(action.default, str | int) and action.nargs != 0 and action.default
        ]
        given = [action for action in given if action.default != argparse.SUPPRESS]
        silent = [action for action in given if str(action.default) not in str(action.help).replace("%%", "%")]
        assert [action.dest for action in silent] == [], title


def examples() -> list[tuple[Path, str]]:
    """Return every line of a console block, and of the README's tables, that calls prony, with its page."""
    shown = [cell for row in rows((ROOT / "README.md").read_text()) for cell in row if cell.startswith("`prony ")]
    found = [(ROOT / "README.md", cell.strip("`")) for cell in shown]
    for path in pages():
        lines = [line for block in CONSOLE.findall(path.read_text()) for line in block.splitlines()]
        commands = [line.removeprefix("$ ") for line in lines if re.match(r"(\$ )?prony\b", line)]
        found += [(path, command) for command in commands]
    return found


def refusal(command: str) -> str:
    """Return why prony does not take an example; nothing where it does."""
    # What begins a pipe or a file ends the command; inside of quotes it is part of a word.
    words = list(takewhile(lambda word: word[:1] not in ("|", ">", "&"), shlex.split(command, comments=True)))[1:]
    if words[0] in ("--help", "--version", "-V", "-h"):
        return ""
    if words[0] not in COMMANDS:
        return "no such command"
    try:
        if "--help" not in words:
            list_parsers()[f"prony {words[0]}"].parse_args(words[1:])
    except (argparse.ArgumentError, SystemExit) as exc:
        return str(exc) or "refused"
    return ""


def test_an_example_is_a_command_that_prony_takes() -> None:
    shown = examples()
    assert len(shown) > 300
    assert [(path.name, command, why) for path, command in shown if (why := refusal(command))] == []


@pytest.mark.parametrize("command", ["prony run recipes/yolo.yaml --batch 8", "prony rum recipes/yolo.yaml"])
def test_a_wrong_example_would_be_refused(command: str) -> None:
    assert refusal(command)


def test_a_recipe_that_an_example_runs_is_there() -> None:
    for path in (path for path in pages() if path.name != "recipe.md"):
        named = set(re.findall(r"\brecipes/[\w.-]+\.(?:yaml|toml|json)", path.read_text()))
        assert [name for name in named if not (ROOT / name).is_file()] == [], path


def test_the_advice_of_error_codes_names_commands_and_options_that_there_are() -> None:
    texts = {code: re.findall(r"`prony ([a-z][^`]*)`", about.advice) for code, about in ERROR_CODES.items()}
    advised = [(code, *command.split()) for code, commands in texts.items() for command in commands]
    assert len(advised) > 20
    for code, name, *words in advised:
        assert name in COMMANDS, code
        parser = build_parser(name)
        known = {word for each in (parser, *_below(parser)) for word in words_of(each)} | {"--help"}
        assert {word for word in words if word.startswith("--")} <= known, code


def _below(parser: ArgumentParser) -> list[ArgumentParser]:
    choices = [action.choices for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    return [one for each in choices for one in each.values()]


def test_the_exit_codes_on_the_page_are_those_of_the_errors() -> None:
    from prony import errors

    codes = {row[0] for row in rows(page("commands").partition("\n## ")[0])[1:]}
    assert {str(exit_code(kind("x"))) for kind in errors.EXIT_CODES} | {"0", "130"} == codes
