"""Check that this machine meets a recipe's device requirements, and collect its facts."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from prony.app.abilities import inspect_abilities
from prony.dispatch.matching import facts_of, lacks
from prony.errors import CapacityError
from prony.instruments.device import detect
from prony.model.agent import OF_ABILITIES, Fact
from prony.model.device import EngineReport
from prony.model.place import Demand, Place
from prony.ports import plugins
from prony.ports.workload import kind_names
from prony.runner.card_lock import list_usable_cards

_HINT = "change place.where, or use a server that has such a device: prony run --server URL"

# Names of engines in, what each can do here out. It starts them.
Inspection = Callable[[Sequence[str]], Sequence[EngineReport]]


def check_place(place: Place, cache: Path, inspect: Inspection) -> None:
    """Refuse a recipe that asks for another machine than this one.

    Raises:
        CapacityError: This machine lacks what `place.where` asks for, with the code `no_device`.
    """
    found = lacks(Demand(where=place.where), facts_here(place.where, cache, inspect))
    if found:
        told = "; ".join(map(str, found))
        raise CapacityError(f"this machine does not match place.where: {told}", hint=_HINT, code="no_device")


def facts_here(asked: Collection[str], cache: Path, inspect: Inspection) -> dict[str, Fact]:
    """Return the facts of this machine; what takes time is looked for only where a fact
    of it is asked.

    Labels belong to an agent, so there are none.
    """
    names = _engines_behind(asked)
    return facts_of(
        detect(),
        inspect(names) if names else (),
        abilities=inspect_abilities(kinds) if (kinds := _abilities_behind(asked)) else (),
        labels={},
        cached_models=cached_models(cache) if "model" in asked else (),
        policy={
            "schemes": tuple(plugins.find_plugins(plugins.MODELS)),
            "kinds": kind_names(),
            "gpu.uuid": list_usable_cards(),
        },
    )


def _engines_behind(asked: Collection[str]) -> list[str]:
    """Return the engines that must be started to know these facts."""
    known = list(plugins.find_plugins(plugins.ENGINES))
    if {"engine", "unit", "precision", "access"}.intersection(asked):
        return known
    return [name for name in known if any(f"{fact}.".startswith(f"engine.{name}.") for fact in asked)]


def _abilities_behind(asked: Collection[str]) -> set[str]:
    """Return the kinds of abilities that must be looked for to know these facts."""
    groups = {fact.partition(".")[0] for fact in asked}
    return groups.intersection(OF_ABILITIES) | ({"service"} if "access" in groups else set())


def cached_models(cache: Path) -> tuple[str, ...]:
    """Return the models that lie in the cache: those of the zoo by name, downloaded ones by checksum."""
    zoo = {path.stem.rpartition("-")[0] for path in cache.glob("zoo/[!.]*.*")}
    downloaded = [path.name for path in cache.glob("blobs/sha256/[!.]*")]
    return (*(f"zoo:{name}" for name in sorted(zoo)), *(f"sha256:{name}" for name in sorted(downloaded)))
