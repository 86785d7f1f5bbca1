"""`prony agents`: list the agents of a server; drain, reset or remove one."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from prony.cli.arguments import add_json, add_server, add_set

if TYPE_CHECKING:
    from prony.client import Client

_STATES = ("active", "busy", "cleanup", "faulty", "lost", "draining", "disk_full", "stopped")
_ACTIONS = {
    "drain": "send it no more jobs; its current job finishes",
    "reset": "make a faulty or draining agent active again",
    "remove": "remove it; its results stay",
}

_SHOW = "show its device now, what it can run and what it cannot, and what would disturb a measurement"


def arguments(parser: ArgumentParser) -> None:
    """List the agents of a server with their state and last contact; or drain, reset or remove one."""
    _add_list(parser)
    actions = parser.add_subparsers(dest="action", metavar="ACTION")
    _add_list(actions.add_parser("list", help="list agents (the default)", allow_abbrev=False), inner=True)
    for name, meaning in {"show": _SHOW, **_ACTIONS}.items():
        acting = actions.add_parser(name, help=meaning, allow_abbrev=False)
        acting.add_argument("agent", metavar="ID", help="an agent's id or name, or the start of one")
        add_json(acting, inner=True)
        add_server(acting, inner=True)
    checking = actions.add_parser(
        "check", help="show which agents can run a recipe, and what the others lack", allow_abbrev=False
    )
    checking.add_argument("recipe", type=Path, help="a recipe: .yaml, .toml or .json")
    add_set(checking)
    add_json(checking, inner=True)
    add_server(checking, inner=True)


def _add_list(parser: ArgumentParser, *, inner: bool = False) -> None:
    from argparse import SUPPRESS

    default = SUPPRESS if inner else None
    parser.add_argument("--state", choices=_STATES, default=default, help="only agents in this state")
    add_json(parser, inner=inner)
    add_server(parser, inner=inner)


def command(options: Namespace) -> int:
    from prony.cli.remote import connect_server

    with connect_server(options) as client:
        if options.action in _ACTIONS:
            return _act(client, options)
        if options.action == "show":
            return _show(client, options)
        return _check(client, options) if options.action == "check" else _list(client, options)


def _list(client: Client, options: Namespace) -> int:
    from functools import partial

    from prony.cli.columns import AGENT, agent_cells
    from prony.cli.output import print_listed
    from prony.model.agent import AgentState
    from prony.ports.use_cases import iterate_pages

    state = AgentState(options.state) if options.state else None
    agents = list(iterate_pages(partial(client.agents.page, state=state)))
    none = "no agent matches" if state else f"no agents yet; start one with: prony agent start --server {client.url}"
    return print_listed(agents, AGENT, agent_cells, none=none, as_json=options.json)


def _show(client: Client, options: Namespace) -> int:
    from prony.cli.columns import AGENT, agent_cells
    from prony.cli.device import show_abilities, show_device_now, show_facts
    from prony.cli.output import print_columns, print_json, print_note, print_text

    agent = client.agents.get(client.agents.find(options.agent))
    readings, history = client.agents.device_readings(agent.id), client.agents.device_history(agent.id)
    if options.json:
        beside = {"readings": readings.model_dump(mode="json"), "history": history.model_dump(mode="json")}
        print_json(agent.model_dump(mode="json") | beside)
        return 0
    offered = agent.capabilities
    print_columns(AGENT, [agent_cells(agent)])
    if offered.abilities:
        print_text("\nServices, container engines, launchers and probes:")
        show_abilities(offered.abilities)
    else:
        print_note("services, container engines and launchers are unknown: the agent's Prony is too old")
    print_text("\nFacts for place.where:")
    show_facts(offered.facts)
    show_device_now(readings, history)
    return 0


def _act(client: Client, options: Namespace) -> int:
    from prony.cli.output import print_answer
    from prony.report.escaping import one_line

    agent_id = client.agents.find(options.agent)
    if options.action == "remove":
        client.agents.remove(agent_id)
        return print_answer({"removed": agent_id}, f"removed {agent_id}", as_json=options.json)
    agent = client.agents.drain(agent_id) if options.action == "drain" else client.agents.reset(agent_id)
    return print_answer(agent, one_line(f"{agent.name} ({agent.id}) is {agent.state}"), as_json=options.json)


def _check(client: Client, options: Namespace) -> int:
    """Exit with 1 where a lot of the recipe fits no agent."""
    from prony.cli.columns import show_fits
    from prony.cli.output import print_json
    from prony.cli.submit import submission_of
    from prony.recipe import load

    found = client.recipes.compatibility(submission_of(load(options.recipe, options.set), options.set))
    if options.json:
        print_json(found.model_dump(mode="json"))
    else:
        show_fits(found.lots, runnable=found.runnable)
    return 0 if found.runnable else 1
