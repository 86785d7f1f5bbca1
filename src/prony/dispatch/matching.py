"""Match jobs to devices: derive a job's demand, and list what a device lacks to meet it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache

from prony.dispatch.facts import facts_of
from prony.model.agent import Fact
from prony.model.container import POD
from prony.model.fact import FactComparison, Value, parse_comparison
from prony.model.job import Job
from prony.model.place import Demand, Lack, Place, Wanted
from prony.ports.unit_names import unit_aliases, unit_number
from prony.ports.workload import command_kinds, kind_of

__all__ = ["demand_of", "facts_of", "lacks"]

_SHOWN = 8
# A fact and values of which it has none in, why that is so out; empty where nobody knows.
ReasonFor = Callable[[str, tuple[str, ...]], str]


# What the owner of a device allows by options of `prony agent start`.
_OPTIONS = {"kinds": "--kinds", "schemes": "--model-schemes"}


def _no_reason(fact: str, wanted: tuple[str, ...]) -> str:  # noqa: ARG001 - a ReasonFor
    return ""


def demand_of(job: Job, place: Place) -> Demand:
    """Return what a device needs for this job; jobs that want the same have demands of the same id."""
    needs = kind_of(job.workload).prepare.needs(job.workload)
    return Demand(
        where=place.where, kind=job.workload.kind, agents=job.agents, own_command=job.workload.has_own_command, **needs
    )


def lacks(demand: Demand, facts: Mapping[str, Fact], reason_for: ReasonFor = _no_reason) -> tuple[Lack, ...]:
    """Return everything that keeps a device with these facts from meeting the demand; nothing means that it fits."""
    asked = [
        Lack(fact=name, wanted=_wanted_text(wanted), has=_has_text(facts.get(name)))
        for name, wanted in demand.where.items()
        if not _fits(name, wanted, _values(facts.get(name)))
    ]
    missing = [(name, wanted) for name, wanted in _needs(demand, facts) if not _has_one(wanted, facts.get(name))]
    more = (*_lacking_card(demand.card, facts), *_lacking_commands(demand, facts))
    if not asked and not missing and not more:
        return ()
    if any(name == "engine" for name, _ in missing):  # who has not the engine has nothing of it
        missing = [(name, wanted) for name, wanted in missing if not name.startswith("engine.")]
    needed = (
        Lack(
            fact=name,
            wanted=" or ".join(one for one in wanted if one != POD),  # nobody can install what only a pod has
            has=_has_text(facts.get(name)),
            reason=reason_for(name, wanted) or _advise_unit(demand, name, facts) or _advise_option(name, wanted, facts),
        )
        for name, wanted in missing
    )
    return (*asked, *needed, *more)


def _lacking_card(card: str | None, facts: Mapping[str, Fact]) -> tuple[Lack, ...]:
    """Return what is lacking where a job names a card that is not among those of the device. A device that does not
    publish its cards has none of this name: by its kind alone, any card would do, and the wrong one be measured."""
    uuids = [str(one) for one in _values(facts.get("gpu.uuid"))]
    if card is None or any(uuid.startswith(card) for uuid in uuids):
        return ()
    is_old = not uuids and any(isinstance(one, int) and one > 0 for one in _values(facts.get("gpu.count")))
    reason = "this agent does not report the UUIDs of its cards: update its Prony" if is_old else ""
    return (Lack(fact="gpu.uuid", wanted=f"{card}*", has=_has_text(facts.get("gpu.uuid")), reason=reason),)


def _lacking_commands(demand: Demand, facts: Mapping[str, Fact]) -> tuple[Lack, ...]:
    """Return what is lacking where a job names a command, on a device whose owner allows no kind that runs commands."""
    allowed = facts.get("kinds")
    if not demand.own_command or _has_one(kinds := command_kinds(), allowed):
        return ()
    needed = tuple(dict.fromkeys((*map(str, _values(allowed)), demand.kind, *kinds[:1])))
    reason = f"the job names a command of its own: start its agent with --kinds {','.join(needed)}"
    return (Lack(fact="kinds", wanted=" or ".join(kinds), has=_has_text(allowed), reason=reason),)


def _advise_unit(demand: Demand, name: str, facts: Mapping[str, Fact]) -> str:
    """Say how each of several machines with one card gets a job, where a second card is asked of one."""
    if demand.unit is None or name != f"engine.{demand.engine}.unit":
        return ""
    kind, number = unit_number(demand.unit)
    if not number or kind not in _values(facts.get(name)):
        return ""
    return f"that is another card of one device; for a job on each device write unit: {kind} and place.devices: each"


def _advise_option(name: str, wanted: tuple[str, ...], facts: Mapping[str, Fact]) -> str:
    """Say how the owner of a device allows what its agent does not."""
    option = _OPTIONS.get(name)
    allowed = [str(one) for one in _values(facts.get(name))]
    return f"start its agent with {option} {','.join([*allowed, *wanted])}" if option and allowed else ""


def _needs(demand: Demand, facts: Mapping[str, Fact]) -> list[tuple[str, tuple[str, ...]]]:
    """Return each fact that the workload cannot run without, with the values of which it must have one."""
    engine, unit, precision = demand.engine, demand.unit, demand.precision
    needs: list[tuple[str, tuple[str | None, ...]]] = [
        ("kinds", (demand.kind,)),
        ("schemes", (demand.scheme,)),
        ("engine", (engine,)),
        ("service", (demand.service,)),
        ("container", demand.containers or (None,)),
        ("launcher", (demand.launcher,)),
    ]
    if engine is not None and unit is not None:
        known = _values(facts.get(f"engine.{engine}.unit"))
        unit = next((one for one in unit_aliases(unit) if one in known), unit)
        needs.append((f"engine.{engine}.unit", (unit,)))
        needs.append((f"engine.{engine}.precision.{unit}", (precision,)))
    return [(name, wanted) for name, some in needs if (wanted := tuple(one for one in some if one is not None))]


def _has_one(wanted: tuple[str, ...], fact: Fact | None) -> bool:
    return any(one in _values(fact) for one in wanted)


def _fits(name: str, wanted: Wanted, values: tuple[Value, ...]) -> bool:
    if isinstance(wanted, list):
        return any(_stands(name, one, values) for one in wanted)
    return _stands(name, wanted, values)


def _stands(name: str, wanted: Value, values: tuple[Value, ...]) -> bool:
    """Say whether the values stand the comparison; one that cannot be understood is stood by nobody."""
    compared = _comparison(name, wanted)
    return compared is not None and compared.fits(values)


@lru_cache(maxsize=8192, typed=True)
def _comparison(name: str, wanted: Value) -> FactComparison | None:
    try:
        return parse_comparison(name, wanted)
    except ValueError:  # only a newer Prony, which took the recipe, knows what it means
        return None


def _values(fact: Fact | None) -> tuple[Value, ...]:
    if fact is None:
        return ()
    return (fact,) if isinstance(fact, bool | int | float | str) else fact


def _wanted_text(wanted: Wanted) -> str:
    return " or ".join(map(_text, wanted)) if isinstance(wanted, list) else _text(wanted)


def _has_text(fact: Fact | None) -> str | None:
    values = _values(fact)
    more = f" and {len(values) - _SHOWN} more" if len(values) > _SHOWN else ""
    return ", ".join(map(_text, values[:_SHOWN])) + more if values else None


def _text(value: Value) -> str:
    return str(value).lower() if isinstance(value, bool) else value if isinstance(value, str) else f"{value:.12g}"
