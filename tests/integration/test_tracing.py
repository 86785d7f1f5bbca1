"""Traces of a real server and agent, read from the OTLP messages that they send."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from chaos.fleet import Fleet, fleet
from prony.app.tracing import OTLP_URL, open_tracer
from prony.client import Client
from prony.errors import CapacityError, InputError
from prony.model.queue import JobState, Submission
from prony.ports.tracing import NoTracer
from servers.needs import lack
from servers.ports import free_port
from servers.receiver import Receiver, receiver
from servers.waiting import wait_for

TRACE, CALLER = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
SMALL = """
name: small
workload: {kind: model, model: "zoo:noop", engine: onnxruntime, threads: 1}
measure: {runs: 5, repeats: 1, warmup: 1, check: false, isolation: fork}
"""
# Loads the parts of a server and an agent that trace, and says what of the SDK came along.
UNTRACED = """
import sys
from prony.agent.worker import AgentContext
from prony.app.fleet.context import FleetContext
from prony.app.tracing import open_tracer
with open_tracer("", "prony-server").span("run", {}):
    sys.exit(",".join(name for name in sys.modules if name.startswith("opentelemetry")))
"""


@dataclass(frozen=True)
class ReceivedSpan:
    service: str
    name: str
    trace: str
    id: str
    parent: str
    facts: dict[str, Any]
    has_failed: bool
    took_ns: int


def read_spans(received: Receiver) -> list[ReceivedSpan]:
    """Decode every message by the protocol's own classes."""
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    found = []
    for one in received.received:
        assert one.path == "/v1/traces"
        assert one.headers["content-type"] == "application/x-protobuf"
        for resource in ExportTraceServiceRequest.FromString(one.body).resource_spans:
            said = {pair.key: pair.value.string_value for pair in resource.resource.attributes}
            for scope in resource.scope_spans:
                found += [_read_span(said["service.name"], span) for span in scope.spans]
    return found


def _read_span(service: str, span: Any) -> ReceivedSpan:
    facts = {pair.key: getattr(pair.value, pair.value.WhichOneof("value")) for pair in span.attributes}
    return ReceivedSpan(
        service,
        span.name,
        span.trace_id.hex(),
        span.span_id.hex(),
        span.parent_span_id.hex(),
        facts,
        span.status.code == span.status.STATUS_CODE_ERROR,
        span.end_time_unix_nano - span.start_time_unix_nano,
    )


@pytest.fixture
def collector() -> Iterator[Receiver]:
    if find_spec("opentelemetry.sdk") is None or find_spec("opentelemetry.exporter.otlp.proto.http") is None:
        lack("otel", "opentelemetry-sdk or its OTLP exporter is not installed")
    with receiver() as made:
        yield made


@pytest.fixture
def traced(collector: Receiver, tmp_path: Path) -> Iterator[Fleet]:
    with fleet(tmp_path) as made:
        made.extra |= {"FLEET_ENGINE": "onnxruntime", OTLP_URL: collector.url("http", "")}
        made.lease_ttl = "30s"
        made.add_server().start()
        made.wait_ready()
        made.add_agent(made.url).start()
        yield made


def test_one_trace_follows_each_job_from_its_submission_to_its_summary(traced: Fleet, collector: Receiver) -> None:
    recipe = traced.folder / "small.yaml"
    recipe.write_text(SMALL)
    environment = traced.environment(traced.folder / "person") | {"TRACEPARENT": f"00-{TRACE}-{CALLER}-01"}
    command = [sys.executable, "-m", "prony", "run", str(recipe), "--server", traced.url, "--detach"]
    subprocess.run(command, env=environment, check=True, capture_output=True)
    with Client(traced.url) as client:
        broken = client.experiments.submit(Submission(text=SMALL.replace("zoo:noop", "https://127.0.0.1:9/none.onnx")))
        wait_for(lambda: state_of(client, broken.experiment.id) is JobState.FAILED, "the broken job")
    # What is left is sent at the end.
    assert traced.agents[0].stop() == 0, traced.agents[0].said()
    assert traced.servers[0].stop() == 0, traced.servers[0].said()
    spans = read_spans(collector)
    way = {span.name: span for span in spans if span.trace == TRACE}
    assert {name: span.service for name, span in way.items()} == {
        "submit": "prony-server",
        "lease": "prony-server",
        "run": "prony-agent",
        "upload": "prony-agent",
        "summarise": "prony-server",
    }
    parents = {name: span.parent for name, span in way.items()}
    lease = way["lease"].id
    assert parents == {
        "submit": CALLER, "lease": way["submit"].id, "run": lease, "upload": lease, "summarise": way["upload"].id,
    }  # fmt: skip
    assert way["run"].facts["prony.state"] == "complete"
    assert way["run"].took_ns > way["summarise"].took_ns > 0
    assert not any(span.has_failed for span in way.values())
    others = [span for span in spans if span.trace != TRACE]
    assert len({span.trace for span in others}) == 1, "a submission without a trace begins its own"
    (failed,) = (span for span in others if span.has_failed)
    assert failed.name == "run"
    assert failed.facts["prony.failure"] == "model_refused"


def test_a_collector_that_is_away_delays_no_end(collector: Receiver) -> None:
    tracer = open_tracer(f"http://127.0.0.1:{free_port()}", "prony-agent")
    with tracer.span("run", {"job": "j"}) as span:
        assert span.context
    tracer.close()  # hangs where it waits for the collector


def test_nothing_of_opentelemetry_is_imported_where_tracing_is_off() -> None:
    done = subprocess.run([sys.executable, "-c", UNTRACED], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "\n")


def test_an_address_that_is_none_is_refused() -> None:
    assert isinstance(open_tracer("", "prony-server"), NoTracer)
    with pytest.raises(InputError, match="PRONY_OTLP_URL is 'collector:4318'"):
        open_tracer("collector:4318", "prony-server")


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)
    with pytest.raises(CapacityError) as caught:
        open_tracer("http://127.0.0.1:4318", "prony-server")
    assert caught.value.hint == "pip install 'prony[otel]', or unset PRONY_OTLP_URL"


def state_of(client: Client, experiment_id: str) -> JobState:
    (job,) = client.jobs.page(experiment=experiment_id).items
    return job.state
