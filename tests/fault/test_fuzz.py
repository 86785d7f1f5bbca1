"""The API attacked from its own OpenAPI document: whatever is sent is answered, and never with a fault of the server.

`PRONY_TEST_FUZZ` (12) is how many requests of each kind are made of every operation.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import content_type_conformance, status_code_conformance

from chaos.fleet import Fleet, fleet
from lanes import THOROUGH
from prony.client import Client
from prony.model.agent import Capabilities, Enrolment
from prony.model.alarm import NewAlarm
from prony.model.lease import LeaseRequest
from prony.model.queue import Submission
from prony.model.schedule import NewSchedule
from prony.server.auth import ROLES

# `make test-slow` tries more of them.
pytestmark = pytest.mark.scaled
EXAMPLES = int(os.environ.get("PRONY_TEST_FUZZ", "12" if THOROUGH else "4"))
RECIPE = """
name: fuzz
workload: {kind: model, model: "zoo:tiny", engine: "null"}
matrix: {workload.batch_size: [1, 2, 3]}
"""
FACTS = {
    "engine": ("null",), "engine.null": "1", "engine.null.unit": ("cpu",), "unit": ("cpu",), "schemes": ("zoo",),
    "kinds": ("model",),
}  # fmt: skip
# What these delete is what the other operations are tried on.
DESTROYING = {"delete", "remove", "revoke_token", "remove_schedule", "remove_alarm"}
# An event stream ends when its experiment does; not part of the document: the pages about it.
ENDLESS = {"watch", "events", "docs", "docs_asset", "openapi", "metrics"}
REAL: dict[str, str] = {}


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    with fleet(tmp_path_factory.mktemp("fuzzed")) as made:
        made.add_server().start()
        made.wait_ready()
        with Client(made.url) as client:
            experiment = client.experiments.submit(Submission(text=RECIPE)).experiment.id
            enrolled = client.agents.enroll(
                Enrolment(name="fuzz", device_key="fuzz", incarnation="1", capabilities=Capabilities(facts=FACTS))
            )
            schedule = client.schedules.add(NewSchedule(submission=Submission(text=RECIPE), cron="@yearly"))
            alarm = client.alarms.add(NewAlarm(name="fuzz", when="agent lost", to=("webhook+http://127.0.0.1:1/x",)))
            lease = client.leases.lease(LeaseRequest(agent_id=enrolled.agent.id, incarnation="1", wait_s=5))
            assert lease is not None
            REAL.update(
                experiment_id=experiment, agent_id=enrolled.agent.id, lease_id=lease.id, job_id=f"{experiment}-002",
                schedule_id=schedule.id, alarm_id=alarm.alarm.id,
            )  # fmt: skip
        yield made
        assert "Traceback" not in made.servers[0].said()


@pytest.fixture(scope="module")
def api(running: Fleet) -> Any:
    return schemathesis.openapi.from_url(f"{running.url}/openapi.json", timeout=70)


@pytest.mark.parametrize(
    "mode",
    [
        pytest.param(GenerationMode.NEGATIVE, id="negative"),
        pytest.param(GenerationMode.POSITIVE, id="positive", marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("operation_id", sorted(ROLES.keys() - ENDLESS))
def test_no_request_brings_the_server_down(api: Any, operation_id: str, mode: GenerationMode) -> None:
    operation = api.find_operation_by_id(operation_id)

    @given(case=operation.as_strategy(generation_mode=mode))
    @settings(max_examples=EXAMPLES, deadline=None, derandomize=True, database=None, phases=[Phase.generate],
              suppress_health_check=list(HealthCheck))  # fmt: skip
    def attack(case: Any) -> None:
        send(case, operation_id)

    try:
        attack()
    except Unsatisfiable:
        pytest.skip(f"{operation_id} takes nothing that could be wrong")


@schemathesis.serializer("application/x-tar")
def _octets(_context: Any, value: Any) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode(errors="replace")


def send(case: Any, operation_id: str) -> None:
    """Ask as the case says, every other time about something that is there, and look at the answer."""
    aims = dict(case.path_parameters or {})
    for name, value in aims.items():
        aims[name] = REAL[name] if name in REAL and len(str(value)) % 2 else value
    if operation_id in DESTROYING:
        aims = dict.fromkeys(aims, "nothing-of-this-name")
    case.path_parameters = aims
    response = case.call(timeout=70)
    case.validate_response(response, checks=(not_a_server_error, status_code_conformance, content_type_conformance))
    if response.status_code >= 400:
        problem = response.json()
        assert problem["code"]
        assert problem["status"] == response.status_code
