"""The tables of docs/commands.md: every command with its arguments."""

from __future__ import annotations

import argparse
import re
from argparse import Action, ArgumentParser
from collections.abc import Iterator
from typing import NamedTuple

from prony.cli.main import COMMANDS
from prony.cli.parsers import list_parsers
from tools.reference.markdown import format_table, format_text

# Options of many commands. `prony run` has them in the usual words; a command with other words has a row of its own.
COMMON = ("--set", "--json", "--report", "--wait-quiet", "--strict", "--server", "--token-file")
# Commands that share most of their arguments with another: its rows are not written twice.
SAME_AS = {
    "prony recipe": "prony bench",
    "prony agents list": "prony agents",
    "prony agent info": "prony agent start",
    "prony agent validate": "prony agent start",
    "prony agent test": "prony agent start",
    "prony agent enroll": "prony agent start",
}
_TABLE = re.compile(r"^\| (?:argument|command) \| meaning \|\n(?:\|[^\n]*\n)*", re.MULTILINE)
_SECTION = re.compile(r"^##+ (?P<title>prony [^\n]*|All commands|Common options)\n.*?(?=^##+ |\Z)", re.DOTALL | re.M)


class Row(NamedTuple):
    """An argument as the page shows it."""

    name: str
    meaning: str


def write_command_tables(page: str) -> str:
    """Return the page of commands with every table as the parsers have it."""
    tables = _tables()
    return _SECTION.sub(lambda found: _replace_table(found[0], found["title"], tables), page)


def _replace_table(section: str, title: str, tables: dict[str, str]) -> str:
    """Return a section with its table; one that has none has no line for it, and the other way round."""
    count = len(_TABLE.findall(section))
    if title not in tables or count != bool(tables[title]):
        raise ValueError(f"docs/commands.md, {title}: {count} tables of arguments, or no such command")
    return _TABLE.sub(lambda _: tables[title], section)


def _tables() -> dict[str, str]:
    """Return the text of every table by the heading that it stands under."""
    rows = {title: list(_rows(title, parser)) for title, parser in list_parsers().items()}
    usual = [next(row for row in rows["prony run"] if re.match(rf"`{name}[` ]", row.name)) for name in COMMON]
    tables = {title: _format_table(_shorten(title, rows, usual)) for title in rows}
    tables["Common options"] = _format_table(usual)
    commands = [Row(f"[prony {name}](#prony-{name})", format_text(text)) for name, (_, text) in COMMANDS.items()]
    tables["All commands"] = _format_table(commands, "command")
    return tables


def _shorten(title: str, rows: dict[str, list[Row]], usual: list[Row]) -> list[Row]:
    """Return the rows of a command, with those that others share in one line each."""
    model = SAME_AS.get(title, "")
    link = f"as in [{model}](#{model.replace(' ', '-')})"
    shared = [row for row in rows[title] if model and row in rows[model] and row not in usual]
    common = [row for row in rows[title] if row in usual]
    own = [row for row in rows[title] if row not in shared + common]
    return own + _join(shared, link) + _join(common, "[common](#common-options)")


def _join(rows: list[Row], meaning: str) -> list[Row]:
    """Return one row for several, with their names alone: what follows a name stands where the link leads."""
    names = [re.sub(r"(?<!\S)`([^\s`]+) [^`]*`", r"`\1`", row.name) for row in rows]
    return [Row(", ".join(names), meaning)] if rows else []


def _format_table(rows: list[Row], head: str = "argument") -> str:
    return format_table((head, "meaning"), rows) if rows else ""


def _rows(title: str, parser: ArgumentParser) -> Iterator[Row]:
    """Yield the arguments of a command in the order of its help."""
    formatter = parser._get_formatter()
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for word in action._choices_actions:
                yield Row(f"[`{word.dest}`](#{f'{title} {word.dest}'.replace(' ', '-')})", format_text(word.help or ""))
        elif action.help != argparse.SUPPRESS and action.dest != "help":
            yield Row(_name(action, formatter), format_text(formatter._expand_help(action) if action.help else ""))


def _name(action: Action, formatter: argparse.HelpFormatter) -> str:
    """Return how an argument is written: all names of an option, the last with what follows it."""
    if not action.option_strings:
        return f"`{action.metavar or action.dest}`"
    *others, last = action.option_strings
    takes = formatter._format_args(action, action.dest.upper()) if action.nargs != 0 else ""
    return ", ".join(f"`{name}`" for name in (*others, f"{last} {takes}".strip()))
