"""Write the tables of docs/commands.md, settings.md, metrics.md and troubleshoot.md that repeat the code.

`python -m tools.reference` replaces the table of all commands, the table of common options, the one table of
arguments under the heading of each command, the table of every setting, every line of a metric, and what errors say.
What people wrote around the tables stays. For a new command, write its heading, what it is for, and the line `|
argument | meaning |` where its table belongs; for a new metric, a line of its table that begins with its name.
"""

from __future__ import annotations

import argparse
import re
import sys
from argparse import Action, ArgumentParser
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from prony.cli.main import COMMANDS
from prony.cli.option_settings import list_settings
from prony.cli.parsers import list_parsers
from prony.model.metric import METRICS
from prony.model.setting import Setting
from prony.ports.metric_titles import metric_title
from tools.error_hints import write_hint_table

DOCS = Path(__file__).parents[1] / "docs"
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
_SETTINGS = re.compile(r"^\| setting \|[^\n]*\n(?:\|[^\n]*\n)*", re.MULTILINE)
_METRIC = re.compile(r"^\| `(\w+)` \|[^\n]*$", re.MULTILINE)
_SECTION = re.compile(r"^##+ (?P<title>prony [^\n]*|All commands|Common options)\n.*?(?=^##+ |\Z)", re.DOTALL | re.M)
# Options, variables and addresses of a help text are code on the page.
_CODE = re.compile(r"(?<![\w-])--[a-z][\w-]*|\b[A-Z]+_[A-Z_]+\b|\b[a-z\d+]+://[^\s,;)]*")


class Row(NamedTuple):
    """An argument as the page shows it."""

    name: str
    meaning: str


def main() -> int:
    for name, write in PAGES.items():
        before = (DOCS / name).read_text()
        after = write(before)
        (DOCS / name).write_text(after)
        print(f"{name}: {'unchanged' if after == before else 'written'}")
    return 0


def write_settings_table(page: str) -> str:
    """Return the page of settings with its table as the code has it."""
    lines = ["| setting | variable | option | value | default | meaning |", "|---|---|---|---|---|---|"]
    lines += [f"| {' | '.join(_setting_cells(one))} |" for one in list_settings()]
    written, count = _SETTINGS.subn(lambda _: "\n".join(lines) + "\n", page)
    if count != 1:
        raise ValueError(f"docs/settings.md: {count} tables of settings")
    return written


def _setting_cells(one: Setting) -> Iterator[str]:
    """Yield the cells of a setting; one that no file may hold has no key to write."""
    yield f"`{one.key}`" if one.in_files else one.key
    yield f"`{one.variable}`"
    yield f"`{one.option}`" if one.option else ""
    yield " or ".join(f"`{choice}`" for choice in one.choices) or one.kind
    yield f"`{one.default}`" if one.default else ""
    yield _markdown(one.meaning.replace(f" ({one.default})", ""))


def write_metric_rows(page: str) -> str:
    """Return the page of metrics with the line of each metric as the code has it; people choose the order."""
    metrics, heading, rest = page.partition("## Statistics")
    return _METRIC.sub(lambda found: _metric_row(found[1]), metrics) + heading + rest


def _metric_row(name: str) -> str:
    if name not in METRICS:
        raise ValueError(f"docs/metrics.md: no metric is called {name}")
    metric = METRICS[name]
    # Other metrics are code; the few without an underscore are also ordinary words.
    words = re.split(r"(\w+)", metric.meaning)
    meaning = "".join(f"`{word}`" if "_" in word and word in METRICS else word for word in words)
    return f"| `{name}` | {metric_title(name)} | {metric.unit} | {metric.better} | {_markdown(meaning)} |"


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
    commands = [Row(f"[prony {name}](#prony-{name})", _markdown(text)) for name, (_, text) in COMMANDS.items()]
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
    lines = [f"| {head} | meaning |", "|---|---|", *(f"| {name} | {meaning} |" for name, meaning in rows)]
    return "\n".join(lines) + "\n" if rows else ""


def _rows(title: str, parser: ArgumentParser) -> Iterator[Row]:
    """Yield the arguments of a command in the order of its help."""
    formatter = parser._get_formatter()
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for word in action._choices_actions:
                yield Row(f"[`{word.dest}`](#{f'{title} {word.dest}'.replace(' ', '-')})", _markdown(word.help or ""))
        elif action.help != argparse.SUPPRESS and action.dest != "help":
            yield Row(_name(action, formatter), _markdown(formatter._expand_help(action) if action.help else ""))


def _name(action: Action, formatter: argparse.HelpFormatter) -> str:
    """Return how an argument is written: all names of an option, the last with what follows it."""
    if not action.option_strings:
        return f"`{action.metavar or action.dest}`"
    *others, last = action.option_strings
    takes = formatter._format_args(action, action.dest.upper()) if action.nargs != 0 else ""
    return ", ".join(f"`{name}`" for name in (*others, f"{last} {takes}".strip()))


def _markdown(text: str) -> str:
    """Return a help text for a cell: what is code between backticks, the rest without Markdown's signs."""
    parts = " ".join(text.split()).split("`")
    return "".join(f"`{part}`" if place % 2 else _escape(part) for place, part in enumerate(parts))


def _escape(text: str) -> str:
    plain = re.sub(r"([|*<\[\]\\])", r"\\\1", text)
    return _CODE.sub(lambda found: f"`{found[0]}`", plain)


PAGES: dict[str, Callable[[str], str]] = {
    "commands.md": write_command_tables, "settings.md": write_settings_table, "metrics.md": write_metric_rows,
    "troubleshoot.md": write_hint_table,
}  # fmt: skip

if __name__ == "__main__":
    sys.exit(main())
