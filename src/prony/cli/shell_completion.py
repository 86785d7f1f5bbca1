"""Write shell completion for bash, zsh and fish from the parsers of all commands.

Each script holds a table of what may follow which words, so that a press of Tab starts no Python. All three walk
through the words in the same way: a word that continues the path of a command is taken into it, any other is passed
over.
"""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from prony.cli.main import COMMANDS, list_brought
from prony.cli.parsers import expand_help, find_subparsers, list_options, list_parsers

_TOP = "prony"
_OWN_OPTIONS = {"--help": "show the commands", "--version": "show version, commit, Python and platform"}


class CommandWords(NamedTuple):
    """What may be typed after the words of a command: actions and options with their meanings.

    `values` has the options that take a value, with the choices where there are some.
    """

    path: str
    actions: Mapping[str, str]
    options: Mapping[str, str]
    values: Mapping[str, tuple[str, ...]]


def list_command_words() -> list[CommandWords]:
    """Return the words after `prony` itself, after every command and after every action of one."""
    commands = {name: text for name, (_, text) in COMMANDS.items()} | list_brought()
    first = CommandWords(_TOP, commands, _OWN_OPTIONS, {})
    return [first, *(_place(path, parser) for path, parser in list_parsers().items())]


def _place(path: str, parser: ArgumentParser) -> CommandWords:
    options: dict[str, str] = {}
    values: dict[str, tuple[str, ...]] = {}
    for action in list_options(parser):
        meaning = expand_help(parser, action)
        options |= dict.fromkeys(action.option_strings, meaning)
        if action.nargs not in (0, "?"):  # after an option that can stand alone, anything may follow
            values |= dict.fromkeys(action.option_strings, tuple(map(str, action.choices or ())))
    actions = {
        word.dest: word.help or "" for found in find_subparsers(parser) for word in found._choices_actions
    } or _positional_choices(parser)
    return CommandWords(path, actions, options, values)


def _positional_choices(parser: ArgumentParser) -> dict[str, str]:
    """Return the words that an argument without dashes may be, where they are few and known."""
    named = [action for action in parser._actions if not action.option_strings and action.choices]
    return {str(choice): "" for action in named for choice in action.choices or ()}


def write_bash(places: list[CommandWords]) -> str:
    values = "\n".join(f"        {case}) {then} ;;" for case, then in _value_cases(places, _bash_choices, "return"))
    words = "\n".join(
        f"        {_quote(place.path)}) words={_quote(' '.join(place.actions))} "
        f"options={_quote(' '.join(place.options))} ;;"
        for place in places
    )
    return f"""# Completion of prony for bash, written by `prony completion bash`.
_prony() {{
    local at={_TOP} word words options current=${{COMP_WORDS[COMP_CWORD]}}
    for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
        case "$at $word" in
            {_paths(places)}) at="$at $word" ;;
        esac
    done
    case "$at ${{COMP_WORDS[COMP_CWORD-1]}}" in
{values}
    esac
    case "$at" in
{words}
    esac
    if [[ $current == -* ]]; then
        words=$options
    fi
    COMPREPLY=($(compgen -W "$words" -- "$current"))
}}
complete -o default -F _prony {_TOP}
"""


def write_zsh(places: list[CommandWords]) -> str:
    values = "\n".join(
        f"        ({case}) {then} ;;" for case, then in _value_cases(places, _zsh_choices, "_files; return")
    )
    words = "\n".join(
        f"        ({_quote(place.path)})\n            actions=({_describe(place.actions)})\n"
        f"            options=({_describe(place.options)}) ;;"
        for place in places
    )
    return f"""#compdef {_TOP}
# Completion of prony for zsh, written by `prony completion zsh`.
_prony() {{
    local at={_TOP} word
    local -a actions options
    for word in ${{words[2,CURRENT-1]}}; do
        case "$at $word" in
            ({_paths(places)}) at="$at $word" ;;
        esac
    done
    case "$at ${{words[CURRENT-1]}}" in
{values}
    esac
    case "$at" in
{words}
    esac
    if [[ ${{words[CURRENT]}} == -* ]]; then
        _describe -o option options
    elif (( $#actions )); then
        _describe command actions
    else
        _files
    fi
}}
if [[ ${{funcstack[1]}} == _prony ]]; then
    _prony "$@"
else
    compdef _prony {_TOP}
fi
"""


def write_fish(places: list[CommandWords]) -> str:
    return "\n".join(
        [
            "# Completion of prony for fish, written by `prony completion fish`.",
            f"set -g __prony_paths {' '.join(_quote_fish(place.path) for place in places)}",
            "function __prony_at",
            f"    set -l at {_TOP}",
            "    for word in (commandline -opc)[2..-1]",
            '        if contains -- "$at $word" $__prony_paths',
            '            set at "$at $word"',
            "        end",
            "    end",
            '    test "$at" = "$argv"',
            "end",
            *(line for place in places for line in _fish_lines(place)),
            "",
        ]
    )


def _fish_lines(place: CommandWords) -> Iterator[str]:
    start = f"complete -c {_TOP} -n {_quote_fish(f'__prony_at {place.path}')}"
    for name, meaning in place.actions.items():
        yield f"{start} -f -a {_quote_fish(name)} -d {_quote_fish(meaning)}"
    for name, meaning in place.options.items():
        written = f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}"
        value = ""
        if name in place.values:
            choices = place.values[name]
            value = f" -x -a {_quote_fish(' '.join(choices))}" if choices else " -r"
        yield f"{start} {written}{value} -d {_quote_fish(meaning)}"


WRITERS: dict[str, Callable[[list[CommandWords]], str]] = {"bash": write_bash, "zsh": write_zsh, "fish": write_fish}


def _paths(places: list[CommandWords]) -> str:
    """Return a pattern of every path but the first, which every line begins with."""
    return "|".join(_quote(place.path) for place in places[1:])


def _value_cases(
    places: list[CommandWords], offer: Callable[[tuple[str, ...]], str], any_value: str
) -> Iterator[tuple[str, str]]:
    """Yield what to do after an option that takes a value; those that take any value go together."""
    free: list[str] = []
    for place in places:
        for name, choices in place.values.items():
            case = _quote(f"{place.path} {name}")
            if choices:
                yield case, offer(choices)
            else:
                free.append(case)
    yield "|".join(free), any_value


def _bash_choices(choices: tuple[str, ...]) -> str:
    return f'COMPREPLY=($(compgen -W {_quote(" ".join(choices))} -- "$current")); return'


def _zsh_choices(choices: tuple[str, ...]) -> str:
    return f"compadd -- {' '.join(map(_quote, choices))}; return"


def _describe(words: Mapping[str, str]) -> str:
    return " ".join(_quote(f"{name}:{meaning}" if meaning else name) for name, meaning in words.items())


def _quote(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def _quote_fish(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
