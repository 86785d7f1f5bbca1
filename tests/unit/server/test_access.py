"""Who may ask, from where, and what each role may do."""

from __future__ import annotations

import re

import httpx
import pytest

from prony.model.access import NewToken, Role
from prony.model.loopback import is_loopback
from prony.server.auth import ROLES
from prony.server.operation import Operation

from .house import House, enrolment

LIST = "/api/v1/experiments"


def bearer(house: House, role: str, *, once: bool = False, name: str = "t") -> dict[str, str]:
    """Return the header of a fresh token."""
    made = house.fleet.access.add_token(NewToken(name=name, role=Role(role), once=once))
    return {"Authorization": f"Bearer {made.secret}"}


# Where nobody is asked


def test_where_nobody_is_asked_everybody_is_the_admin(house: House) -> None:
    assert house.client.get("/api/v1/audit").is_success


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "", "[::ffff", "10.0.0.1"]
)
def test_a_name_that_leads_here_from_elsewhere_is_refused(house: House, host: str) -> None:
    response = house.client.get(LIST, headers={"Host": host})
    assert (response.status_code, response.json()["code"]) == (403, "foreign_host")


@pytest.mark.parametrize(
    "host", ["localhost", "localhost:9", "LOCALHOST", "127.0.0.1", "127.9.9.9:80", "[::1]:1", "a.localhost"]
)
def test_every_name_of_loopback_is_taken(house: House, host: str) -> None:
    assert house.client.get(LIST, headers={"Host": host}).is_success


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "https://{host}", "http://localhost:1"])
def test_a_page_of_another_origin_is_refused(house: House, origin: str) -> None:
    host = house.url.removeprefix("http://")
    response = house.client.get(LIST, headers={"Origin": origin.format(host=host)})
    assert (response.status_code, response.json()["code"]) == (403, "foreign_origin")


def test_the_servers_own_pages_are_taken(house: House) -> None:
    assert house.client.get(LIST, headers={"Origin": house.url}).is_success


def test_a_preflight_gets_no_permission(house: House) -> None:
    asked = {"Origin": "http://evil.example", "Access-Control-Request-Method": "POST"}
    response = house.client.options(LIST, headers=asked)
    assert response.is_client_error
    assert "access-control-allow-origin" not in response.headers


def test_a_token_on_loopback_counts_for_what_it_is(house: House) -> None:
    assert house.client.get("/api/v1/audit", headers=bearer(house, "viewer")).status_code == 403
    assert house.client.get(LIST, headers={"Authorization": "Bearer wrong"}).status_code == 401


@pytest.mark.parametrize("name", ["localhost", "LocalHost.", "127.0.0.1", "::1", "x.localhost"])
def test_names_of_the_machine_itself(name: str) -> None:
    assert is_loopback(name)


@pytest.mark.parametrize("name", ["", "0.0.0.0", "::", "localhost.evil.example", "2130706433", "notlocalhost"])
def test_names_that_may_be_others(name: str) -> None:
    assert not is_loopback(name)


# With tokens


@pytest.mark.parametrize("path", [LIST, "/metrics", "/docs", "/openapi.json", "/nope", "/api/v1/leases"])
def test_without_a_token_nothing_is_told(closed: House, path: str) -> None:
    response = closed.client.get(path)
    assert (response.status_code, response.json()["code"]) == (401, "unauthorized")
    assert response.headers["www-authenticate"].startswith("Bearer")


def test_the_page_that_asks_for_a_token_needs_none(closed: House) -> None:
    response = closed.client.get("/")
    assert response.headers["content-type"].startswith("text/html")
    assert response.headers["content-security-policy"].startswith("default-src 'none'")


def test_health_needs_no_token(closed: House) -> None:
    assert closed.client.get("/api/v1/health").json()["ok"] is True


@pytest.mark.parametrize("said", ["Basic dTpw", "Bearer", "Bearer x y", "Bearer \xff\xfe", "nonsense"])
def test_what_is_no_token_is_refused(closed: House, said: str) -> None:
    response = closed.client.get(LIST, headers=[(b"Authorization", said.encode("latin-1"))])
    assert response.status_code in (401, 429)


ALLOWED = {
    Role.VIEWER: {Role.VIEWER},
    Role.SUBMITTER: {Role.VIEWER, Role.SUBMITTER},
    Role.AGENT: {Role.AGENT},
    Role.ADMIN: set(Role),
}


@pytest.mark.parametrize("role", Role)
def test_a_role_may_do_what_the_table_says_and_nothing_else(closed: House, role: Role) -> None:
    headers = bearer(closed, role.value)
    for route in closed.app.routes:
        assert isinstance(route, Operation)
        needed = ROLES[route.operation_id or ""]
        if needed is None or route.operation_id in ("export", "watch", "events"):  # these do not end, or are files
            continue
        path = re.sub(r"{\w+}", "zzz", route.path)
        method = next(iter(route.methods or ()))
        response = closed.client.request(method, path, headers=headers)
        if needed in ALLOWED[role]:
            # An agent's token that belongs to no agent may enrol, and speak for none.
            is_own = role is Role.AGENT and response.status_code == 403 and "itself" in response.json()["detail"]
            assert is_own or response.status_code not in (401, 403), (route.operation_id, response.text)
        else:
            assert response.status_code == 403, (route.operation_id, response.text)


def test_a_revoked_token_ends_at_once(closed: House) -> None:
    admin, viewer = bearer(closed, "admin"), bearer(closed, "viewer", name="gone")
    assert closed.client.get(LIST, headers=viewer).is_success
    tokens = closed.client.get("/api/v1/tokens", headers=admin).json()["items"]
    token_id = next(one["id"] for one in tokens if one["name"] == "gone")
    assert closed.client.delete(f"/api/v1/tokens/{token_id}", headers=admin).status_code == 204
    assert closed.client.get(LIST, headers=viewer).status_code == 401


def test_a_token_is_made_once_and_listed_without_its_secret(closed: House) -> None:
    admin = bearer(closed, "admin")
    made = closed.client.post("/api/v1/tokens", json={"name": "new", "role": "viewer"}, headers=admin)
    assert made.status_code == 201
    secret = made.json()["secret"]
    assert closed.client.get(LIST, headers={"Authorization": f"Bearer {secret}"}).is_success
    listed = closed.client.get("/api/v1/tokens", headers=admin).text
    assert "new" in listed
    assert secret not in listed


def test_an_agent_enrols_with_a_one_time_token_and_acts_with_its_own(closed: House) -> None:
    once = bearer(closed, "agent", once=True)
    assert closed.client.get(LIST, headers=once).status_code == 403
    answer = closed.client.post("/api/v1/agents", json=enrolment("enrolled"), headers=once)
    assert answer.status_code == 201, answer.text
    own = {"Authorization": f"Bearer {answer.json()['token']}"}
    agent_id = answer.json()["agent"]["id"]
    assert answer.headers["location"] == f"/api/v1/agents/{agent_id}"
    beat = closed.client.post(f"/api/v1/agents/{agent_id}/heartbeat", json={"incarnation": "i1"}, headers=own)
    assert beat.json() == {"cancel": [], "drain": False}
    assert closed.client.post("/api/v1/agents", json=enrolment("other"), headers=once).status_code == 401


def test_an_agent_may_not_speak_for_another(closed: House) -> None:
    ids, headers = [], []
    for name in ("one", "two"):
        answer = closed.client.post("/api/v1/agents", json=enrolment(name), headers=bearer(closed, "agent", once=True))
        ids.append(answer.json()["agent"]["id"])
        headers.append({"Authorization": f"Bearer {answer.json()['token']}"})
    asked = {"agent_id": ids[0], "incarnation": "i1", "wait_s": 0}
    for response in (
        closed.client.post(f"/api/v1/agents/{ids[0]}/heartbeat", json={"incarnation": "i1"}, headers=headers[1]),
        closed.client.put(f"/api/v1/agents/{ids[0]}/capabilities", json={}, headers=headers[1]),
        closed.client.post(f"/api/v1/agents/{ids[0]}/drain", headers=headers[1]),
        closed.client.post("/api/v1/leases", json=asked, headers=headers[1]),
    ):
        assert response.status_code == 403, response.text
    assert closed.client.post(f"/api/v1/agents/{ids[0]}/drain", headers=headers[0]).json()["state"] == "draining"


# The trail


def trail(house: House) -> list[dict[str, object]]:
    found: list[dict[str, object]] = house.client.get("/api/v1/audit").json()["items"]
    return found


def test_what_changes_something_is_recorded_and_what_does_not_is_not(house: House) -> None:
    before = len(trail(house))
    agent_id = house.enrol("trailed")
    experiment_id = house.experiment()
    house.client.get(LIST)
    house.client.post(f"/api/v1/agents/{agent_id}/heartbeat", json={"incarnation": "i1"})
    house.lease(agent_id)
    house.client.post("/api/v1/compatibility", json={"text": "name: x"})
    house.client.delete(f"/api/v1/experiments/{experiment_id}?force=true")
    house.client.delete(f"/api/v1/experiments/{experiment_id}")
    found = trail(house)
    told = [(one["action"], one["target"], one["status"]) for one in found[: len(found) - before]]
    assert told == [
        ("delete", experiment_id, 404),
        ("delete", experiment_id, 204),
        ("submit", experiment_id, 201),
        ("enroll", agent_id, 201),
    ]
    assert {(one["who"], one["role"], one["address"]) for one in found} == {("local", "admin", "127.0.0.1")}


def test_what_was_refused_is_recorded_under_who_was_refused(closed: House) -> None:
    headers = bearer(closed, "viewer", name="curious")
    assert closed.client.delete("/api/v1/experiments/zzz", headers=headers).status_code == 403
    entry = httpx.get(f"{closed.url}/api/v1/audit?limit=1", headers=bearer(closed, "admin")).json()["items"][0]
    assert (entry["who"], entry["role"], entry["action"], entry["target"], entry["status"]) == (
        "curious", "viewer", "delete", "zzz", 403,
    )  # fmt: skip
