"""Command line entry point: find the command, import that one alone and return its exit code."""

from __future__ import annotations

import difflib
import errno
import importlib
import json
import os
import sys
from io import TextIOWrapper
from typing import TYPE_CHECKING, Any

from prony.errors import InputError, PronyError, StoreError, exit_code
from prony.model.shown import for_terminal

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

_PACKAGE = "prony.cli.commands"
# name -> (module under prony.cli.commands, what it does)
COMMANDS: dict[str, tuple[str, str]] = {
    "bench": ("bench", "measure a model or a command, without a recipe"),
    "recipe": ("recipe", "print the recipe that prony bench would run"),
    "run": ("run", "run a recipe on this machine, or on the agents of a server"),
    "check": ("check", "check a recipe for errors, and show which agents can run it"),
    "menu": ("menu", "choose commands from a numbered menu"),
    "duet": ("duet", "run two variants of a recipe alternately and compare them"),
    "hardware": ("hardware", "measure this machine: memory, matrix products, disk, GPUs"),
    "llm": ("llm", "measure a language model: prefill and decode tokens a second, memory, quality"),
    "load": ("load", "load test a URL, without a recipe"),
    "mock": ("mock", "start a mock server with known response times"),
    "list": ("list", "list experiments"),
    "show": ("show", "show one experiment's numbers"),
    "report": ("report", "write a report: html, pdf, md, json, csv, junit or github"),
    "compare": ("compare", "compare experiments: better, worse or the same"),
    "score": ("score", "score the answers of an experiment again"),
    "gates": ("gates", "judge the gates of an experiment"),
    "sweep-report": ("sweep_report", "find where load saturates, which loads meet the SLO, and the bottleneck"),
    "matrix": ("matrix", "compare configurations in rows and columns, with cost and watts"),
    "rerun": ("rerun", "run an earlier experiment again"),
    "export": ("export", "copy an experiment to a folder"),
    "import": ("import_", "import an exported experiment or a result folder"),
    "delete": ("delete", "delete an experiment and its results"),
    "backup": ("backup", "copy this home's experiments and database into one file"),
    "restore": ("restore", "restore a backup into an empty home"),
    "bundle": ("bundle", "write an archive that installs Prony without a network"),
    "history": ("history", "show a benchmark's results over time, and what changed"),
    "baseline": ("baseline", "pin a result as the baseline for later results"),
    "ack": ("ack", "acknowledge a change"),
    "watch-regressions": ("watch_regressions", "list regressions in all histories"),
    "watch": ("watch", "follow an experiment on a server or a target until it ends"),
    "jobs": ("jobs", "list the jobs of a server, or show one"),
    "logs": ("logs", "print the log of a job"),
    "files": ("files", "list the files of a result, print one or copy one"),
    "cancel": ("cancel", "stop a job or an experiment on a server or a target"),
    "retry": ("retry", "retry a job, or the failed jobs of an experiment"),
    "queue": ("queue", "show which jobs are waiting on a server, and why"),
    "schedule": ("schedule", "run a recipe on a server on a schedule"),
    "alarm": ("alarm", "get a notification when something goes wrong"),
    "agents": ("agents", "list the agents of a server, or drain, reset or remove one"),
    "agent": ("agent", "run an agent on this device, or check whether one can run here"),
    "targets": ("targets", "list remote machines, or add, check, install, clean or remove one"),
    "engines": ("engines", "list the engines of this machine, or add one"),
    "services": ("services", "list the services that can be started and loaded"),
    "drivers": ("drivers", "list the load drivers and the LLM tasks"),
    "zoo": ("zoo", "list the models that need no download"),
    "info": ("info", "describe this device and its compute units"),
    "monitor": ("monitor", "show live usage of this machine and its GPUs"),
    "doctor": ("doctor", "show what can run here, what is missing and what would disturb a measurement"),
    "calibrate": ("calibrate", "measure the accuracy of Prony itself on this machine"),
    "examples": ("examples", "list the recipes that come with Prony, or print one"),
    "docs": ("docs", "open the documentation, without a network"),
    "completion": ("completion", "print shell completion for bash, zsh or fish"),
    "schema": ("schema", "print the recipe's JSON Schema"),
    "server": ("server", "start a server for agents and people"),
    "service": ("service", "run an agent or a server in the background, with systemd or launchd"),
    "settings": ("settings", "show each setting, its value and where it comes from"),
    "tokens": ("tokens", "create, list and revoke tokens, and show the audit log"),
    "exec": ("exec", "run job files into result folders; used by executors"),
}
# What `prony --help` writes above a command and those that follow it.
_HEADINGS = {
    "bench": "Measure", "list": "Results", "history": "Changes over time", "watch": "Jobs on servers and targets",
    "schedule": "Schedules and alarms", "agents": "Agents and targets", "engines": "This machine",
    "examples": "Help and examples", "server": "Server and settings",
}  # fmt: skip
# What other programs call a command of ours.
ELSEWHERE = {
    "stop": "cancel", "collect": "export", "metrics": "report ID --format csv", "summary": "show", "web": "server",
    "ui": "menu", "interactive": "menu", "submit": "run", "status": "watch", "results": "show", "worker": "agent",
    "top": "monitor",
}  # fmt: skip


def main(arguments: list[str] | None = None) -> int:
    _complete_streams()
    arguments = sys.argv[1:] if arguments is None else arguments
    code = 0
    try:
        code = _answer(arguments)
        sys.stdout.flush()
    except BrokenPipeError:
        if not _has_lost_reader():
            lost = PronyError("a process that this command needs has ended", hint="it may have been killed; try again")
            code = _complain(lost, as_json="--json" in arguments)
    except KeyboardInterrupt:
        code = 130
        _write("stopped", sys.stderr)
    except Exception as exc:  # noqa: BLE001 - the edge of this process: a fault of Prony's own is no failed run
        code = _complain(exc, as_json="--json" in arguments)
    _let_go()
    return code


def _complete_streams() -> None:
    """Make standard input, output and error usable, whatever the caller made of them."""
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            # Takes the lowest number that is free: this one. Else the database might, and would be printed to.
            os.open(os.devnull, os.O_RDWR)
    # For as long as this process lives; and pathlib would cost every command its import.
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: PTH123, SIM115
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: PTH123, SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # a letter that the terminal lacks is no reason to lose the answer
            stream.reconfigure(errors="replace")


def _has_lost_reader() -> bool:
    """Has whoever read our output gone, as in `prony list | head`? Else a pipe to another process was meant."""
    import select

    if not hasattr(select, "poll"):
        return True
    poll = select.poll()
    for number in (1, 2):
        poll.register(number, 0)  # errors are told in any case
    return bool(poll.poll(0))


def _let_go() -> None:
    """Redirect the streams that take nothing any more, so that the interpreter's own last flush does not fail."""
    for number, stream in ((1, sys.stdout), (2, sys.stderr)):
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), number)


def _answer(arguments: list[str]) -> int:
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        _write(_help())
        return 0
    if arguments[0] in ("-V", "--version"):
        from prony.cli.version import describe_version

        _write(describe_version())
        return 0
    return _dispatch(arguments[0], arguments[1:])


def _dispatch(name: str, arguments: list[str]) -> int:
    brought = {} if name in COMMANDS else _brought_commands()
    if name not in COMMANDS and name not in brought:
        near = [ELSEWHERE[name]] if name in ELSEWHERE else difflib.get_close_matches(name, COMMANDS, n=1)
        hint = f"did you mean prony {near[0]}?" if near else "prony --help lists the commands"
        raise InputError(f"unknown command: {name!r}", hint=hint, code="unknown_command")
    from prony.cli.arguments import CommandParser

    module = brought[name].load() if name in brought else importlib.import_module(f"{_PACKAGE}.{COMMANDS[name][0]}")
    parser = CommandParser(prog=f"prony {name}", description=module.arguments.__doc__, allow_abbrev=False)
    module.arguments(parser)
    if {"-h", "--help"} & set(arguments):  # help must work where a file of settings is wrong
        return int(module.command(parser.parse_args(arguments)))
    from prony.cli.option_settings import apply_settings

    with apply_settings(name, parser, arguments) as guard:
        options = parser.parse_args(arguments)
        guard.check(options)
        return int(module.command(options))


def _brought_commands() -> dict[str, EntryPoint]:
    """Return the commands that other packages bring, by name; none of them takes the place of one of ours."""
    from prony.ports.plugins import COMMANDS as GROUP
    from prony.ports.plugins import find_plugins

    return {name: entry for name, entry in find_plugins(GROUP).items() if name not in COMMANDS}


def list_brought() -> dict[str, str]:
    """Return the commands that plug-ins bring, with what each does, or where it is from."""
    return {name: _describe_brought(name, entry) for name, entry in _brought_commands().items()}


def _describe_brought(name: str, entry: EntryPoint) -> str:
    """Return what the module of a command says of itself as `prony NAME`: read, because to import it takes time."""
    import ast
    from contextlib import suppress
    from importlib.util import find_spec

    told = ""
    # A package that is half there, or a file that is no Python: the help is of all other commands too.
    with suppress(ImportError, OSError, SyntaxError, ValueError):
        found = find_spec(entry.module)
        if found is not None and found.origin is not None and found.origin.endswith(".py"):
            with open(found.origin, encoding="utf-8") as file:  # noqa: PTH123 - pathlib would cost every help its import
                told = ast.get_docstring(ast.parse(file.read())) or ""
    opening = f"`prony {name}`: "
    if told.startswith(opening):
        return told.removeprefix(opening).splitlines()[0].rstrip(".")
    return f"a command of {entry.dist.name if entry.dist else entry.value}; see its --help"


def _help() -> str:
    brought = list_brought()
    width = max(map(len, (*COMMANDS, *brought)))
    texts = {name: text for name, (_, text) in COMMANDS.items()} | brought
    headings = _HEADINGS | ({next(iter(brought)): "Plug-ins"} if brought else {})
    lines = []
    for name, text in texts.items():
        if name in headings:
            lines += ["", f"{headings[name]}:"]
        lines.append(f"  {name:<{width}}  {text}")
    head = "Prony: one recipe, every machine, numbers you can defend.\n\nusage: prony COMMAND [OPTIONS]"
    foot = "\nprony COMMAND --help shows more. Try first: prony bench zoo:mobilenet-v2"
    return "\n".join([head, *lines, foot])


def _complain(error: Exception, *, as_json: bool) -> int:
    """Say what went wrong, as JSON where the answer would have been; return the exit code."""
    # A path that cannot be read or written needs no traceback; a descriptor that is not ours any more does.
    if isinstance(error, OSError) and error.errno != errno.EBADF:
        error = StoreError(str(error), hint="check the path, its permissions and the free space")
    if not isinstance(error, PronyError):
        import traceback

        traceback.print_exception(error)
        error = PronyError(f"{type(error).__name__}: {error}", hint="this is a bug in Prony: please report it")
    if as_json:
        _write(json.dumps({"error": error.to_dict()}, indent=1))
        return exit_code(error)
    _write(f"error: {error.message}", sys.stderr)
    if error.hint:
        _write(f" hint: {error.hint}", sys.stderr)
    return exit_code(error)


def _write(text: str, stream: Any = None) -> None:
    try:
        (stream or sys.stdout).write(for_terminal(text) + "\n")
    except OSError:  # nobody can hear it; the exit code still tells
        return


if __name__ == "__main__":
    sys.exit(main())
