"""Tracing: follow a job through submitter, server and agent by spans that share one trace.

A trace's context travels as the W3C header `traceparent`: in requests, in a stored job and in a lease.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import Protocol

TRACEPARENT = "traceparent"
_FORM = re.compile(r"00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")
SpanFacts = Mapping[str, str | float | bool]

_current: ContextVar[str] = ContextVar("trace", default="")


class Span(Protocol):
    """One step while it is under way. `context` is the `traceparent` of the steps that follow from it."""

    context: str

    def add_facts(self, **facts: str | float | bool) -> None:
        """Attach what is known by now; each name gets the prefix `prony.`."""
        ...

    def fail(self, reason: str) -> None:
        """Mark the step as failed; an exception that leaves it does so by itself."""
        ...


class Tracer(Protocol):
    """Makes spans. Close it when there will be no more."""

    def span(
        self, name: str, facts: SpanFacts, *, parent: str | None = None, began_ns: int | None = None
    ) -> AbstractContextManager[Span]:
        """Open a step as a block, inside which its context is the current one.

        Args:
            name: What is done: `submit`, `lease`, `run`, `upload`, `summarise`.
            facts: What is known of it; each name gets the prefix `prony.`.
            parent: The context that it follows from; None is the current one, empty begins a trace.
            began_ns: When it began in nanoseconds of the epoch, where that was before the block.
        """
        ...

    def close(self) -> None:
        """Send what is not sent yet; give up after a few seconds."""
        ...


class UntracedSpan:
    """Keeps nothing, but passes on the context that it was given: others may trace."""

    def __init__(self, context: str) -> None:
        self.context = context

    def add_facts(self, **facts: str | float | bool) -> None:
        """Do nothing."""

    def fail(self, reason: str) -> None:
        """Do nothing."""


class NoTracer:
    """Traces nothing: what a process has unless it was told where spans go."""

    @contextmanager
    def span(
        self, name: str, facts: SpanFacts, *, parent: str | None = None, began_ns: int | None = None
    ) -> Iterator[Span]:
        """Pass the context on."""
        del name, facts, began_ns
        context = current_trace() if parent is None else parent
        with trace_as(context):
            yield UntracedSpan(context)

    def close(self) -> None:
        """Do nothing."""


def current_trace() -> str:
    """Return the `traceparent` that requests of this task carry; empty where there is none."""
    return _current.get()


def set_trace(text: str) -> None:
    """Make this the context of the current task, for as long as that lives; what is no `traceparent` is ignored."""
    _current.set(text if is_traceparent(text) else "")


@contextmanager
def trace_as(context: str) -> Iterator[None]:
    """Make this the current context within a block."""
    token = _current.set(context)
    try:
        yield
    finally:
        _current.reset(token)


def is_traceparent(text: str) -> bool:
    """Is this a context as W3C's Trace Context writes it?"""
    return _FORM.fullmatch(text) is not None
