"""A parsed document of another program in, a recipe's document out, with notes on what could not be honoured."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from prony.recipe.dialects.translated_document import Translation
from prony.recipe.positions import Parsed


@dataclass(frozen=True)
class Dialect:
    """`fits` looks at the names of a document's sections; `translate` imports what it needs when it is called."""

    name: str
    title: str
    fits: Callable[[Mapping[str, Any]], bool]
    translate: Callable[[Parsed], Translation]


def _is_descriptor(document: Mapping[str, Any]) -> bool:
    # Two of them, so that a descriptor which lacks one is still told what it lacks.
    return len({"spec_version", "info", "hardware", "env", "ml"} & document.keys()) > 1


def _descriptor(parsed: Parsed) -> Translation:
    from prony.recipe.dialects import benchmark_ai

    return benchmark_ai.translate(parsed)


def _is_ai_factory(document: Mapping[str, Any]) -> bool:
    """Has it two of the four sections, a service or benchmarks among them?"""
    sections = {"configuration", "service", "client", "benchmarks"} & document.keys()
    return len(sections) > 1 and bool({"service", "benchmarks"} & sections)


def _ai_factory(parsed: Parsed) -> Translation:
    from prony.recipe.dialects import ai_factory

    return ai_factory.translate(parsed)


# In the order in which they are tried.
DIALECTS: tuple[Dialect, ...] = (
    Dialect("benchmark-ai", "a Benchmark AI descriptor", _is_descriptor, _descriptor),
    Dialect("ai-factory", "an AI Factory recipe", _is_ai_factory, _ai_factory),
)


def recognise(document: Mapping[str, Any]) -> Dialect | None:
    """Return the dialect that a document is written in; None: it is Prony's own."""
    if "workload" in document:
        return None
    return next((dialect for dialect in DIALECTS if dialect.fits(document)), None)
