"""A cache of fixed size: what it refuses, without the library."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from prony.errors import CapacityError, InputError
from prony.plugins.engines.transformers_cache import FixedCache


class StaticLayer:
    """A layer of a version that does not count what it holds."""


class SlidingLayer:
    """A layer of another kind."""


def have_layers(monkeypatch: pytest.MonkeyPatch, *layers: Any) -> None:
    package = ModuleType("transformers")
    package.StaticCache = lambda **_: SimpleNamespace(layers=list(layers))  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "transformers", package)


def test_a_version_whose_layers_do_not_count_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    have_layers(monkeypatch, StaticLayer())
    with pytest.raises(CapacityError, match="needs a newer version of transformers"):
        FixedCache(None, 64).take(1, 5)


def test_a_model_with_other_layers_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    have_layers(monkeypatch, StaticLayer(), SlidingLayer())
    with pytest.raises(InputError, match="it has a SlidingLayer"):
        FixedCache(None, 64).take(1, 5)
