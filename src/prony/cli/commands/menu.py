"""`prony menu`: choose a command and its options step by step."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace

from prony.cli.arguments import add_server
from prony.cli.menu import Back, Choice, Terminal, ask_option, choose, experiments, recipe, serve
from prony.ports.plugins import EXPORTERS, IMPORTERS, find_plugins

_REPORTS = ("html", "md", "pdf", "json", "csv", "junit")


def arguments(parser: ArgumentParser) -> None:
    """Be guided: choose what to do by numbers; each command is shown before it runs. Ctrl-D leaves."""
    add_server(parser)


def command(options: Namespace) -> int:
    from prony.errors import InputError

    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        hint = "`prony --help` lists the commands that a program may call"
        raise InputError("the menu needs a terminal to ask at, and this is none", hint=hint, code="no_terminal")
    server = ["--server", options.server] if options.server else []
    server += ["--token-file", str(options.token_file)] if options.token_file else []
    return serve(Terminal(tuple(server)), CHOICES)


def _run(terminal: Terminal) -> list[str]:
    path = recipe(terminal)
    clients = ask_option(terminal, "Users at once, as 4 or 1,2,4,8 (Enter: as the recipe says):", "--clients")
    on = ask_option(terminal, "Target, as local (Enter: as the recipe says):", "--on")
    return ["run", path, *clients, *on, *terminal.server]


def _one(word: str, *, served: bool = True) -> Choice:
    about = {
        "show": "the numbers of an experiment",
        "watch": "follow an experiment on a server to its end",
        "logs": "what a job and its service printed",
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
    form = formats[_number(choose(terminal, "As what?", formats))]
    to = terminal.ask(f"Into which folder? (Enter: {chosen})") or chosen
    return ["export", chosen, "--format", form, "--to", to, *terminal.server]


def _metrics(terminal: Terminal) -> list[str]:
    return ["report", *experiments(terminal, "Which experiment?"), "--format", "csv", "--out", "-", *terminal.server]


def _report(terminal: Terminal) -> list[str]:
    (chosen,) = experiments(terminal, "Which experiment?")
    form = _REPORTS[_number(choose(terminal, "As what?", _REPORTS))]
    return [
        "report",
        chosen,
        "--format",
        form,
        *ask_option(terminal, "File (Enter: its own place):", "--out"),
        *terminal.server,
    ]


def _compare(terminal: Terminal) -> list[str]:
    before = experiments(terminal, "Which one is the baseline?")
    return ["compare", *before, *experiments(terminal, "Which one is held against it?"), *terminal.server]


def _sweep(terminal: Terminal) -> list[str]:
    chosen = experiments(terminal, "Which experiments?", several=True)
    slo = ask_option(terminal, "A limit, as e2e_ms.p99=100 (Enter: none):", "--slo")
    return ["sweep-report", *chosen, *slo, *terminal.server]


def _import(terminal: Terminal) -> list[str]:
    others = ", ".join(find_plugins(IMPORTERS))
    path = terminal.ask(f"Which folder? (an export, a result folder, or results of {others})")
    if not path:
        raise Back
    return ["import", path]


def _web(terminal: Terminal) -> list[str]:
    terminal.tell("  It serves until Ctrl-C.")
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
    Choice("compare", "say whether one experiment is worse than another", _compare),
    Choice("sweep-report", "say where loads saturate", _sweep),
    _one("rerun"),
    Choice("import", "bring in what was measured elsewhere", _import),
    Choice("web", "serve the web pages and the API", _web),
)
