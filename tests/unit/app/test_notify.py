from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from prony.app.notify import Notification, check_address, mask_address, send
from prony.errors import InputError
from prony.model.alarm import Message, Severity
from servers.receiver import Receiver, receiver

SECRET = "made-up"
MESSAGE = Message(
    kind="firing",
    alarm="nightly",
    when="experiment failed",
    severity=Severity.CRITICAL,
    count=2,
    at=datetime(2025, 6, 1, tzinfo=UTC),
    text="[critical] nightly: 2 times\nit failed",
)


@pytest.fixture
def there() -> Iterator[Receiver]:
    with receiver() as made:
        yield made


def notification(address: str) -> Notification:
    return Notification("d1", MESSAGE, address, SECRET)


def test_a_webhook_brings_the_message_signed_with_its_time(there: Receiver) -> None:
    assert send(notification(there.url())).ok
    (came,) = there.received
    assert came.path == "/hook/sEcReT"
    assert Message.read_json(came.body) == MESSAGE
    assert came.headers["prony-delivery"] == "d1"
    signed = came.headers["prony-timestamp"].encode() + b"." + came.body
    assert came.headers["prony-signature"] == "v1=" + hmac.new(SECRET.encode(), signed, hashlib.sha256).hexdigest()
    assert abs(int(came.headers["prony-timestamp"]) - datetime.now(UTC).timestamp()) < 60


def test_an_address_of_apprise_brings_it_too(there: Receiver) -> None:
    assert send(notification(there.url("json"))).ok
    (came,) = there.received
    assert came.json["title"] == "[critical] nightly: 2 times"
    assert came.json["message"] == "it failed"
    assert came.json["type"] == "failure"


@pytest.mark.parametrize(
    ("status", "is_final"), [(500, False), (503, False), (429, False), (408, False), (404, True), (401, True)]
)
def test_what_may_be_better_later_is_told_apart(there: Receiver, status: int, is_final: bool) -> None:
    there.statuses = [status]
    found = send(notification(there.url()))
    assert (found.ok, found.is_final, found.said) == (False, is_final, f"it answered {status}")


def test_a_redirect_is_not_followed(there: Receiver) -> None:
    there.statuses = [307]
    found = send(notification(there.url()))
    assert (found.ok, found.is_final) == (False, True)
    assert len(there.received) == 1


@pytest.mark.parametrize("scheme", ["webhook+http", "json"])
def test_what_is_said_of_a_failure_has_no_secret_in_it(there: Receiver, scheme: str) -> None:
    there.statuses = [500]
    address = there.url(scheme).replace("127.0.0.1", "someone:passw0rd@127.0.0.1") if scheme == "json" else there.url()
    for one in (address, f"{scheme}://127.0.0.1:1/hook/sEcReT"):
        found = send(notification(one))
        assert not found.ok
        assert "sEcReT" not in found.said
        assert "passw0rd" not in found.said


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("webhook+https://hooks.example.org/T0/B1/secret", "webhook+https://hooks.example.org/***"),
        ("webhook+http://[::1]:80/x?key=secret", "webhook+http://[::1]:80/***"),
        ("webhook+https://hooks.example.org", "webhook+https://hooks.example.org"),
        ("slack://TokenA/TokenB/TokenC", "slack://***"),
        ("mailto://me:secret@example.org", "mailto://***"),
    ],
)
def test_an_address_is_shown_without_what_is_secret(address: str, shown: str) -> None:
    assert mask_address(address) == shown


@pytest.mark.parametrize(
    "address",
    ["http://example.org", "https://example.org", "nobody://example.org", "webhook+https://me:x@example.org", "webhook+http://x:y"],
)  # fmt: skip
def test_an_address_that_nothing_can_be_sent_to_is_refused(address: str) -> None:
    with pytest.raises(InputError) as caught:
        check_address(address)
    assert caught.value.code == "bad_address"
    assert "example.org" not in caught.value.message


def test_addresses_of_apprise_are_taken() -> None:
    for address in ("json://127.0.0.1", "mailto://me:secret@example.org"):
        check_address(address)
