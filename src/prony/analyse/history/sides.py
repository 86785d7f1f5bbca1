"""Find what to set so that the version before a change and the one after it can be run by turns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from prony.analyse.history.causes import COMMIT, shorten_digest
from prony.model.history import Point
from prony.model.job import Job
from prony.model.workload import Scalar

Side = dict[str, Scalar]
_DIGITS = 10


@dataclass(frozen=True)
class Version:
    """A result in its history, with the job that it is of."""

    point: Point
    job: Job

    def fact(self, name: str) -> str | None:
        return self.point.facts.get(name)

    def setting(self, key: str) -> Scalar | None:
        """Return what the recipe sets at a path; None where it sets nothing."""
        found = self._lookup(key)
        return found if isinstance(found, str | int | float | bool) else None

    def has_key(self, key: str) -> bool:
        """Does the recipe of such a job know this path?"""
        parent, _, name = key.rpartition(".")
        section = self._lookup(parent)
        return isinstance(section, dict) and name in section

    def _lookup(self, path: str) -> Any:
        section, *keys = path.split(".")
        found: Any = getattr(self.job, section).model_dump(mode="json")
        for key in keys:
            found = found.get(key) if isinstance(found, dict) else None
        return found


@dataclass(frozen=True)
class Settable:
    """Something that may differ between results of one series, and that a recipe can set.

    `read` returns the value with which a run is as that result was, None where it is not known; `show` says it.
    """

    name: str
    key: str
    read: Callable[[Version, str], Scalar | None]
    show: Callable[[Version, Scalar], str] = lambda _, value: str(value)


def _engine_version(version: Version, _: str) -> str | None:
    """Return the engine's version as a recipe asks for it, without what a build adds."""
    name, _, found = (version.fact("engine") or "").partition(" ")
    is_asked = name == version.setting("workload.engine")
    return (found.partition("-")[0].partition("+")[0] or None) if is_asked else None


def _model_checksum(version: Version, _: str) -> str | None:
    found = version.fact("model")
    return f"sha256:{found}" if found else None


def _scripts(version: Version, key: str) -> str | None:
    """Return the folder by its content: a path of some machine cannot be set back."""
    found = version.setting(key)
    return found if isinstance(found, str) and found.startswith("sha256:") else None


def _image(version: Version, key: str) -> str | None:
    return version.fact(f"image {version.setting(key)}")


def _setting(version: Version, key: str) -> Scalar | None:
    return version.setting(key)


def _threads(version: Version, _: str) -> int | None:
    found = version.fact("threads")
    return int(found) if found is not None and found.isdecimal() else None


def _restart(version: Version, _: str) -> str | None:
    """Return when the service was started; older results do not tell, and had one start for all runs."""
    return version.fact("restart") or ("once" if version.setting("workload.service") else None)


def _show_digest(_: Version, value: Scalar) -> str:
    return shorten_digest(str(value))


def _show_commit(version: Version, value: Scalar) -> str:
    commit, plus, changes = (version.fact(COMMIT) or "").partition("+")
    return f"commit {commit[:_DIGITS]}{plus}{changes}" if commit else _show_digest(version, value)


# All that differs is set at once, so the pairs are of what was run before and after.
SETTABLES = (
    Settable("engine", "workload.engine_version", _engine_version),
    Settable("model", "workload.checksum", _model_checksum, _show_digest),
    Settable("scripts", "workload.directory", _scripts, _show_commit),
    Settable("image", "workload.image", _image, _show_digest),
    Settable("the server's image", "workload.server.image", _image, _show_digest),
    Settable("the service's image", "workload.settings.image", _image, _show_digest),
    Settable("threads", "workload.threads", _threads),
    Settable("isolation", "measure.isolation", _setting),
    Settable("restarts of the service", "workload.restart", _restart),
)


# How a fact of a point begins that was read back from a service, and that a recipe sets at that path of the workload.
_READ_BACK = "settings."


def _service_options(old: Version, new: Version) -> list[Settable]:
    """Return what a service told of its options that both recipes left open.

    Nothing of two versions of it: one of them is no longer there, and its options with the other are neither."""
    if old.fact("service") != new.fact("service"):
        return []
    both = sorted(old.point.facts.keys() & new.point.facts.keys())
    found = {f"workload.{one}": one.removeprefix(_READ_BACK) for one in both if one.startswith(_READ_BACK)}
    return [
        Settable(f"the service's {option}", key, _read_back)
        for key, option in found.items()
        if old.setting(key) is None and new.setting(key) is None
    ]


def _read_back(version: Version, key: str) -> str | None:
    return version.fact(key.removeprefix("workload."))


@dataclass(frozen=True)
class Sides:
    """What to set for the old version and for the new one; `text` names both."""

    old: Side
    new: Side
    text: str


def find_sides(old: Version, new: Version) -> Sides | str:
    """Return how the two versions differ in what a recipe can set; where it is nothing, say why no turns are taken."""
    sides: tuple[Side, Side] = ({}, {})
    told = []
    for one in (*(one for one in SETTABLES if new.has_key(one.key)), *_service_options(old, new)):
        before, after = one.read(old, one.key), one.read(new, one.key)
        if before is None or after is None or before == after:
            continue
        sides[0][one.key], sides[1][one.key] = before, after
        told.append(f"{one.name} {one.show(old, before)} and {one.show(new, after)}")
    if told:
        return Sides(*sides, ", ".join(told))
    return _explain(old.point, new.point)


def _explain(old: Point, new: Point) -> str:
    both = old.facts.keys() & new.facts.keys()
    differing = sorted(name for name in both if old.facts[name] != new.facts[name])
    if not differing:
        return "no known difference between the results before and after"
    return f"no recipe can undo the difference ({', '.join(differing)})"
