"""`prony menu`: choose a command and its options step by step, then show the command and run it.

What is run is the very command that is shown, as a process of its own, so that whoever chose it can type it next time.
"""

from __future__ import annotations

import json
import shlex
import signal
import subprocess
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prony.cli.arguments import add_server
from prony.ports.plugins import EXPORTERS, IMPORTERS, find_plugins

_SUFFIXES = (".yaml", ".yml", ".toml", ".json")
_MOST = 30
_NEWEST = 12


class Back(Exception):  # noqa: N818 - not an error: somebody wants to choose again
    """Whoever was asked wants to go back."""


@dataclass(frozen=True)
class Terminal:
    """How a person is asked and told, and how a command is run; `server` is what every command is to reach."""

    server: Sequence[str] = ()

    def tell(self, text: str = "") -> None:
        sys.stdout.write(text + "\n")
        sys.stdout.flush()

    def ask(self, question: str) -> str:
        """Return what was typed; Ctrl-C and Ctrl-D go back."""
        try:
            return input(f"{question} ").strip()
        except (EOFError, KeyboardInterrupt) as exc:
            self.tell()
            raise Back from exc

    def run(self, arguments: Sequence[str]) -> int:
        """Show a command and run it to its end. Ctrl-C is for it alone."""
        self.tell(f"\n$ prony {shlex.join(arguments)}\n")
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            return subprocess.run(_command(arguments), check=False, preexec_fn=_hears).returncode
        finally:
            signal.signal(signal.SIGINT, before)

    def answer(self, arguments: Sequence[str]) -> Any:
        """Return what a command says as JSON; None where it fails, and then it has told why."""
        done = subprocess.run(_command([*arguments, "--json"]), check=False, stdout=subprocess.PIPE)
        return json.loads(done.stdout) if done.returncode == 0 else None


def _command(arguments: Sequence[str]) -> list[str]:
    return [sys.executable, "-m", "prony", *arguments]


def _hears() -> None:
    """Let a command hear Ctrl-C, which this process does not while the command runs."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@dataclass(frozen=True)
class Choice:
    """One line of the menu; `arguments` asks for what the command needs."""

    word: str
    about: str
    arguments: Callable[[Terminal], list[str]]


def choose(terminal: Terminal, question: str, lines: Sequence[str], *, other: str = "") -> str | int:
    """Return the number of the line that was chosen, from 0, or what was typed instead where `other` allows it."""
    for number, line in enumerate(lines, start=1):
        terminal.tell(f"  {number:>2}  {line}")
    while True:
        typed = terminal.ask(
            f"{question} ({'number, ' + other if other and lines else other or 'number'}; Enter: back)"
        )
        if not typed:
            raise Back
        if typed.isdigit() and 1 <= int(typed) <= len(lines):
            return int(typed) - 1
        if other and not typed.isdigit():
            return typed
        terminal.tell(f"  {typed} is not in the list")


def recipe(terminal: Terminal) -> str:
    """Ask which recipe: those below this folder, or a path."""
    found = sorted(
        path for folder in (Path("recipes"), Path("examples")) for path in folder.glob("**/*") if _is_recipe(path)
    )
    found = (found or sorted(path for path in Path().glob("*") if _is_recipe(path)))[:_MOST]
    chosen = choose(terminal, "Which recipe?", [str(path) for path in found], other="path")
    return str(found[chosen]) if isinstance(chosen, int) else chosen


def _is_recipe(path: Path) -> bool:
    """Say whether a file is a recipe, by what stands in it: other programs have YAML, TOML and JSON too."""
    from prony.errors import InputError
    from prony.recipe.dialects import recognise
    from prony.recipe.formats import format_of, parse_document
    from prony.recipe.limits import LARGEST_BYTES

    if path.suffix not in _SUFFIXES or not path.is_file() or path.name.startswith("."):
        return False
    try:
        if path.stat().st_size > LARGEST_BYTES:
            return False
        document = parse_document(path.read_text(encoding="utf-8"), format_of(path), path.name).document
    except (InputError, OSError, UnicodeDecodeError):  # whoever means it may still type its name
        return False
    return isinstance(document, dict) and ("workload" in document or recognise(document) is not None)


def experiments(terminal: Terminal, question: str, *, several: bool = False) -> list[str]:
    """Ask for an experiment, or for several, among the newest; an id may be typed too."""
    rows = terminal.answer(["list", "--limit", str(_NEWEST), *terminal.server]) or []
    if not rows:
        terminal.tell("  no experiments yet: run a recipe first")
        raise Back
    ids = [str(row["id"]) for row in rows]
    lines = [f"{row['id']}  {row['name']}  {row['state']}" for row in rows]
    if not several:
        chosen = choose(terminal, question, lines, other="id")
        return [ids[chosen] if isinstance(chosen, int) else chosen]
    for number, line in enumerate(lines, start=1):
        terminal.tell(f"  {number:>2}  {line}")
    typed = terminal.ask(f"{question} (numbers or ids, separated by commas; Enter: back)")
    if not typed:
        raise Back
    words = [word for word in typed.replace(",", " ").split() if word]
    return [ids[int(word) - 1] if word.isdigit() and 1 <= int(word) <= len(ids) else word for word in words]


def ask_option(terminal: Terminal, question: str, option: str) -> list[str]:
    """Return an option with what was typed for it, nothing where that is nothing."""
    typed = terminal.ask(question)
    return [option, typed] if typed else []


def show_menu(terminal: Terminal, choices: Sequence[Choice]) -> int:
    """Show the menu again and again until its reader leaves; return the exit code."""
    width = max(len(choice.word) for choice in choices)
    while True:
        terminal.tell("\nWhat do you want to do?\n")
        for number, choice in enumerate(choices, start=1):
            terminal.tell(f"  {number:>2}  {choice.word:<{width}}  {choice.about}")
        terminal.tell(f"   q  {'quit':<{width}}  leave")
        try:
            typed = terminal.ask("\nNumber or word:")
        except Back as exc:
            return 130 if isinstance(exc.__cause__, KeyboardInterrupt) else 0
        if typed in ("q", "quit", "exit"):
            return 0
        _do(terminal, choices, typed)


def _do(terminal: Terminal, choices: Sequence[Choice], typed: str) -> None:
    by_name = {choice.word: choice for choice in choices}
    numbered = dict(zip(map(str, range(1, len(choices) + 1)), choices, strict=True))
    choice = by_name.get(typed) or numbered.get(typed)
    if choice is None:
        terminal.tell(f"  {typed or 'that'} is not in the list" if typed else "")
        return
    try:
        arguments = choice.arguments(terminal)
    except Back:
        return
    code = terminal.run(arguments)
    if code:
        terminal.tell(f"\n(it ended with exit code {code})")


_REPORTS = ("html", "md", "pdf", "json", "csv", "junit")


def arguments(parser: ArgumentParser) -> None:
    """Choose commands from a numbered menu; each command is shown before it runs. Ctrl-D exits."""
    add_server(parser)


def command(options: Namespace) -> int:
    from prony.errors import InputError

    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        hint = "run commands directly; `prony --help` lists them"
        raise InputError("the menu needs a terminal", hint=hint, code="no_terminal")
    server = ["--server", options.server] if options.server else []
    server += ["--token-file", str(options.token_file)] if options.token_file else []
    return show_menu(Terminal(tuple(server)), CHOICES)


def _run(terminal: Terminal) -> list[str]:
    path = recipe(terminal)
    clients = ask_option(
        terminal, "Concurrent users, for example 4 or 1,2,4,8 (Enter: the recipe's value):", "--clients"
    )
    on = ask_option(terminal, "Target, for example local (Enter: the recipe's value):", "--on")
    return ["run", path, *clients, *on, *terminal.server]


def _one(word: str, *, served: bool = True) -> Choice:
    about = {
        "show": "the numbers of an experiment",
        "watch": "follow an experiment on a server to its end",
        "logs": "logs of a job and its service",
        "rerun": "run an experiment's recipe again",
    }[word]

    def build(terminal: Terminal) -> list[str]:
        return [word, *experiments(terminal, "Which experiment?"), *(terminal.server if served else ())]

    return Choice(word, about, build)


def _list(terminal: Terminal) -> list[str]:
    return ["list", *terminal.server]


def _stop(terminal: Terminal) -> list[str]:
    (chosen,) = experiments(terminal, "Stop which experiment?")
    if terminal.ask(f"Stop {chosen}? What was measured is kept. [y/N]").lower() not in ("y", "yes"):
        raise Back
    return ["cancel", chosen, *terminal.server]


def _collect(terminal: Terminal) -> list[str]:
    (chosen,) = experiments(terminal, "Which experiment?")
    formats = ("folder", *find_plugins(EXPORTERS), "requests-jsonl", "csv")
    form = formats[_number(choose(terminal, "Which format?", formats))]
    to = terminal.ask(f"Into which folder? (Enter: {chosen})") or chosen
    return ["export", chosen, "--format", form, "--to", to, *terminal.server]


def _metrics(terminal: Terminal) -> list[str]:
    return ["report", *experiments(terminal, "Which experiment?"), "--format", "csv", "--out", "-", *terminal.server]


def _report(terminal: Terminal) -> list[str]:
    (chosen,) = experiments(terminal, "Which experiment?")
    form = _REPORTS[_number(choose(terminal, "Which format?", _REPORTS))]
    return [
        "report",
        chosen,
        "--format",
        form,
        *ask_option(terminal, "File (Enter: the default file):", "--out"),
        *terminal.server,
    ]


def _compare(terminal: Terminal) -> list[str]:
    before = experiments(terminal, "Which one is the baseline?")
    return ["compare", *before, *experiments(terminal, "Which one is compared with it?"), *terminal.server]


def _sweep(terminal: Terminal) -> list[str]:
    chosen = experiments(terminal, "Which experiments?", several=True)
    slo = ask_option(terminal, "Limit, for example e2e_ms.p99=100 (Enter: none):", "--slo")
    return ["sweep-report", *chosen, *slo, *terminal.server]


def _import(terminal: Terminal) -> list[str]:
    others = ", ".join(find_plugins(IMPORTERS))
    path = terminal.ask(f"Which folder? (an export, a result folder, or results of {others})")
    if not path:
        raise Back
    return ["import", path]


def _web(terminal: Terminal) -> list[str]:
    terminal.tell("  The server runs until Ctrl-C.")
    return ["server", *ask_option(terminal, "Port (Enter: 7337):", "--port")]


def _number(chosen: str | int) -> int:
    assert isinstance(chosen, int)  # nothing else may be typed there
    return chosen


CHOICES = (
    Choice("run", "run a recipe", _run),
    Choice("list", "the newest experiments", _list),
    _one("show"),
    _one("watch"),
    _one("logs"),
    Choice("stop", "stop an experiment on a server", _stop),
    Choice("collect", "copy results into a folder", _collect),
    Choice("metrics", "every number of an experiment, as CSV", _metrics),
    Choice("report", "write a report", _report),
    Choice("compare", "compare experiments: better, worse or the same", _compare),
    Choice("sweep-report", "find where load saturates", _sweep),
    _one("rerun"),
    Choice("import", "import results from elsewhere", _import),
    Choice("web", "serve the web pages and the API", _web),
)
