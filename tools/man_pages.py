"""Write a man page for Prony and one for each command, from the parsers.

`python -m tools.man_pages FOLDER` writes FOLDER/prony.1, FOLDER/prony-run.1 and so on.
"""

from __future__ import annotations

import argparse
import sys
from argparse import ArgumentParser
from collections.abc import Iterator
from pathlib import Path

from prony import __version__
from prony.cli.main import COMMANDS
from prony.cli.parsers import expand_help, find_subparsers, list_parsers

EXIT_STATUS = {
    "0": "success",
    "1": "a job has no numbers, or a gate or a check failed",
    "2": "wrong input: the recipe, an option, a name",
    "3": "Prony or its environment failed",
    "130": "stopped by Ctrl-C; completed measurements are kept",
}


def main() -> int:
    folder = Path(sys.argv[1])
    pages = man_pages()
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in pages.items():
        (folder / name).write_text(text)
    print(f"{len(pages)} man pages in {folder}")
    return 0


def man_pages() -> dict[str, str]:
    """Return every page by the name of its file."""
    parsers = list_parsers()
    pages = {f"prony-{name}.1": _command_page(name, parsers) for name in COMMANDS}
    return {"prony.1": _first_page()} | pages


def _first_page() -> str:
    lines = [*_head("prony", "measure models, services, scripts and hardware, with numbers you can defend")]
    lines += [".SH SYNOPSIS", ".B prony", "COMMAND [OPTIONS]", ".SH COMMANDS"]
    for name, (_, text) in COMMANDS.items():
        lines += [".TP", f".BR prony\\-{_escape(name)} (1)", _text(text)]
    lines += [*_exit_status(), ".SH SEE ALSO", _text("`prony docs` opens the documentation, without a network.")]
    return "\n".join(lines) + "\n"


def _command_page(name: str, parsers: dict[str, ArgumentParser]) -> str:
    parser = parsers[f"prony {name}"]
    lines = [*_head(f"prony-{name}", COMMANDS[name][1]), ".SH SYNOPSIS", *_usage(parser), ".SH DESCRIPTION"]
    lines += [_text(parser.description or COMMANDS[name][1]), *_arguments(".SH ARGUMENTS", parser)]
    inner = [word for action in find_subparsers(parser) for word in action._choices_actions]
    if inner:
        lines.append(".SH ACTIONS")
    for word in inner:
        below = parsers[f"prony {name} {word.dest}"]
        lines += [f".SS {_escape(f'prony {name} {word.dest}')}", _text(_sentence(word.help or "")), *_usage(below)]
        lines += _arguments("", below)
    lines += [*_exit_status(), ".SH SEE ALSO", ".BR prony (1)"]
    return "\n".join(lines) + "\n"


def _head(name: str, about: str) -> Iterator[str]:
    yield f'.TH {name.upper()} 1 "" "Prony {__version__}" "Prony"'
    yield ".SH NAME"
    yield f"{_escape(name)} \\- {_escape(about)}"


def _usage(parser: ArgumentParser) -> Iterator[str]:
    usage = " ".join(parser.format_usage().removeprefix("usage: ").split())
    yield ".PP"
    yield _text(usage)


def _arguments(heading: str, parser: ArgumentParser) -> Iterator[str]:
    shown = [
        action
        for action in parser._actions
        if action.help != argparse.SUPPRESS and not isinstance(action, argparse._SubParsersAction)
    ]
    if shown and heading:
        yield heading
    for action in shown:
        yield ".TP"
        yield f".B {_escape(_name(parser, action))}"
        yield _text(expand_help(parser, action))


def _name(parser: ArgumentParser, action: argparse.Action) -> str:
    if not action.option_strings:
        return str(action.metavar or action.dest)
    takes = parser._get_formatter()._format_args(action, action.dest.upper()) if action.nargs != 0 else ""
    return f"{', '.join(action.option_strings)} {takes}".strip()


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}." if text else ""


def _exit_status() -> Iterator[str]:
    yield ".SH EXIT STATUS"
    for code, meaning in EXIT_STATUS.items():
        yield from (".TP", f".B {code}", _text(meaning))


def _text(text: str) -> str:
    """Return a line of running text; one that begins like a request of roff is kept from being one."""
    escaped = _escape(" ".join(text.split()))
    return f"\\&{escaped}" if escaped[:1] in (".", "'") else escaped


def _escape(text: str) -> str:
    return text.replace("\\", "\\e").replace("-", "\\-").replace("…", "...")


if __name__ == "__main__":
    sys.exit(main())
