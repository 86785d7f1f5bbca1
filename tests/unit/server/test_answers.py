"""What a client gets: tags, pages, creations that may be repeated, measurements, reports."""

from __future__ import annotations

import json
import math
from concurrent.futures import ThreadPoolExecutor

import pytest
from pydantic import BaseModel, ConfigDict

from prony.server.responses import respond_measurements

from .house import RECIPE, House

LIST = "/api/v1/experiments"


@pytest.mark.parametrize("path", [LIST, "/api/v1/jobs", "/api/v1/agents", "/api/v1/queue", "/api/v1/stats"])
def test_what_is_polled_has_a_tag_and_is_not_sent_twice(house: House, path: str) -> None:
    house.experiment()
    first = house.client.get(path)
    tag = first.headers["etag"]
    for said in (tag, f"W/{tag}", f'"other", {tag}', "*"):
        again = house.client.get(path, headers={"If-None-Match": said})
        if path != "/api/v1/stats":  # which tells an age
            assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag)
    assert house.client.get(path, headers={"If-None-Match": '"other"'}).status_code == 200
    assert first.headers["cache-control"] == "private, no-cache"


def test_a_tag_changes_with_what_it_stands_for(house: House) -> None:
    first = house.client.get(LIST).headers["etag"]
    house.experiment()
    assert house.client.get(LIST, headers={"If-None-Match": first}).status_code == 200


def test_pages_follow_each_other_to_the_end_without_gap_or_repeat(house: House) -> None:
    made = [house.experiment(RECIPE.replace("small", "paged")) for _ in range(7)]
    seen, cursor = list[str](), ""
    while True:
        page = house.client.get(f"{LIST}?name=paged&limit=3{cursor}").raise_for_status().json()
        seen += [one["experiment"]["id"] for one in page["items"]]
        if page["next"] is None:
            break
        cursor = f"&cursor={page['next']}"
    assert seen == made[::-1]


def test_a_creation_is_done_once_for_its_key(house: House) -> None:
    first = house.submit(**{"Idempotency-Key": "k-1"})
    again = house.submit(**{"Idempotency-Key": "k-1"})
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json()["experiment"]["id"] == again.json()["experiment"]["id"]
    assert first.headers["location"] == again.headers["location"] == f"{LIST}/{first.json()['experiment']['id']}"
    assert "idempotency-replayed" not in first.headers
    assert again.headers["idempotency-replayed"] == "true"
    other = house.submit(RECIPE.replace("small", "other"), **{"Idempotency-Key": "k-1"})
    assert other.is_client_error


def test_a_parameter_that_an_operation_does_not_know_is_refused_although_it_knows_none(house: House) -> None:
    for path in ("queue", "overview", "experiments"):
        assert house.client.get(f"/api/v1/{path}").status_code == 200
        assert house.client.get(f"/api/v1/{path}?unheard=1").status_code == 422


@pytest.mark.parametrize("path", ["/metrics", "/metrics/targets", "/api/v1/health", "/api/v1/clock"])
def test_monitors_and_agents_may_add_parameters_of_their_own(house: House, path: str) -> None:
    assert house.client.get(f"{path}?t=1").status_code == 200
    assert house.client.post("/api/v1/leases/none/progress?unheard=1", json={}).status_code == 200


def test_a_key_holds_for_those_that_come_at_once(house: House) -> None:
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: house.submit(**{"Idempotency-Key": "k-2"}), range(8)))
    assert sorted(one.status_code for one in found) == [200] * 7 + [201]
    assert len({one.json()["experiment"]["id"] for one in found}) == 1


def test_jobs_are_found_by_what_they_are(house: House) -> None:
    experiment_id = house.experiment(RECIPE + "labels: {team: blue}\n")
    by_experiment = house.client.get(f"/api/v1/jobs?experiment={experiment_id}").json()["items"]
    assert [one["state"] for one in by_experiment] == ["waiting"]
    by_label = house.client.get("/api/v1/jobs?label=team=blue").json()["items"]
    assert [one["id"] for one in by_label] == [one["id"] for one in by_experiment]
    assert house.client.get("/api/v1/jobs?label=team=red").json() == {"items": [], "next": None}
    assert house.client.get("/api/v1/jobs?state=complete&agent=zzz").json()["items"] == []


def test_what_is_no_finite_number_is_text_that_reads_back() -> None:
    class Figure(BaseModel):
        model_config = ConfigDict(ser_json_inf_nan="constants")
        values: list[float]

    body = bytes(respond_measurements(Figure(values=[1.5, math.inf, -math.inf, math.nan])).body)
    assert json.loads(body, parse_constant=pytest.fail) == {"values": [1.5, "Infinity", "-Infinity", "NaN"]}
    assert Figure.model_validate_json(body).values[:3] == [1.5, math.inf, -math.inf]
    assert respond_measurements(Figure(values=[2.0])).body == b'{"values":[2.0]}'


def test_a_report_is_a_page_of_nobodys_origin(house: House) -> None:
    experiment_id = house.experiment()
    response = house.client.get(f"{LIST}/{experiment_id}/report?format=csv")
    assert response.headers["content-type"] == "text/csv; charset=utf-8"
    assert response.headers["content-security-policy"].startswith("sandbox; default-src 'none'")
    wrong = house.client.get(f"{LIST}/{experiment_id}/report?format=docx")
    assert (wrong.status_code, wrong.json()["field"]) == (422, "format")


def test_compatibility_says_who_fits_and_what_others_lack(house: House) -> None:
    house.enrol("fit")
    house.enrol("unfit", capabilities={})
    found = house.client.post("/api/v1/compatibility", json={"text": RECIPE}).json()
    fits = {one["agent_name"]: one["fits"] for one in found["lots"][0]["agents"]}
    assert (fits["fit"], fits["unfit"], found["runnable"]) == (True, False, True)


def test_the_page_for_prometheus_tells_of_jobs_agents_and_requests(house: House) -> None:
    house.experiment()
    house.client.get("/nope")
    response = house.client.get("/metrics")
    assert response.headers["content-type"].startswith("text/plain")
    lines = response.text.splitlines()
    assert any(line.startswith('prony_http_requests_total{operation="submit",status="201"}') for line in lines)
    assert any(line.startswith('prony_http_requests_total{operation="other",status="404"}') for line in lines)
    assert any(
        line.startswith('prony_http_request_duration_seconds_bucket{le="0.001",operation="submit"}') for line in lines
    )
    for name in ('prony_jobs{state="waiting"}', 'prony_agents{state="lost"}', "prony_oldest_waiting_seconds",
                 "prony_oldest_lease_seconds", "prony_writer_backlog", "prony_open_waits",
                 "prony_leases_lost_total", "prony_experiments",
                 'prony_info{version="'):  # fmt: skip
        assert any(line.startswith(name) for line in lines), name
