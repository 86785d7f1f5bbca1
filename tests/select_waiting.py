"""A pytest plug-in that keeps only the tests that wait, take a port or start a process that runs beside them."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FunctionType, ModuleType

import pytest

HERE = Path(__file__).resolve().parent
_AT_ONCE = frozenset({"__init__", "__post_init__", "__enter__", "__aenter__"})
# What a function names when it waits, listens, or starts something that goes on beside it.
_WAITING = frozenset(
    {"wait_for", "wait_until", "until", "eventually", "sleep", "monotonic", "perf_counter", "Popen", "Thread", "Event"}
    | {"communicate", "create_subprocess_exec", "free_port", "create_server", "start_server", "create_connection"}
    | {"listen", "serve", "settle", "kill", "terminate", "send_signal", "fork", "expect", "wait_for_selector"}
)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the tests that reach none of these, and all but one of those that only share a fixture which does."""
    reach = _Reach()
    kept = {item for item in items if _is_waiting(item, reach)}
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = [item for item in items if item in kept]


def _is_waiting(item: pytest.Item, reach: _Reach) -> bool:
    if not isinstance(item, pytest.Function):
        return False
    fixtures = [one for several in item._fixtureinfo.name2fixturedefs.values() for one in several]
    shared = [one.func for one in fixtures if one.scope != "function"]
    own = [item.function, *(one.func for one in fixtures if one.scope == "function")]
    first = [reach.waits_for_the_first_time(function) for function in shared]
    return any(first) or any(reach.waits(function) for function in own)


class _Reach:
    """Which functions and classes of the tests wait, followed through what they name."""

    def __init__(self) -> None:
        self._known: dict[object, bool] = {}
        self._seen: set[object] = set()

    def waits_for_the_first_time(self, thing: object) -> bool:
        is_new = thing not in self._seen
        self._seen.add(thing)
        return is_new and self.waits(thing)

    def waits(self, thing: object) -> bool:
        thing = inspect.unwrap(thing) if callable(thing) else thing
        if inspect.ismethod(thing):
            thing = thing.__func__
        if thing not in self._known:
            self._known[thing] = False  # a function that calls itself
            self._known[thing] = any(self._function_waits(function) for function in _bodies(thing))
        return self._known[thing]

    def _function_waits(self, function: FunctionType) -> bool:
        names = _names(function.__code__)
        if names & _WAITING:
            return True
        return any(self.waits(thing) for thing in _ours(function, names))


def _bodies(thing: object) -> list[FunctionType]:
    """Return the function itself, or what making an object of a class runs; its other methods are known by name."""
    if isinstance(thing, FunctionType):
        return [thing]
    if isinstance(thing, type):
        return [value for name, value in vars(thing).items() if name in _AT_ONCE and isinstance(value, FunctionType)]
    return []


def _names(code: CodeType) -> set[str]:
    """Return what a function names, with the functions inside it."""
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            names |= _names(constant)
    return names


def _ours(function: FunctionType, names: set[str]) -> Iterator[object]:
    """Yield the functions and classes of the tests' own modules that a function names."""
    for name in names:
        thing = function.__globals__.get(name)
        if isinstance(thing, ModuleType):
            yield from (vars(thing)[part] for part in names & vars(thing).keys() if _is_ours(vars(thing)[part]))
        elif _is_ours(thing):
            yield thing


def _is_ours(thing: object) -> bool:
    if not isinstance(thing, FunctionType | type):
        return False
    module = inspect.getmodule(thing)
    return Path(getattr(module, "__file__", None) or "/").is_relative_to(HERE)
