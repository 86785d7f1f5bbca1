"""The faces stay in parity: what the API offers, the client can ask and a person can type, or it is said why not."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Iterable
from functools import cache
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest

from prony.cli.main import COMMANDS
from prony.client import Client
from prony.errors import NotFoundError
from prony.model.access import NewToken, Role
from prony.model.agent import Capabilities, Enrolment, Heartbeat
from prony.model.alarm import NewAlarm
from prony.model.answer import NewScores
from prony.model.comparison import Terms
from prony.model.estimate import Grade
from prony.model.experiment import ExperimentState
from prony.model.gang import Meeting
from prony.model.gate import GateState
from prony.model.history import Acknowledgement, NewBaseline
from prony.model.lease import LeaseRequest, Progress
from prony.model.listing import Filters
from prony.model.matrix import MatrixTerms
from prony.model.queue import JobBatch, Modification, Submission
from prony.model.recipe_form import FilledForm
from prony.model.schedule import NewSchedule
from servers.canned import canned, problem

from .conftest import Document
from .house import PACKAGE, walk

# Where an operation stands in the client: the part, and the method where it has another name there.
PARTS: dict[str, str] = {
    "experiments": "submit experiments=page listing=search overview experiment=get modify delete "
    "cancel_experiment=cancel retry_experiment=retry rerun watch results report export=download "
    "import_results score",
    "analyses": "comparison gates sweep_report=sweep matrix",
    "files": "files=listing file=fetch file_text=text",
    "jobs": "jobs=page job=get cancel retry batch failures logs result load_series samples telemetry distribution "
    "timeline starts lines sections counters",
    "recipes": "check schema examples forms draft kinds catalogue compatibility",
    "scripts": "keep_scripts=keep scripts=fetch",
    "schedules": "add_schedule=add schedules=page schedule=get fires pause_schedule=pause resume_schedule=resume "
    "run_schedule=run remove_schedule=remove",
    "alarms": "add_alarm=add alarms=page alarm=get incidents deliveries test_alarm=test remove_alarm=remove",
    "agents": "enroll agents=page agent=get device_readings device_history heartbeat capabilities drain reset remove",
    "targets": "targets=page placements",
    "leases": "lease leases=current progress meet hand_back upload_offset upload finish",
    "histories": "series=page history=get baseline set_baseline clear_baseline changes change ack",
    "tokens": "add_token=add tokens=page revoke_token=revoke audit",
    "server": "queue health clock about stats events login_link check_store",
}
# What commands call a client, or whoever stands for one on this machine.
BENCHES = ("client", "bench")
# Use cases of the client that are no operation, and the operations that they are made of.
MADE_OF: dict[str, tuple[str, ...]] = {
    "experiments.find": ("experiment", "experiments"),
    "experiments.keep_report": ("report",),
    "experiments.export": ("export",),
    "experiments.export_requests": ("export",),
    "experiments.import_": ("import_results",),
    "analyses.compare": ("comparison", "experiment", "experiments"),
    "jobs.find": ("job", "jobs", "experiment", "experiments"),
    "files.find": ("job", "jobs", "experiment", "experiments"),
    "agents.find": ("agents",),
    "histories.find": ("series",),
    "histories.find_change": ("change", "changes"),
    "histories.rebuild": (),
}

# Which commands call which operation.
CALLS: dict[str, tuple[str, ...]] = {
    "add_token": ("monitor",),
    "submit": ("run",),
    "keep_scripts": ("run", "duet", "schedule"),
    "import_results": ("import",),
    "experiments": ("list",),
    "experiment": ("show", "compare", "report", "rerun", "score", "export", "delete", "watch"),
    "delete": ("delete",),
    "cancel_experiment": ("cancel", "run", "rerun"),
    "retry_experiment": ("retry",),
    "rerun": ("rerun",),
    "score": ("score",),
    "watch": ("watch", "run", "rerun"),
    "results": ("show", "run", "rerun", "watch"),
    "report": ("report", "run", "rerun"),
    "export": ("export",),
    "gates": ("gates",),
    "sweep_report": ("sweep-report",),
    "matrix": ("matrix",),
    "jobs": ("jobs",),
    "job": ("jobs",),
    "cancel": ("cancel",),
    "retry": ("retry",),
    "logs": ("logs",),
    "failures": ("logs",),
    "files": ("files",),
    "file": ("files",),
    "file_text": ("files",),
    "add_schedule": ("schedule",),
    "schedules": ("schedule",),
    "schedule": ("schedule",),
    "fires": ("schedule",),
    "pause_schedule": ("schedule",),
    "resume_schedule": ("schedule",),
    "run_schedule": ("schedule",),
    "remove_schedule": ("schedule",),
    "add_alarm": ("alarm",),
    "alarms": ("alarm",),
    "alarm": ("alarm",),
    "incidents": ("alarm",),
    "deliveries": ("alarm",),
    "test_alarm": ("alarm",),
    "remove_alarm": ("alarm",),
    "agents": ("agents",),
    "agent": ("agents",),
    "device_readings": ("agents",),
    "device_history": ("agents",),
    "drain": ("agents",),
    "reset": ("agents",),
    "remove": ("agents",),
    "compatibility": ("agents",),
    "targets": ("targets",),
    "placements": ("targets",),
    "check": ("check",),
    "queue": ("queue",),
    "series": ("history", "baseline"),
    "history": ("history",),
    "baseline": ("baseline",),
    "set_baseline": ("baseline",),
    "clear_baseline": ("baseline",),
    "changes": ("watch-regressions",),
    "change": ("ack",),
    "ack": ("ack",),
    "comparison": ("compare",),
    "login_link": ("server",),
}
AN_AGENT_S = "only an agent asks this, and it has a connection of its own"
IN_THE_DATABASE = "prony tokens works on the database, so that it needs no server and no first token"
DRAWN = "numbers that a chart is drawn from; prony report draws the same"
# Operations that no command asks for, and why.
NO_COMMAND: dict[str, str] = {
    "enroll": AN_AGENT_S,
    "heartbeat": AN_AGENT_S,
    "capabilities": AN_AGENT_S,
    "lease": AN_AGENT_S,
    "progress": AN_AGENT_S,
    "hand_back": AN_AGENT_S,
    "upload_offset": AN_AGENT_S,
    "upload": AN_AGENT_S,
    "finish": AN_AGENT_S,
    "scripts": AN_AGENT_S,
    "meet": AN_AGENT_S,
    "clock": AN_AGENT_S,
    "tokens": IN_THE_DATABASE,
    "revoke_token": IN_THE_DATABASE,
    "audit": IN_THE_DATABASE,
    "leases": "prony jobs --state leased tells the same",
    "modify": "a person cancels and submits again, or gives --priority at once; programs modify",
    "batch": "a person names one job or a whole experiment; programs name many",
    "result": "prony show has every job of an experiment",
    "samples": "prony export brings every file",
    "telemetry": "prony export brings every file",
    "schema": "prony schema prints that of this Prony",
    "examples": "prony examples prints those of this Prony",
    "catalogue": "prony zoo, engines, services and drivers list those of this Prony",
    "listing": "the list of the web pages; prony list has its own filters",
    "overview": "the first of the web pages; prony list, watch-regressions and agents tell its parts",
    "about": "for the web pages; prony --version tells this Prony's",
    "distribution": DRAWN,
    "timeline": DRAWN,
    "load_series": DRAWN,
    "starts": DRAWN,
    "lines": DRAWN,
    "counters": DRAWN,
    "sections": "prony report writes every section of every job",
    "forms": "questions that the web pages ask; prony bench, llm, hardware and duet have options instead",
    "draft": "answers in the web pages; prony bench, llm, hardware and duet write the same recipes of their options",
    "check_store": "prony doctor --store checks the home of the machine that it runs on, without a server",
    "kinds": "filters of the web pages; prony schema prints the keys of every kind",
    "health": "for probes of load balancers and clusters, which speak HTTP",
    "events": "for pages that stay open; prony watch follows one experiment",
    "stats": "for dashboards, which speak HTTP; prony queue and prony list are for people",
}
# What stands in for each argument of the client's methods.
ARGUMENTS: dict[str, Any] = {
    "acknowledgement": Acknowledgement(),
    "baseline": NewBaseline(),
    "submission": Submission(text="name: x"),
    "modification": Modification(priority=1),
    "batch": JobBatch(action="cancel", ids=("x",)),
    "enrolment": Enrolment(name="x", device_key="x", incarnation="x"),
    "heartbeat": Heartbeat(incarnation="x"),
    "capabilities": Capabilities(),
    "alarm": NewAlarm(name="x", when="agent lost"),
    "new": NewSchedule(submission=Submission(text="name: x")),
    "request": LeaseRequest(agent_id="x", incarnation="x"),
    "progress": Progress(),
    "scores": NewScores(),
    "terms": Terms(metrics=("x",), across=("x",), anyway=True),
    "meeting": Meeting(name="x"),
    "token": NewToken(name="x", role=Role.VIEWER),
    "content": b"x",
    "offset": 0,
    "label": ("x", "y"),
    "limit": 1,
    "attempt": 1,
    "bins": 1,
    "filled": FilledForm(form="x"),
    "filters": Filters(
        search="x",
        state=ExperimentState.FAILED,
        kind="x",
        label="x=y",
        grade=Grade.VOID,
        gates=GateState.FAILED,
        schedule="x",
    ),
    "buckets": 1,
    "most": 1,
    "points": 2,
    "wait_s": 0.0,
    "force": True,
    "next_job": True,
    "on_lost": print,
}


def places() -> dict[str, str]:
    """Return where each operation stands in the client, as `part.method`."""
    words = [(part, word.partition("=")) for part, text in PARTS.items() for word in text.split()]
    return {operation: f"{part}.{method or operation}" for part, (operation, _, method) in words}


def methods() -> set[str]:
    """Return every public method of every part of the client, as `part.method`."""
    with Client("http://127.0.0.1:9") as client:
        parts = {name: part for name, part in vars(client).items() if not name.startswith("_")}
    return {
        f"{name}.{method}"
        for name, part in parts.items()
        for method, _ in inspect.getmembers(part, inspect.ismethod)
        if not method.startswith("_")
    }


def test_the_client_has_a_method_for_each_operation_and_no_other(api: dict[str, Any]) -> None:
    assert set(places()) == set(api)
    assert methods() == {*places().values(), *MADE_OF}


def test_every_operation_has_a_command_or_a_reason(api: dict[str, Any]) -> None:
    assert set(CALLS) | set(NO_COMMAND) == set(api)
    assert set(CALLS) & set(NO_COMMAND) == set()


@pytest.mark.parametrize("operation", CALLS)
def test_a_command_calls_the_operations_that_it_is_said_to(operation: str) -> None:
    for command in CALLS[operation]:
        assert operation in asked_by(command), command


@pytest.mark.parametrize("operation", NO_COMMAND)
def test_an_operation_is_called_by_no_command_if_that_is_what_is_said(operation: str) -> None:
    asking = {command for commands in CALLS.values() for command in commands}
    assert [command for command in asking if operation in asked_by(command)] == []


@pytest.mark.parametrize("name", sorted(places()))
def test_a_method_asks_where_the_api_answers(
    name: str, api: dict[str, tuple[str, str, Document]], tmp_path: Path
) -> None:
    method, path, described = api[name]
    with canned() as server, Client(server.url) as client:
        server.says(problem("not_found", 404))
        asked = attrgetter(places()[name])(client)
        with pytest.raises(NotFoundError):  # a stream asks when it is read
            list(asked(**arguments_of(asked, tmp_path)))
        (request,) = server.requests
    assert request.method == method
    assert request.path == re.sub(r"\{\w+\}", "x", path)
    known = {one["name"] for one in described.get("parameters", ()) if one["in"] == "query"}
    assert set(request.query) == known


def arguments_of(method: Callable[..., Any], folder: Path) -> dict[str, Any]:
    values = ARGUMENTS | {"to": folder / "file"}
    values |= {"terms": MatrixTerms(metric="x", against="cost")} if method.__name__ == "matrix" else {}
    return {one: values.get(one, "x") for one in inspect.signature(method).parameters}


def files_of(command: str) -> set[Path]:
    """Return the module of a command, with those of the CLI that it leads to."""
    waiting = [PACKAGE / "cli" / "commands" / f"{COMMANDS[command][0]}.py"]
    seen: set[Path] = set()
    while waiting:
        path = waiting.pop()
        seen.add(path)
        for node in walk(path):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("prony.cli."):
                found = PACKAGE.parent.joinpath(*str(node.module).split(".")).with_suffix(".py")
                waiting += [found] if found not in seen else []
    return seen


@cache
def asked_by(command: str) -> set[str]:
    """Return the operations that a command's modules ask for."""
    return asked_in(files_of(command))


def asked_in(files: Iterable[Path]) -> set[str]:
    """Return the operations that these modules ask for, as `bench.part.method` or `client.part.method`."""
    return set[str]().union(*map(_asked_in_file, files))


@cache
def _asked_in_file(path: Path) -> set[str]:
    by_place = {place: operation for operation, place in places().items()}
    found = set[str]()
    for node in walk(path):
        if isinstance(node, ast.Attribute) and isinstance(part := node.value, ast.Attribute):
            place = f"{part.attr}.{node.attr}" if _name(part.value) in BENCHES else ""
            found.update(MADE_OF.get(place, [by_place[place]] if place in by_place else []))
    return found


def _name(node: ast.expr) -> str:
    name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
    return name.removeprefix("_")
