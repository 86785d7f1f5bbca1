"""Every fact of a device that `place.where` can ask about: its name, its meaning and how a condition on it is tested.

A condition is `>=4`, `!=x`, `NVIDIA*` or a plain value.
"""

from __future__ import annotations

import difflib
import fnmatch
import math
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Literal, NamedTuple

# How the values of a fact compare: as text, as numbers, as versions (1.9 < 1.18), or as whatever both sides look like.
Comparing = Literal["text", "number", "version", "either"]


class Known(NamedTuple):
    """How a fact is compared with what a recipe asks for, and what it says."""

    comparing: Comparing
    meaning: str


FACTS: Mapping[str, Known] = {
    "os": Known("text", "`linux`, `macos` (or `darwin`) or `windows`"),
    "os.version": Known("version", "the system's full name, and the version in it: `Ubuntu 24.04.1 LTS` and `24.04.1`"),
    "os.kernel": Known("version", "the kernel's release"),
    "arch": Known("text", "`x86_64` and `amd64` are one, and so are `aarch64` and `arm64`"),
    "machine": Known("text", "the product name of the machine"),
    "virtualization": Known("text", "the hypervisor, or `none`"),
    "device": Known("text", "the device's name"),
    "hardware_id": Known("text", "the fingerprint of the hardware"),
    "software_id": Known("text", "the fingerprint of the software"),
    "cpu.model": Known("text", "the processor's name"),
    "cpu.vendor": Known("text", "as the processor reports it; also `intel` or `amd` for those two"),
    "cpu.cores": Known("number", "physical cores; logical ones if the system does not report them"),
    "cpu.threads": Known("number", "logical cores"),
    "cpu.allowed": Known("number", "logical cores that may be used here, including a CPU quota"),
    "cpu.flags": Known("text", "instruction sets that matter to engines: `avx512f`, `asimd`, ..."),
    "memory_gib": Known("number", "installed memory, or the limit if one is set"),
    "gpu": Known("text", "each GPU's name"),
    "gpu.vendor": Known("text", "`nvidia`, `amd`, `intel`, `apple`, ..."),
    "gpu.count": Known("number", "how many GPUs there are; 0 without any"),
    "gpu.memory_gib": Known("number", "each GPU's own memory, to the nearest whole GiB"),
    "gpu.compute_capability": Known("version", "NVIDIA's `8.9`, AMD's `gfx942`"),
    "gpu.precision": Known("text", "number formats that a GPU computes in, independent of engines"),
    "gpu.uuid": Known("text", "each NVIDIA card's UUID: `GPU-9292ab31*`"),
    "gpu.driver": Known("version", "the version of each GPU's driver"),
    "engine": Known("text", "engines that are ready"),
    "unit": Known("text", "compute units of all engines that are ready: `cpu`, `cuda`, ..."),
    "precision": Known("text", "precisions of all engines that are ready: `fp32`, `bf16`, ..."),
    "service": Known("text", "services that can be started without more setup: `redis`, `vllm`, ..."),
    "container": Known("text", "container engines that work: `podman`, `docker`, `apptainer`, `singularity`"),
    "launcher": Known("text", "launchers of scripts: `torchrun`, `mpirun`, `srun`"),
    "access": Known("text", "`white` (a model on an engine), `gray` (a service started here), `black` (an endpoint)"),
    "probe": Known("text", "what is monitored during a run: `host`, `nvidia`, `rapl`"),
    "model": Known("text", "models that are there already: `zoo:NAME` or `sha256:...`"),
    "schemes": Known("text", "where models may come from: `zoo`, `https`, `file`, ..."),
    "kinds": Known("text", "kinds of workload that the device's owner allows"),
    "python": Known("version", "the interpreter's version, and its name with it: `CPython 3.12.3`"),
    "prony": Known("version", "Prony's version"),
    "target": Known("text", "the target of a stand-in agent, by its name in `prony targets`"),
    "target.kind": Known("text", "what kind of target that is: `ssh`, `slurm`, ..."),
}

# Families: the word after the dot is anybody's.
FAMILIES: Mapping[str, Known] = {
    "label.KEY": Known("either", "a label that the device's owner gave"),
    "engine.NAME": Known("version", "the version of an engine that is ready"),
    "engine.NAME.unit": Known("text", "its compute units"),
    "engine.NAME.precision": Known("text", "its precisions on any unit"),
    "engine.NAME.precision.UNIT": Known("text", "its precisions on that unit"),
    "engine.NAME.format": Known("text", "the endings of the model files that it loads: `.onnx`"),
    "service.NAME": Known("version", "the version of a service that can be started; `unknown` if asking takes long"),
    "service.NAME.means": Known("text", "how it can be started: `program`, `package`, `image`"),
    "container.NAME": Known("version", "the version of a container engine"),
    "launcher.NAME": Known("version", "the version of a launcher; for torchrun, that of torch"),
    "package.NAME": Known("version", "the version of a Python package that affects results: `numpy`, `torch`, ..."),
}
GROUPS = sorted({name.partition(".")[0] for name in (*FACTS, *FAMILIES) if "." in name})
_OPEN: Mapping[str, Comparing] = {
    "label": "either",
    **dict.fromkeys(("engine", "service", "container", "launcher", "package"), "version"),
}
_OF_ENGINE = ("unit", "precision", "format")
_OF_SERVICE = ("means",)


def comparing(name: str) -> Comparing | None:
    """Return how the values of a fact compare, or None where no fact has this name."""
    if name in FACTS:
        return FACTS[name].comparing
    group, _, rest = name.partition(".")
    word, _, part = rest.partition(".")
    if not rest or not word:
        return None
    if group == "engine" and part:
        return "text" if part in _OF_ENGINE or part.removeprefix("precision.") not in ("", part) else None
    if group == "service" and part:
        return "text" if part in _OF_SERVICE else None
    return _OPEN.get(group)


def advise_fact(name: str) -> str:
    """Return which fact was most likely meant by a name that none has."""
    inside = [known for known in (*FACTS, *FAMILIES) if known.startswith(f"{name}.")]
    if inside:
        return f"known here: {', '.join(inside)}"
    near = difflib.get_close_matches(name, [*FACTS, *_relatives(name)], n=1, cutoff=0.6)
    return f"did you mean {near[0]}?" if near else f"known: {', '.join((*FACTS, *FAMILIES))}"


def _relatives(name: str) -> list[str]:
    """Return names of the families with what stands behind the first dot, so that a slip before it is understood."""
    _, _, rest = name.partition(".")
    if not rest:
        return []
    name, _, part = rest.partition(".")
    if part:
        known = [f"engine.{name}.{word}" for word in _OF_ENGINE] + [f"service.{name}.{word}" for word in _OF_SERVICE]
        return [f"label.{rest}", *known]
    return [f"{group}.{rest}" for group in _OPEN]


Value = bool | int | float | str
Version = tuple[tuple[int, ...], int, int]
_Holds = Callable[[Value], bool]
_Order = Callable[[Any, Any], bool]

_ORDERS: dict[str, _Order] = {">=": operator.ge, "<=": operator.le, ">": operator.gt, "<": operator.lt}
SIGNS = (*_ORDERS, "==", "!=")
_COMPARISON = re.compile(r"(>=|<=|==|!=|>|<)\s*(.*)", re.DOTALL)
_NOUNS: dict[Comparing, str] = {"text": "text", "number": "a number", "version": "a version"}
_NUMBER = re.compile(r"[+-]?[0-9]{1,18}(\.[0-9]{1,18})?")
# How far before its release each of these is.
_PHASES = {"dev": -4, "a": -3, "alpha": -3, "b": -2, "beta": -2, "c": -1, "rc": -1, "pre": -1, "preview": -1}
_NUMBERED = (
    r"v?(?P<release>[0-9]{1,18}(?:\.[0-9]{1,18}){0,9})"
    rf"(?:[._-]?(?P<phase>{'|'.join(sorted(_PHASES, key=len, reverse=True))})(?![a-z])[._-]?(?P<number>[0-9]{{0,18}}))?"
)
# What a person writes, and what systems and packages call themselves.
_WRITTEN = re.compile(_NUMBERED, re.IGNORECASE)
_FOUND = re.compile(rf"{_NUMBERED}(?:\.?[^0-9.].*)?", re.IGNORECASE | re.DOTALL)


class FactComparison(NamedTuple):
    """`holds` looks at one value; `is_not` turns the answer round for all values of a fact together."""

    holds: _Holds
    is_not: bool = False

    def fits(self, values: Sequence[Value]) -> bool:
        """Say whether one of the values holds, or for `!=` whether none of them is equal."""
        return any(map(self.holds, values)) is not self.is_not


def looks_like_comparison(text: str) -> bool:
    """Say whether text begins as a comparison does, right or wrong."""
    return text.lstrip()[:1] in ("<", ">", "=", "!")


def parse_comparison(name: str, wanted: Value) -> FactComparison:
    """Return the comparison that a fact of this name must stand; ValueError with advice where there is none."""
    how = comparing(name) or "either"
    if not isinstance(wanted, str):
        return FactComparison(_bare(wanted, how))
    sign, operand = _split(wanted.strip())
    if sign in _ORDERS:
        return FactComparison(_compare_ordered(sign, operand, how, name))
    return FactComparison(_equal(operand, how, name, with_wildcards=sign != "=="), is_not=sign == "!=")


def _split(text: str) -> tuple[str, str]:
    """Return the sign of a comparison, empty for a plain value, and what stands behind it."""
    found = _COMPARISON.fullmatch(text)
    sign, operand = (found[1], found[2]) if found else ("", text)
    if looks_like_comparison(operand):
        raise ValueError(f"is not a comparison: {text!r}; the signs are {', '.join(SIGNS)}")
    if not operand:
        raise ValueError("has no value to compare with")
    return sign, operand


def _bare(wanted: bool | int | float, how: Comparing) -> _Holds:
    """Compare with what was written without quotes."""
    if isinstance(wanted, bool):
        if how != "either":
            raise ValueError(f"must be {_NOUNS[how]}, not {str(wanted).lower()}")
        return _equal_text(str(wanted), with_wildcards=False)
    if how == "text":
        raise ValueError(f"is text: put {wanted} in quotes")
    if how == "version":
        if isinstance(wanted, float):
            raise ValueError(f"is a version, and a bare {wanted} may have lost a zero at its end: put it in quotes")
        version = _version(wanted)
        return lambda value: version is not None and _version(value) == version
    return _equal_number(wanted) if how == "number" else lambda value: _number(value) == wanted


def _compare_ordered(sign: str, operand: str, how: Comparing, name: str) -> _Holds:
    order = _ORDERS[sign]
    if how == "text":
        raise ValueError(f"is text, which has no order: {sign} is for numbers and versions")
    if how == "number":
        number = _checked_number(operand, name)
        return lambda value: not isinstance(value, str | bool) and order(value, number)
    version = _written_version(operand)
    if version is None:
        raise ValueError(f"compares versions, and {operand!r} is not a version")
    if how == "version":
        return lambda value: (found := _version(value)) is not None and order(found, version)
    return _ordered_as_either(order, _number(operand), version)


def _ordered_as_either(order: _Order, number: float | None, version: Version) -> _Holds:
    """Compare as numbers where both sides are numbers, else as versions."""

    def holds(value: Value) -> bool:
        found = _number(value)
        if number is not None and found is not None:
            return order(found, number)
        return (other := _version(value)) is not None and order(other, version)

    return holds


def _equal(operand: str, how: Comparing, name: str, *, with_wildcards: bool) -> _Holds:
    if how == "number":
        return _equal_number(_checked_number(operand, name))
    same_text = _equal_text(operand, with_wildcards=with_wildcards)
    # With more behind it, as in 2.4.0+cu121, exactly that build is wanted.
    version = _written_version(operand) if how == "version" else None
    if version is None:
        return same_text
    return lambda value: _version(value) == version or same_text(value)


def _equal_number(number: float) -> _Holds:
    return lambda value: not isinstance(value, str | bool) and value == number


def _equal_text(operand: str, *, with_wildcards: bool) -> _Holds:
    """Compare without regard to case. A name with brackets in it is equal to itself, although they are wildcards."""
    folded = operand.casefold()
    if not with_wildcards or not any(sign in operand for sign in "*?["):
        return lambda value: str(value).casefold() == folded
    matches = re.compile(fnmatch.translate(folded)).match
    return lambda value: (text := str(value).casefold()) == folded or matches(text) is not None


def _checked_number(text: str, name: str) -> float:
    number = _number(text)
    if number is None:
        unit = "; write the number of GiB without a unit" if name.endswith("_gib") else ""
        raise ValueError(f"compares numbers, and {text!r} is not a number{unit}")
    return number


def _number(value: Value) -> float | None:
    if isinstance(value, str):
        return float(value) if _NUMBER.fullmatch(value) else None
    is_number = (isinstance(value, float) and math.isfinite(value)) or type(value) is int
    return value if is_number else None


def _written_version(text: str) -> Version | None:
    found = _WRITTEN.fullmatch(text)
    return None if found is None else _key(found)


def _version(value: Value) -> Version | None:
    return None if isinstance(value, bool) else _found_version(str(value))


@lru_cache(maxsize=8192)
def _found_version(text: str) -> Version | None:
    found = _FOUND.fullmatch(text)
    return None if found is None else _key(found)


def _key(found: re.Match[str]) -> Version:
    """Return what sorts as the versions do: 1.18rc1 before 1.18, which is 1.18.0, before 1.18.1."""
    release = [int(part) for part in found["release"].split(".")]
    while len(release) > 1 and release[-1] == 0:
        release.pop()
    phase = _PHASES[found["phase"].lower()] if found["phase"] else 0
    return tuple(release), phase, int(found["number"] or 0)
