"""Translate an AI Factory recipe: a service, a driver instead of its clients, and a closed load."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from prony.compat.ai_factory import dialect_nouns as nouns
from prony.compat.ai_factory.dialect_sections import CLIENTS, Asking, model_of, set_service
from prony.recipe.dialects.translated_document import Draft, Translation
from prony.recipe.positions import Keys, Parsed, mark_of
from prony.recipe.problems import recipe_error
from prony.recipe.schema_lookup import nearest_key

SECTIONS = ("configuration", "service", "client", "benchmarks")
_SLURM = (
    "partition", "account", "num_gpus", "gpus_per_node", "cpus_per_task", "memory", "constraints", "exclude_nodes",
    "nodes", "modules",
)  # fmt: skip
_OF_A_CLUSTER = "for clusters: set it in the options of the target"
_ASKED = ("partition", "account", "time_limit")
_OF_A_QUEUE = "passed to the target's queue, if it has one and its options do not set it"
_CONTAINER = ("image", "volumes")
_WAITING = ("warmup_delay", "max_retries")


class AiFactoryDialect:
    """Recipes of AI Factory."""

    title: ClassVar[str] = "an AI Factory recipe"
    keeps_folder_name: ClassVar[bool] = False

    def fits(self, document: Mapping[str, Any]) -> bool:
        """Has it two of the four sections, a service or benchmarks among them?"""
        sections = set(SECTIONS) & document.keys()
        return len(sections) > 1 and bool({"service", "benchmarks"} & sections)

    def translate(self, parsed: Parsed) -> Translation:
        return _translate(parsed, self.title)


def _translate(parsed: Parsed, title: str) -> Translation:
    """Translate it whole, or raise every problem that it has."""
    draft = Draft(parsed)
    document = parsed.document
    for name in document.keys() - set(SECTIONS):
        near = nearest_key(str(name), SECTIONS)
        draft.refuse((name,), "unknown section", f"did you mean {near}?" if near else f"known: {', '.join(SECTIONS)}")
    _target(document.get("configuration"), draft)
    benchmarks = _benchmarks(document, draft)
    service = _section(nouns.Service, document, "service", draft)
    client = _section(nouns.Client, document, "client", draft)
    if service is not None:
        _service(service, client, draft)
    if service is not None and client is not None and benchmarks is not None:
        _client(service, client, benchmarks, draft)
    if draft.problems or parsed.problems:
        raise recipe_error([*parsed.problems, *draft.problems], f"it was read as {title}")
    draft.notes.sort(key=lambda note: note.line or 0)
    return draft.translation()


def _section(kind: Any, document: Mapping[str, Any], name: str, draft: Draft) -> Any:
    if document.get(name) is None:
        draft.refuse((name,), "is missing", f"an AI Factory recipe has {', '.join(SECTIONS)}")
        return None
    return draft.read(kind, document[name], (name,))


def _benchmarks(document: Mapping[str, Any], draft: Draft) -> nouns.Benchmarks | None:
    found: nouns.Benchmarks | None = _section(nouns.Benchmarks, document, "benchmarks", draft)
    if found is not None and found.metrics:
        draft.note(("benchmarks", "metrics"), "are ignored: Prony measures every metric that it can")
    return found


def _target(written: Any, draft: Draft) -> None:
    section = draft.read(nouns.Configuration, written or {}, ("configuration",))
    if section is not None and section.target:
        draft.set("place.on", section.target, ("configuration", "target"))
    elif section is not None:
        draft.note(("configuration",), "names no target: it runs on this machine")


def _service(section: nouns.Service, client: nouns.Client | None, draft: Draft) -> None:
    name = section.name or section.type or "ai-factory"
    proper = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("._-")[:100] or "ai-factory"
    if proper != name:
        draft.note(("service", "name"), f"is {proper} here: names have letters, digits, '.', '_' and '-'")
    draft.set("name", proper, ("service", "name"))
    draft.set("workload.kind", "service", ("service",))
    loads = CLIENTS[client.type][0] if client is not None and client.type is not None else None
    set_service(section, loads, draft)
    draft.set("workload.restart", "once", ("service",))  # its services live from before the first client to the last
    written = section.model_fields_set
    _ask_queue(section, [name for name in _ASKED if name in written], draft)
    others = [name for name in _SLURM if name in written and name not in _ASKED]
    _together(("service",), others, _OF_A_CLUSTER, draft)
    what = "for containers: the service is a process here"
    hint = "" if section.command else f"--set workload.settings.image={section.image} runs it with podman or docker"
    _together(
        ("service",), [name for name in _CONTAINER if name in written], what, draft, hint if section.image else ""
    )


def _ask_queue(section: nouns.Service, names: Sequence[str], draft: Draft) -> None:
    """Ask the target's queue for what the service wanted of Slurm: its clients run in the same job."""
    for name in names:
        value = getattr(section, name)
        if name == "time_limit":
            draft.set("place.queue.minutes", max(1, -(-value // 60)), ("service", name))
        elif value:
            draft.set(f"place.queue.{name}", value, ("service", name))
    _together(("service",), names, _OF_A_QUEUE, draft)


def _together(place: Keys, names: Sequence[str], message: str, draft: Draft, hint: str = "") -> None:
    """Say the same of several keys in one note, which stands where the first of them does."""
    if not names:
        return
    lines = {name: mark_of(draft.origin.marks, (*place, name)).line for name in names}
    first, *others = sorted(names, key=lambda name: lines[name] or 0)
    listed = ", ".join(f"{name} (line {lines[name]})" if lines[name] else name for name in others)
    also = f"; so {'is' if len(others) == 1 else 'are'} {listed}" if others else ""
    draft.note((*place, first), f"is {message}{also}", hint)


def _client(service: nouns.Service, client: nouns.Client, benchmarks: nouns.Benchmarks, draft: Draft) -> None:
    _together(("client",), [name for name in _SLURM if name in client.model_fields_set], _OF_A_CLUSTER, draft)
    if client.name is not None:
        draft.set("labels.client", client.name, ("client", "name"))
    if client.command is not None:
        _by_command(client, benchmarks, draft)
        return
    if client.type is None:
        hint = f"type: one of {', '.join(CLIENTS)}; or command: COMMAND"
        draft.refuse(("client",), "has neither a type nor a command", hint)
        return
    kind, reading = CLIENTS[client.type]
    if service.type is not None and service.command is None and service.type != kind:
        draft.refuse(("client", "type"), f"{client.type} loads {kind}, and the service is {service.type}")
        return
    settings = draft.read(nouns.CLIENT_SETTINGS[client.type], client.settings or {}, ("client", "settings"))
    if settings is not None:
        asking = reading(settings, model_of(service))
        _ask(asking, client, benchmarks, draft)
        _tell(asking, settings.model_fields_set, draft)


def _ask(asking: Asking, client: nouns.Client, benchmarks: nouns.Benchmarks, draft: Draft) -> None:
    """Set the driver, what it is asked for, and the load."""
    draft.set("workload.driver", asking.driver, ("client", "type"))
    if asking.options:
        draft.set("workload.options", dict(asking.options), ("client", "settings"))
    if asking.prompts:
        draft.set("workload.task", "texts", ("client", "type"))
        draft.set("workload.prompts", dict(asking.prompts), ("client", "settings"))
    clients = benchmarks.num_clients
    draft.users_of_client = asking.users
    draft.set("load.closed.concurrency", clients * asking.users, ("benchmarks", "num_clients"))
    _limit_time(client, asking.duration_s, draft)
    if asking.requests is not None:
        _count(asking.requests, asking.users, clients, draft)
    if benchmarks.client_delay:
        _delay(benchmarks.client_delay, asking, draft)
    if asking.requests == 1:  # everybody's first request is all that there is
        draft.set("load.warmup", "none", ("client", "type"))
    if asking.processes is not None:
        fewest = min(asking.processes, clients * asking.users, 256)
        draft.set("load.clients.processes", fewest, ("client", "settings", "threads"))


def _count(requests: int, users: int, clients: int, draft: Draft) -> None:
    """Set how many requests are sent: each client has its own, which its users share."""
    place = ("client", "settings")
    each, rest = divmod(requests, users)
    if not rest:
        draft.set("load.closed.requests", each, place)
        return
    draft.set("load.requests", requests * clients, place)
    what = f"{requests} requests of a client cannot be divided evenly by {users} at once"
    draft.note(
        (*place, "concurrent_requests"),
        f"{what}: all clients share {requests * clients}, whatever --clients says",
        f"use a num_requests that {users} divides: then each client sends it",
    )


def _delay(delay_s: float, asking: Asking, draft: Draft) -> None:
    """Bring clients that send for a time one after the other. Those that send a number begin together: a connection
    that stays is so much faster than a program for each request that the first would be done before the next came."""
    place = ("benchmarks", "client_delay")
    stagger = f"{delay_s / asking.users:g}s"
    if asking.requests is None:
        draft.set("load.closed.stagger", stagger, place)
        return
    draft.note(
        place,
        "is ignored: clients start together, because here the first would be done before the next starts",
        f"--set load.closed.stagger={stagger} starts them one after the other",
    )


def _limit_time(client: nouns.Client, duration_s: int | None, draft: Draft) -> None:
    if duration_s is not None:
        draft.set("load.duration", f"{duration_s}s", ("client", "settings", "duration"))
    elif "time_limit" in client.model_fields_set:
        draft.set("load.duration", f"{client.time_limit}s", ("client", "time_limit"))


def _by_command(client: nouns.Client, benchmarks: nouns.Benchmarks, draft: Draft) -> None:
    """Have the command itself send, once for each client: what it writes down are the requests."""
    place = ("client", "command")
    draft.set("workload.driver", "command", place)
    draft.set("workload.options.command", client.command, place)
    draft.set("load.closed.concurrency", benchmarks.num_clients, ("benchmarks", "num_clients"))
    draft.set("load.duration", f"{client.time_limit}s", ("client", "time_limit"))
    draft.set("load.warmup", "none", place)
    if client.type is not None:
        draft.note(("client", "type"), "is not used: the command beside it wins")
    if client.settings:
        draft.note(("client", "settings"), "are not used: they are of a type, and the command wins")
    if benchmarks.client_delay:
        draft.note(("benchmarks", "client_delay"), "is ignored: commands start together")


def _tell(asking: Asking, written: set[str], draft: Draft) -> None:
    place = ("client", "settings")
    for name in written & asking.notes.keys():
        draft.note((*place, name), asking.notes[name])
    waits = [name for name in _WAITING if name in written]
    what = "ignored: the load begins when the service is ready, and the time before its steady state is left out"
    _together(place, waits, what, draft)
