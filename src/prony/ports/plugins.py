"""Find plug-ins by entry point and load the chosen ones."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from importlib.metadata import EntryPoint
from typing import Any

from prony.errors import NotFoundError
from prony.model.entry_points import find_entry_points

ENGINES = "prony.engines"
MODELS = "prony.models"
PROBES = "prony.probes"
DRIVERS = "prony.drivers"
TASKS = "prony.tasks"
SERVICES = "prony.services"
DIALECTS = "prony.dialects"
SHIMS = "prony.shims"
EXPORTERS = "prony.exporters"
IMPORTERS = "prony.importers"
COMPARISON_RULES = "prony.comparison_rules"
FACES = "prony.faces"
AGENT_LINKS = "prony.agent_links"
EXECUTORS = "prony.executors"
COMMANDS = "prony.commands"
DESTINATIONS = "prony.destinations"


def find_plugins(group: str) -> dict[str, EntryPoint]:
    """Return every plug-in of one kind by name, none of them loaded."""
    return find_entry_points(group)


def target(group: str, name: str) -> str:
    """Return where a plug-in lives, as `module:attribute`.

    Args:
        group: The kind of plug-in, as an entry point names it: `prony.engines`.
        name: The plug-in's own name.

    Raises:
        NotFoundError: No plug-in of this kind has the name; the nearest one is in the hint.
    """
    known = find_plugins(group)
    if name in known:
        return known[name].value
    kind = group.removeprefix("prony.").removesuffix("s")
    near = nearest(name, known)
    hint = f"did you mean {near}?" if near else f"known: {', '.join(known) or 'none'}"
    noun = "source of models" if group == MODELS else kind.replace("_", " ")
    raise NotFoundError(f"no {noun} is called {name!r}", hint=hint, code=f"unknown_{kind}")


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that was most likely meant, or None: a wild guess helps less than the list of names."""
    found = difflib.get_close_matches(name, list(known), n=1, cutoff=0.7)
    return found[0] if found else None


def load_plugin(group: str, name: str) -> Any:
    """Load one plug-in's class."""
    target(group, name)
    return find_plugins(group)[name].load()


def create_all(group: str) -> dict[str, Any]:
    """Load every plug-in of one kind and make one of each, by name."""
    return {name: entry.load()() for name, entry in find_plugins(group).items()}
