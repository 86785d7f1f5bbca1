"""The s3 driver against a real store, and its signatures against the example that Amazon gives."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from driver_http import reply, sent
from driver_loads import causes, digested, loaded
from driver_services import running

from prony.errors import InputError, SutError
from prony.plugins.drivers.http.probe import endpoint_url
from prony.plugins.drivers.http.session import HttpSession
from prony.plugins.drivers.s3 import S3Driver, S3Options
from prony.plugins.s3_sign import Signer
from prony.plugins.services.seaweedfs import Seaweedfs
from prony.ports.driver import Cause, Digest, Endpoint, Keeps, Prepared, Request, Wants


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Endpoint]:
    with running(Seaweedfs(), tmp_path_factory.mktemp("seaweedfs")) as found:
        yield found


def prepared(driver: S3Driver, endpoint: Endpoint, **options: object) -> Prepared:
    chosen = {"objects": 5, "distinct": 20, "object_size": 3000, **options}
    return driver.prepare(Wants(endpoint=endpoint, options=S3Options.model_validate(chosen), seed=7))


def buckets(endpoint: Endpoint) -> list[str]:
    host = endpoint_url(endpoint).partition("//")[2]
    signer = Signer(endpoint.user, endpoint.password, "us-east-1", host, datetime.now(UTC))
    with HttpSession(endpoint) as session:
        return re.findall("<Name>(.*?)</Name>", session.ask("GET", signer.address("GET", "/")).text)


def test_a_signature_is_that_of_amazons_example() -> None:
    signer = Signer(
        "AKIAIOSFODNN7EXAMPLE",
        "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
        "us-east-1",
        "examplebucket.s3.amazonaws.com",
        datetime(2013, 5, 24, tzinfo=UTC),
    )
    signed = signer.address("GET", "/test.txt", expires_s=86_400)
    assert signed.startswith("/test.txt?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F2013")
    assert signed.endswith("&X-Amz-Signature=aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404")


@pytest.mark.parametrize("operation", ["put", "get", "mixed"])
def test_every_object_comes_back_as_it_was_put_and_nothing_is_left(endpoint: Endpoint, operation: str) -> None:
    driver = S3Driver()
    made = prepared(driver, endpoint, operation=operation, verify=True)
    assert "prony" in buckets(endpoint)
    for request in made.requests:
        answer = sent(endpoint, request.content)
        assert (answer.status, driver.digest(request, answer)) == (200, Digest())
        assert len(answer.body) == (3000 if request.operation == "get" else 0)
    kinds = Counter(request.operation for request in made.requests)
    assert kinds == ({"get": 10, "put": 10} if operation == "mixed" else {operation: 20})
    driver.finish()
    assert "prony" not in buckets(endpoint)
    driver.finish()


def test_a_bucket_that_was_there_stays_and_only_ours_goes(endpoint: Endpoint) -> None:
    other, driver = S3Driver(), S3Driver()
    theirs = prepared(other, endpoint, operation="get", bucket="kept")
    prepared(driver, endpoint, operation="get", bucket="kept")
    driver.finish()
    assert "kept" in buckets(endpoint)
    assert sent(endpoint, theirs.requests[0].content).status == 200
    other.finish()
    assert "kept" not in buckets(endpoint)


def test_other_bytes_are_wrong_content(endpoint: Endpoint) -> None:
    driver = S3Driver()
    made = prepared(driver, endpoint, operation="get", verify=True)
    assert made.keeps is Keeps.REPLY
    assert driver.digest(made.requests[0], reply(b"other")).cause is Cause.CONTENT
    assert driver.digest(made.requests[0], reply(b"<Error/>", 503)).cause is Cause.STATUS
    driver.finish()


def test_a_wrong_key_is_told_and_so_is_none(endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SutError, match="403"):
        prepared(S3Driver(), replace(endpoint, password="wrong"))
    monkeypatch.delenv("AWS_ACCESS_KEY_ID", raising=False)
    with pytest.raises(InputError, match="the keys to sign requests are missing"):
        prepared(S3Driver(), replace(endpoint, user=""))


def test_a_request_that_expects_nothing_is_good_whatever_comes() -> None:
    assert S3Driver().digest(Request(b""), reply(b"anything")).cause is Cause.OK


def test_a_whole_load_is_answered_and_every_byte_is_right(endpoint: Endpoint, tmp_path: Path) -> None:
    driver = S3Driver()
    options = {"object_size": 20_000, "objects": 20, "verify": True}
    made, outcome = loaded(driver, endpoint, options, tmp_path, count=100)
    digests = digested(driver, made, outcome)
    driver.finish()
    assert causes(outcome) == {"OK": 100}
    assert len(digests) >= 50
    assert {digest.cause for digest in digests} == {Cause.OK}
