"""Choose the engines that run a model: installed here, able to read its format, and having what was asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from prony.errors import InputError
from prony.model.assumption import Assumption
from prony.ports import plugins
from prony.ports.engine import gpu_build_command
from prony.ports.unit_names import unit_aliases, unit_number
from prony.recipe.formats import SUFFIXES

if TYPE_CHECKING:
    from prony.model.device import EngineReport

ALL_ENGINES = "all"


@dataclass(frozen=True)
class EngineWish:
    """Which engines were asked for (none: one is chosen; `all`: every one that can), and what they must have."""

    names: tuple[str, ...] = ()
    units: tuple[str, ...] = ()
    precision: str | None = None


class EngineChooser:
    """Chooses engines for models, starts each engine once, and remembers what it had to assume."""

    def __init__(
        self, wish: EngineWish, inspect: Callable[[str], EngineReport],
        offers: Callable[[str, tuple[str, ...]], bool] = lambda *_: False,
    ) -> None:  # fmt: skip
        """`offers` tells whether a model can be had in one of these formats, beside the one that it has by itself."""
        self._wish = wish
        self._inspect = inspect
        self._offers = offers
        self._reports: dict[str, EngineReport] = {}
        self.assumptions: list[Assumption] = []

    def choose(self, model: str, ending: str) -> tuple[str, ...]:
        """Return the engines that are to run a model whose file ends so."""
        readers = readers_of(ending)
        wanted = self._wish.names
        if not readers:
            is_recipe = ending in SUFFIXES
            raise InputError(
                f"no engine reads {ending or 'a file without an ending'}: {model}",
                hint=f"is it a recipe? prony run {model}"
                if is_recipe
                else f"engines read {', '.join(model_endings())}",
                code="format_unavailable",
            )
        if not wanted:
            return (self._choose_one(model, ending, readers),)
        if ALL_ENGINES in wanted:
            return self._choose_all(model, ending, readers)
        for name in wanted:
            self._check_named(name, model, ending, readers)
        return wanted

    def _choose_one(self, model: str, ending: str, readers: Sequence[str]) -> str:
        chosen = next((name for name in readers if self._is_ready(name)), None)
        if chosen is None:
            raise self._nobody_ready(model, ending, readers)
        self._check_abilities(chosen)
        others = [name for name in readers if name != chosen]
        also = f"; {', '.join(others)} can read it too" if others else ""
        what = f"engine {chosen} {self._reports[chosen].version}, which reads {ending}{also}"
        flag = f"--engine {others[0]}, --engines all" if others else "--engine NAME"
        one = Assumption(what=what, flag=flag, key="workload.engine")
        if one not in self.assumptions:
            self.assumptions.append(one)
        return chosen

    def _choose_all(self, model: str, ending: str, readers: Sequence[str]) -> tuple[str, ...]:
        ready = tuple(name for name in readers if self._is_ready(name))
        if not ready:
            raise self._nobody_ready(model, ending, readers)
        for name in readers:
            if name not in ready:
                report = self._reports[name]
                what = f"{name} left out: it is {report.state} here"
                self.assumptions.append(Assumption(what=what, flag=report.hint or "--engines", key="workload.engine"))
        able = tuple(name for name in ready if self._lacking(name) is None)
        for name in ready:
            if name not in able:
                lacking = self._lacking(name)
                what = f"{name} left out: {lacking.message if lacking else ''}"
                self.assumptions.append(Assumption(what=what, flag="--unit, --precision", key="workload.engine"))
        if not able:
            raise self._lacking(ready[0]) or self._nobody_ready(model, ending, readers)
        return able

    def _check_named(self, name: str, model: str, ending: str, readers: Sequence[str]) -> None:
        plugins.target(plugins.ENGINES, name)
        formats = plugins.load_plugin(plugins.ENGINES, name).formats
        if name not in readers and not self._offers(model, formats):
            raise InputError(
                f"{name} does not read {ending}: {model}; it reads {', '.join(formats)}",
                hint=f"{ending} is read by {', '.join(readers)}",
                code="format_unavailable",
            )
        if not self._is_ready(name):
            raise self._not_ready(name)
        self._check_abilities(name)

    def _is_ready(self, name: str) -> bool:
        if name not in self._reports:
            self._reports[name] = self._inspect(name)
        return self._reports[name].state == "ready"

    def _not_ready(self, name: str) -> InputError:
        report = self._reports[name]
        message = f"engine {name} is {report.state} here: {report.reason}"
        return InputError(message, hint=report.hint, code="engine_missing")

    def _nobody_ready(self, model: str, ending: str, readers: Sequence[str]) -> InputError:
        if len(readers) == 1:
            return self._not_ready(readers[0])
        reasons = "; ".join(f"{name} is {self._reports[name].state}" for name in readers)
        return InputError(
            f"no engine here reads {ending}: {model} ({reasons})",
            hint=f"prony engines add {readers[0]}",
            code="engine_missing",
        )

    def _check_abilities(self, name: str) -> None:
        if (error := self._lacking(name)) is not None:
            raise error

    def _lacking(self, name: str) -> InputError | None:
        """Return what an engine lacks of what was asked for: a unit, or a precision on it."""
        found = (self._lacking_on(name, unit) for unit in self._wish.units or ("cpu",))
        return next((one for one in found if one is not None), None)

    def _lacking_on(self, name: str, wanted: str) -> InputError | None:
        report = self._reports[name]
        # Which card it is by its own name (`cuda:GPU-...`), the engine finds out when it loads.
        names = unit_aliases(wanted)
        unit = next((one for name in names for one in report.units if one.unit == name), None)
        if unit is None:
            there = ", ".join(one.unit for one in report.units)
            is_built = unit_number(wanted)[0] in {unit_number(one.unit)[0] for one in report.units}
            command = "" if is_built else gpu_build_command(plugins.load_plugin(plugins.ENGINES, name), wanted)
            hint = f"it has {there}" + (f"; another build of it: {command}" if command else "")
            return InputError(f"{name} has no unit {wanted!r} here", hint=hint, code="unit_unavailable")
        precision = self._wish.precision
        if precision in (None, "default") or precision in unit.precisions:
            return None
        known = ", ".join(unit.precisions)
        return InputError(f"{name} has no precision {precision!r} on {wanted}", hint=f"it has {known}")


def readers_of(ending: str) -> list[str]:
    """Return the engines that read files of this ending, the plainest reader of it first."""
    found = {name: plugins.load_plugin(plugins.ENGINES, name) for name in plugins.find_plugins(plugins.ENGINES)}
    mine = [name for name, engine in found.items() if ending in engine.formats]
    return sorted(mine, key=lambda name: (ending not in found[name].reference_formats, name))


def model_endings() -> tuple[str, ...]:
    """Return the endings of all files that some engine reads."""
    engines = (plugins.load_plugin(plugins.ENGINES, name) for name in plugins.find_plugins(plugins.ENGINES))
    return tuple(dict.fromkeys(ending for engine in engines for ending in engine.formats))
