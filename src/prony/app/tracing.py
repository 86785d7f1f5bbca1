"""Send spans to an OpenTelemetry collector, by OTLP over HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from prony import __version__
from prony.errors import CapacityError, InputError
from prony.ports.tracing import TRACEPARENT, NoTracer, Span, SpanFacts, Tracer, current_trace, is_traceparent, trace_as

OTLP_URL = "PRONY_OTLP_URL"
# A process that ends waits so long for a collector that does not answer.
_SEND_S = 3


def open_tracer(url: str, service: str) -> Tracer:
    """Return the tracer of a process, which is called `service` there; one that traces nothing where the URL is empty.

    Raises:
        InputError: It is no URL.
        CapacityError: OpenTelemetry is not installed.
    """
    if not url:
        return NoTracer()
    if not url.startswith(("http://", "https://")):
        raise InputError(f"{OTLP_URL} is {url[:80]!r}", hint="must begin with http:// or https://")
    try:
        return OtlpTracer(url, service)
    except ModuleNotFoundError as exc:
        hint = f"pip install 'prony[otel]', or unset {OTLP_URL}"
        raise CapacityError(f"{exc.name} is not installed, so no traces can be sent", hint=hint) from exc


class OtlpTracer:
    """Makes spans by OpenTelemetry's SDK; a thread of the SDK sends them, some seconds later."""

    def __init__(self, url: str, service: str) -> None:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        endpoint = url.rstrip("/")
        endpoint += "" if endpoint.endswith("/v1/traces") else "/v1/traces"
        resource = Resource.create({"service.name": service, "service.version": __version__})
        self._provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        self._provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=endpoint, timeout=_SEND_S)))
        self._tracer = self._provider.get_tracer("prony", __version__)
        self._propagator = TraceContextTextMapPropagator()

    @contextmanager
    def span(
        self, name: str, facts: SpanFacts, *, parent: str | None = None, began_ns: int | None = None
    ) -> Iterator[Span]:
        given = current_trace() if parent is None else parent
        # An empty context of OpenTelemetry's own begins a trace; None would be whatever the process has.
        carrier = {TRACEPARENT: given} if is_traceparent(given) else {}
        context = self._propagator.extract(carrier, context=_empty_context())
        with self._tracer.start_as_current_span(
            name, context=context, start_time=began_ns, attributes=_with_prefix(facts)
        ) as found:
            sent: dict[str, str] = {}
            self._propagator.inject(sent)
            with trace_as(sent[TRACEPARENT]):
                yield OtlpSpan(found, sent[TRACEPARENT])

    def close(self) -> None:
        """Send what is left, for a few seconds at most."""
        self._provider.shutdown()


class OtlpSpan:
    """A span of OpenTelemetry's, and the context of what follows from it."""

    def __init__(self, span: Any, context: str) -> None:
        self._span = span
        self.context = context

    def add_facts(self, **facts: str | float | bool) -> None:
        self._span.set_attributes(_with_prefix(facts))

    def fail(self, reason: str) -> None:
        from opentelemetry.trace import Status, StatusCode

        self._span.set_status(Status(StatusCode.ERROR, reason))


def _empty_context() -> Any:
    from opentelemetry.context import Context

    return Context()


def _with_prefix(facts: SpanFacts) -> dict[str, Any]:
    return {f"prony.{name}": value for name, value in facts.items()}
