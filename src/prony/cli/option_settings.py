"""Settings of commands: make them of the options that commands have, and give the options what files say."""

from __future__ import annotations

import argparse
import importlib
import os
import re
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from prony.model.setting import Setting, SettingKind, SettingValue

if TYPE_CHECKING:
    from prony.app.settings import ChosenSetting, SettingsFile

# A table of prony.toml, and the words of the command whose options are its keys.
TABLES = {"server": ("server",), "agent": ("agent", "start"), "load": ("load",)}
# Commands with an option that must mean what it means to another one: tokens are made in the server's database.
_USES_TABLE_OF = {"tokens": "server"}
# Options that are about one call, or that have a setting for all commands.
_NOT_HERE = frozenset({
    "help", "json", "action", "server", "token_file", "report", "gates", "threshold", "demo", "demo_home",
    "model_schemes", "model_private", "model_max_bytes", "model_folders",
})  # fmt: skip
_KINDS_BY_METAVAR: Mapping[object, SettingKind] = {"TIME": "duration", "SIZE": "size", "PORT": "port"}

# A load goes on for a time or for a number of requests: whichever is typed is meant.
_REPLACED_BY = {"load.duration": ("-n", "--requests"), "load.requests": ("-d", "--duration")}


class _Fallback(list[str]):
    """What a repeatable option has unless it is given: argparse copies it before it adds the first one given."""

    def __copy__(self) -> list[str]:
        return []


def list_settings() -> tuple[Setting, ...]:
    """Return every setting that there is."""
    from prony.app.settings import SHARED_SETTINGS

    made = [setting for table, words in TABLES.items() for setting in _settings_of(table, words)]
    return (*SHARED_SETTINGS, *made)


@contextmanager
def apply_settings(name: str, parser: ArgumentParser, arguments: Sequence[str]) -> Iterator[ServerGuard]:
    """Give a command what files and the environment say, for as long as the block runs.

    `arguments` are those of the command: some of them take the place of a setting of another name.
    """
    with use_settings(name) as chosen:
        _set_defaults(name, parser, {key: one for key, one in chosen.items() if not _is_replaced(key, arguments)})
        yield ServerGuard(chosen)


@contextmanager
def use_settings(name: str) -> Iterator[Mapping[str, ChosenSetting]]:
    """Read what counts for a command, and put what is no option of one command into the environment for the block."""
    chosen = _choose(name)
    if chosen is None:
        yield {}
        return
    from prony.app.settings import export_settings

    with export_settings({key: one for key, one in chosen.items() if "__" not in one.setting.variable}):
        yield chosen


def settings_files(name: str) -> list[SettingsFile]:
    """Return the files that count for a command."""
    from prony.app.settings import OF_A_FOLDER, find_settings_files

    found = find_settings_files(Path.cwd())
    # A runner has in its environment what counts, and stands in a folder that its job may have written.
    return [file for file in found if name != "exec" or file.level not in OF_A_FOLDER]


class ServerGuard:
    """Keeps the user's token from a server that only a project's file names."""

    def __init__(self, chosen: Mapping[str, ChosenSetting]) -> None:
        self._chosen = chosen

    def check(self, options: Namespace) -> None:
        """Take the token out of the environment of this command where it must not be sent, and say so."""
        from prony.app.settings import OF_A_FOLDER

        server = self._chosen.get("cli.server")
        if server is None or server.origin.level not in OF_A_FOLDER or not hasattr(options, "server"):
            return
        if options.server or options.token_file:
            return
        kept = [self._chosen[key] for key in ("cli.token", "cli.token_file")]
        withheld = [one.setting.variable for one in kept if one.value and one.origin.level not in OF_A_FOLDER]
        for variable in withheld:
            os.environ.pop(variable, None)
        if withheld:
            from prony.cli.output import print_note

            print_note(
                f"note: no token is sent to {server.shown}, because only {server.origin.place} names it; "
                f"use --server {server.shown} to send yours"
            )


def _is_replaced(key: str, arguments: Sequence[str]) -> bool:
    """Tell whether an option was given that stands for another way to say the same."""
    others = _REPLACED_BY.get(key, ())
    return any(word.partition("=")[0] in others or word[:2] in others for word in arguments)


def _choose(name: str) -> dict[str, ChosenSetting] | None:
    """Return what counts; None where there is nothing but today's variables, which are looked for where they count."""
    if name in ("settings", "menu"):  # one tells what counts for the others, one starts them: each reads for itself
        return None
    try:
        files = settings_files(name)
    except FileNotFoundError:  # the current folder was deleted
        files = []
    if not any(file.is_there for file in files) and not any(
        one.startswith("PRONY_") and "__" in one for one in os.environ
    ):
        return None
    from prony.app.settings import resolve_settings

    for file in files:
        if file.refusal:
            from prony.cli.output import print_note

            print_note(f"note: {file.path} is not read: {file.refusal}")
    return resolve_settings(list_settings(), files)


def _settings_of(table: str, words: tuple[str, ...]) -> Iterator[Setting]:
    for action in _parser_of(words)._actions:
        if action.option_strings and action.dest not in _NOT_HERE:
            yield Setting(
                key=f"{table}.{action.dest}",
                variable=f"PRONY_{table}__{action.dest}".upper(),
                meaning=(action.help or "").replace("%%", "%"),
                kind=_kind_of(action),
                default=_show_default(action),
                option=_long_option(action),
                choices=tuple(map(str, action.choices or ())),
            )


def _parser_of(words: tuple[str, ...]) -> ArgumentParser:
    parser = ArgumentParser(add_help=False)
    importlib.import_module(f"prony.cli.commands.{words[0]}").arguments(parser)
    for word in words[1:]:
        parser = next(_sub_parsers(parser))[word]
    return parser


def _sub_parsers(parser: ArgumentParser) -> Iterator[Mapping[str, ArgumentParser]]:
    return (one.choices for one in parser._actions if isinstance(one, argparse._SubParsersAction))


def _long_option(action: argparse.Action) -> str:
    return next(one for one in action.option_strings if one.startswith("--"))


def _kind_of(action: argparse.Action) -> SettingKind:
    if isinstance(action, argparse._AppendAction):
        return "words"
    if action.nargs == 0:
        return "flag"
    if action.choices:
        return "choice"
    if action.metavar in _KINDS_BY_METAVAR or action.dest == "port":
        return _KINDS_BY_METAVAR.get(action.metavar, "port")
    return "integer" if action.type is int else "number" if action.type is float else "text"


def _show_default(action: argparse.Action) -> str:
    """Return the default, which some commands have only in their help: `requests in flight (10)`."""
    if isinstance(action.default, bool):
        return "true" if action.default else "false"
    if action.default == []:
        return ""
    if action.default is None:
        told = re.search(r"\((\w+)\)$", action.help or "")
        return told[1] if told else ""
    return str(action.default)


def _set_defaults(name: str, parser: ArgumentParser, chosen: Mapping[str, ChosenSetting]) -> None:
    """Let the options of a command begin with what is set for them."""
    tables = {"cli", _USES_TABLE_OF.get(name, ""), *(table for table, words in TABLES.items() if words[0] == name)}
    given = [
        one
        for one in chosen.values()
        if one.value is not None and "__" in one.setting.variable and one.setting.key.partition(".")[0] in tables
    ]
    for one_parser in _with_inner(parser):
        for action in one_parser._actions:
            for one in given:
                if one.setting.option in action.option_strings and _fits(action, one.setting):
                    action.default = _default_of(one.value)


def _with_inner(parser: ArgumentParser) -> Iterator[ArgumentParser]:
    yield parser
    for inner in _sub_parsers(parser):
        for one in inner.values():
            yield from _with_inner(one)


def _fits(action: argparse.Action, setting: Setting) -> bool:
    # An option that is a share is text to argparse.
    return action.default is not argparse.SUPPRESS and (setting.kind == "share" or _kind_of(action) == setting.kind)


def _default_of(value: SettingValue | None) -> object:
    return _Fallback(value) if isinstance(value, tuple) else value
