"""The context of a trace: who passes it on, and what is taken for one."""

from __future__ import annotations

import pytest

from prony.client import wire
from prony.ports.tracing import NoTracer, current_trace, is_traceparent, set_trace, trace_as

CONTEXT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def test_a_process_that_traces_nothing_passes_the_context_on() -> None:
    with NoTracer().span("run", {"job": "j"}, parent=CONTEXT) as span:
        assert span.context == CONTEXT
        assert current_trace() == CONTEXT
        assert wire.headers("secret")["traceparent"] == CONTEXT
    assert current_trace() == ""
    assert wire.headers("secret") == {"Authorization": "Bearer secret"}


def test_a_step_without_a_parent_of_its_own_follows_from_the_current_one() -> None:
    with trace_as(CONTEXT):
        with NoTracer().span("summarise", {}) as span:
            assert span.context == CONTEXT
        with NoTracer().span("lease", {}, parent="") as span:
            assert span.context == ""


@pytest.mark.parametrize(
    "text",
    [
        "",
        CONTEXT.upper(),
        CONTEXT + "\n",
        CONTEXT[:-1],
        "ff" + CONTEXT[2:],
        f"00-{'0' * 32}-b7ad6b7169203331-01",
        f"00-0af7651916cd43dd8448eb211c80319c-{'0' * 16}-01",
        "Bearer secret",
    ],
)
def test_what_is_no_context_is_not_sent_on(text: str) -> None:
    assert not is_traceparent(text)
    with trace_as(CONTEXT):
        set_trace(text)
        assert current_trace() == ""
