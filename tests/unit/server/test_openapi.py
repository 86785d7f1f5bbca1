"""The document that describes the API is complete, and its pages need no other machine."""

from __future__ import annotations

import re
from typing import Any

import pytest

from prony.server.auth import ROLES
from prony.server.operation import Operation

from .house import House

TABLE = """
POST /experiments submit; GET /experiments experiments; GET /experiments/{} experiment; PATCH /experiments/{} modify
DELETE /experiments/{} delete; POST /experiments/{}/cancel cancel_experiment; POST /experiments/{}/rerun rerun
POST /experiments/{}/score score
POST /experiments/{}/retry retry_experiment; GET /experiments/{}/events watch; GET /experiments/{}/results results
GET /experiments/{}/report report; GET /experiments/{}/export export; GET /jobs jobs; GET /jobs/{} job
POST /jobs/{}/cancel cancel; POST /jobs/{}/retry retry; POST /jobs/batch batch; GET /jobs/{}/logs logs
GET /jobs/{}/result result; GET /jobs/{}/samples samples; GET /jobs/{}/telemetry telemetry; POST /agents enroll
GET /agents agents; GET /agents/{} agent; GET /agents/{}/readings device_readings; GET /agents/{}/history device_history
POST /agents/{}/heartbeat heartbeat; PUT /agents/{}/capabilities capabilities
POST /agents/{}/drain drain; POST /agents/{}/reset reset; DELETE /agents/{} remove; POST /leases lease
GET /leases leases; POST /leases/{}/progress progress; DELETE /leases/{} hand_back; GET /leases/{}/upload upload_offset
PATCH /leases/{}/upload upload; PUT /leases/{}/result finish; POST /compatibility compatibility; GET /queue queue
GET /failures failures
GET /health health; GET /stats stats; POST /tokens add_token; GET /tokens tokens; DELETE /tokens/{} revoke_token
POST /login-links login_link; POST /store/check check_store
GET /audit audit; POST /schedules add_schedule; GET /schedules schedules; GET /schedules/{} schedule
GET /schedules/{}/fires fires; POST /schedules/{}/pause pause_schedule; POST /schedules/{}/resume resume_schedule
POST /schedules/{}/run run_schedule; DELETE /schedules/{} remove_schedule; POST /alarms add_alarm; GET /alarms alarms
GET /alarms/{} alarm; GET /alarms/{}/incidents incidents; GET /alarms/{}/deliveries deliveries
POST /alarms/{}/test test_alarm; DELETE /alarms/{} remove_alarm
GET /comparison comparison; GET /series series; GET /series/{} history; GET /series/{}/baseline baseline
GET /targets targets; GET /targets/{}/placements placements
PUT /series/{}/baseline set_baseline; DELETE /series/{}/baseline clear_baseline; GET /changes changes
GET /changes/{} change; POST /changes/{}/ack ack; GET /experiments/{}/gates gates; GET /sweep sweep_report
GET /matrix matrix; POST /leases/{}/meeting meet; GET /clock clock; GET /events events
GET /about about; GET /jobs/{}/counters counters; GET /jobs/{}/distribution distribution; GET /jobs/{}/starts starts
GET /jobs/{}/timeline timeline; GET /jobs/{}/load-series load_series; GET /jobs/{}/files files
GET /jobs/{}/file file; GET /jobs/{}/file-text file_text
GET /listing listing; GET /overview overview; GET /recipes/examples examples
GET /recipes/forms forms; POST /recipes/draft draft
GET /recipes/names catalogue; GET /recipes/schema schema; GET /scripts/{} scripts; POST /recipes/check check
PUT /imports/{} import_results
PUT /scripts/{} keep_scripts; GET /kinds kinds; GET /jobs/{}/sections sections; GET /jobs/{}/lines lines
"""
Document = dict[str, Any]


@pytest.fixture(scope="module")
def document(house: House) -> Document:
    found: Document = house.client.get("/openapi.json").raise_for_status().json()
    return found


def operations(document: Document) -> list[tuple[str, str, Document]]:
    return [
        (method.upper(), path, one) for path, methods in document["paths"].items() for method, one in methods.items()
    ]


def test_there_is_every_operation_under_its_name_and_no_other(document: Document) -> None:
    promised = {tuple(line.split()) for line in re.split(r";|\n", TABLE) if line.strip()}
    found = {
        (method, re.sub(r"{\w+}", "{}", path.removeprefix("/api/v1")), one["operationId"])
        for method, path, one in operations(document)
    }
    outside = {("GET", "/metrics", "metrics"), ("GET", "/metrics/targets", "metrics_targets")}
    assert found - outside == promised


def test_every_operation_has_a_role_a_summary_and_its_refusals(document: Document) -> None:
    for _, _, one in operations(document):
        name, responses = one["operationId"], one["responses"]
        assert one["summary"]
        assert "default" in responses
        role = ROLES[name]
        assert f"Role: {role or 'none'}." in one["description"]
        if role is None:
            assert one["security"] == []
        else:
            assert one["security"] == [{"token": []}]
            assert {"401", "403", "429"} <= set(responses)
        for status, response in responses.items():
            if status.startswith("4"):
                assert list(response["content"]) == ["application/problem+json"]


def test_every_answer_that_is_json_has_a_schema(document: Document) -> None:
    for _, _, one in operations(document):
        good = [response for status, response in one["responses"].items() if status in ("200", "201")]
        assert good or "204" in one["responses"], one["operationId"]
        for response in good:
            for content in response["content"].values():
                assert "schema" in content, one["operationId"]


def test_what_is_not_json_is_told(document: Document) -> None:
    paths = document["paths"]
    tar = paths["/api/v1/leases/{lease_id}/result"]["put"]
    assert list(tar["requestBody"]["content"]) == ["application/x-tar"]
    assert "Prony-Sha256" in [one["name"] for one in tar["parameters"]]
    events = paths["/api/v1/experiments/{experiment_id}/events"]["get"]["responses"]["200"]
    assert list(events["content"]) == ["text/event-stream"]
    logs = paths["/api/v1/jobs/{job_id}/logs"]["get"]["responses"]["200"]
    assert set(logs["headers"]) == {"Prony-Next-Offset", "Prony-Ended"}


def test_every_reference_leads_somewhere(document: Document) -> None:
    references = set(re.findall(r"'\$ref': '#/components/schemas/([^']+)'", str(document)))
    assert references - set(document["components"]["schemas"]) == set()
    assert "HTTPValidationError" not in references


def test_every_route_is_an_operation_with_a_role(house: House) -> None:
    ids = [route.operation_id for route in house.app.routes if isinstance(route, Operation)]
    assert len(ids) == len(house.app.routes) == len(set(ids))
    assert set(ids) == set(ROLES)


def test_the_pages_take_all_they_need_from_the_server_itself(house: House) -> None:
    page = house.client.get("/docs")
    assert "script-src 'self'" in page.headers["content-security-policy"]
    assert not re.search(r"https?://", page.text)
    for asset in re.findall(r'(?:src|href)="([^"]+)"', page.text):
        response = house.client.get(asset)
        assert response.is_success, asset
        assert response.content
    script = house.client.get("/docs/page.js").text
    assert not re.search(r"https?://", script)
    assert house.client.get("/docs/index.html").status_code == 404
    assert house.client.get("/docs/..%2f__init__.py").status_code == 404
