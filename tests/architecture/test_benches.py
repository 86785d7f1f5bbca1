"""Commands know the use cases and not who has them; those that must know are listed with the reason."""

from __future__ import annotations

import ast
import inspect

import pytest

from prony.app.bench import Bench
from prony.cli.main import COMMANDS
from prony.client import Client
from prony.ports import use_cases

from .house import PACKAGE, walk

OPENS = "open_bench"
# What a command imports that must know whether it asks this machine or a server.
KNOWING = {"Bench", "Client", "Store", "connect_server", "glance", "is_served", "open_access", "server_address"}

WHERE_IT_RUNS = "here it runs in this process, on a server it is submitted and watched"
A_SERVER_S = "only a server has a queue, and agents that take jobs from it"
THIS_MACHINE_S = "it is about this machine itself"
# Commands that know, and why.
DIFFERENT = {
    "bench": THIS_MACHINE_S,
    "recipe": THIS_MACHINE_S,
    "run": WHERE_IT_RUNS,
    "rerun": WHERE_IT_RUNS,
    "duet": WHERE_IT_RUNS,
    "hardware": WHERE_IT_RUNS,
    "llm": WHERE_IT_RUNS,
    "check": "here the plug-ins of this machine decide, on a server what its agents can do",
    "list": "here it reads the database by the standard library alone, to start fast, and shows the results too",
    "logs": "here they are read beside the results, on a server a call waits until there is more",
    "jobs": A_SERVER_S,
    "agents": A_SERVER_S,
    "queue": A_SERVER_S,
    "targets": "targets are of this home, and what is placed there is followed from here",
    "watch": A_SERVER_S,
    "cancel": A_SERVER_S,
    "retry": A_SERVER_S,
    "server": "it is a server, or asks the one that runs here for a link",
    "monitor": "it watches this machine, or starts a Prometheus that reads a server",
    "tokens": "it works on the database, so that it needs no server and no first token",
    "import": "here an importer reads the folder into this home, to a server the folder itself is sent",
    "info": THIS_MACHINE_S,
    "doctor": THIS_MACHINE_S,
    "calibrate": THIS_MACHINE_S,
    "engines": THIS_MACHINE_S,
}
# Commands that have --server and open nothing with it, and why.
PASSED_ON = {
    "agent": "it is an agent, which has a connection of its own",
    "menu": "it gives the server on to the commands that are chosen in it",
}


def imported_by(command: str) -> set[str]:
    path = PACKAGE / "cli" / "commands" / f"{COMMANDS[command][0]}.py"
    nodes = (node for node in walk(path) if isinstance(node, ast.ImportFrom))
    return {alias.name for node in nodes for alias in node.names}


def test_only_the_listed_commands_know_whom_they_ask() -> None:
    assert {command for command in COMMANDS if imported_by(command) & KNOWING} == set(DIFFERENT)


@pytest.mark.parametrize("command", sorted(set(COMMANDS) - set(DIFFERENT) - set(PASSED_ON)))
def test_any_other_command_that_has_a_server_opens_a_bench(command: str) -> None:
    asks = imported_by(command) & {"add_server", "end_actions"}
    assert (OPENS in imported_by(command)) is bool(asks)


@pytest.mark.parametrize("part", [name for name in vars(use_cases.UseCases) if not name.startswith("_")])
def test_both_benches_have_every_use_case_with_the_same_signature(part: str) -> None:
    """mypy checks that each fits the Protocol; this one, that neither calls an argument otherwise or knows fewer."""
    protocol = inspect.signature(vars(use_cases.UseCases)[part].fget).return_annotation
    wanted = vars(vars(use_cases)[protocol])
    with Client("http://127.0.0.1:9") as client, Bench.open() as bench:
        for name, method in wanted.items():
            if not name.startswith("_") and inspect.isfunction(method):
                names = list(inspect.signature(method).parameters)[1:]
                for implementation in (getattr(client, part), getattr(bench, part)):
                    given = inspect.signature(getattr(implementation, name)).parameters
                    assert [one for one in given if one in names] == names, (implementation, name)
