"""`prony tokens` before any server runs: the secret alone on standard output, everything else beside it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from prony.app.access import open_access
from prony.cli.main import main
from prony.errors import AccessError
from prony.model.access import Role

Capture = pytest.CaptureFixture[str]


def answered(capsys: Capture, *arguments: str, code: int = 0) -> str:
    """Return what a command writes to standard output."""
    capsys.readouterr()
    assert main(["tokens", *arguments]) == code
    return capsys.readouterr().out


def listed(capsys: Capture) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(answered(capsys, "list", "--json"))
    return found


def test_the_secret_stands_alone_and_works(capsys: Capture) -> None:
    secret = answered(capsys, "add", "ann", "--role", "admin").removesuffix("\n")
    assert secret.startswith("prony_")
    assert not set(secret) & set(" \n")
    with open_access() as access:
        assert access.authenticate(secret, "192.0.2.1").role is Role.ADMIN
    assert secret not in answered(capsys, "list") + answered(capsys, "list", "--json")


def test_a_token_can_be_one_time_and_expire(capsys: Capture) -> None:
    made = json.loads(answered(capsys, "add", "rack-7", "--role", "agent", "--once", "--expires", "1h", "--json"))
    assert made["secret"].startswith("prony_")
    assert (made["token"]["once"], made["token"]["expires_at"] is not None) == (True, True)
    assert listed(capsys) == [made["token"]]
    assert "agent, once  valid" in answered(capsys, "list")


def test_a_revoked_token_opens_nothing(capsys: Capture) -> None:
    secret = answered(capsys, "add", "ann", "--role", "viewer").strip()
    assert answered(capsys, "revoke", listed(capsys)[0]["id"]).startswith("revoked ")
    with open_access() as access, pytest.raises(AccessError, match="revoked"):
        access.authenticate(secret, "192.0.2.1")
    assert "revoked" in answered(capsys, "list")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("add", "a b", "--role", "viewer"), "NAME"),
        (("add", "ann", "--role", "viewer", "--expires", "30"), "needs a unit"),
        (("add", "ann", "--role", "viewer", "--expires", "9999d"), "--expires"),
        (("add", "ann", "--role", "viewer", "--once"), "one-time"),
        (("revoke", "none"), "no token 'none'"),
        (("audit", "--cursor", "x"), "not a valid cursor"),
    ],
)
def test_what_is_wrong_is_said_and_nothing_is_made(capsys: Capture, arguments: tuple[str, ...], says: str) -> None:
    error = json.loads(answered(capsys, *arguments, "--json", code=2))["error"]
    assert says in error["message"]
    assert error["hint"]
    assert listed(capsys) == []


def test_what_was_done_here_is_in_the_trail(capsys: Capture) -> None:
    answered(capsys, "add", "ann", "--role", "admin")
    token_id = listed(capsys)[0]["id"]
    answered(capsys, "revoke", token_id)
    page = json.loads(answered(capsys, "audit", "--json"))
    assert [(entry["action"], entry["target"], entry["address"]) for entry in page["items"]] == [
        ("revoke_token", token_id, "local"),
        ("add_token", token_id, "local"),
    ]
    assert page["next"] is None
    assert "revoke_token" in answered(capsys, "audit", "-n", "1")
