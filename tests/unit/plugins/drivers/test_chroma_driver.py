"""The chroma driver against a real Chroma."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from driver_http import reply, sent
from driver_loads import causes, digested, loaded
from driver_services import running

from prony.errors import InputError
from prony.plugins.drivers.http.session import HttpSession
from prony.plugins.drivers.vectors.chroma import ChromaDriver, ChromaOptions
from prony.plugins.services.chroma import Chroma
from prony.ports.driver import Cause, Endpoint, Keeps, Prepared, Request, Wants

ROOT = "/api/v2/tenants/default_tenant/databases/default_database/collections"


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Endpoint]:
    with running(Chroma(), tmp_path_factory.mktemp("chroma")) as found:
        yield found


def prepared(driver: ChromaDriver, endpoint: Endpoint, **options: object) -> Prepared:
    chosen = {"count": 300, "dim": 12, "distinct": 20, "top_k": 5, "batch_size": 40, **options}
    return driver.prepare(Wants(endpoint=endpoint, options=ChromaOptions.model_validate(chosen), seed=7))


def asked(endpoint: Endpoint, path: str) -> Any:
    with HttpSession(endpoint) as session:
        return session.ask_json("GET", ROOT + path)


@pytest.mark.parametrize("metric", ["l2", "cosine", "dot"])
def test_queries_of_a_small_collection_find_the_exact_answers(endpoint: Endpoint, metric: str) -> None:
    driver = ChromaDriver()
    made = prepared(driver, endpoint, metric=metric, ef_search=300)
    assert made.keeps is Keeps.REPLY
    digests = [driver.digest(request, sent(endpoint, request.content)) for request in made.requests]
    assert {digest.cause for digest in digests} == {Cause.OK}
    qualities = [digest.quality for digest in digests if digest.quality is not None]
    assert len(qualities) == 20
    assert sum(qualities) / 20 > 0.97
    driver.finish()
    assert asked(endpoint, "") == []
    driver.finish()


def test_inserts_are_in_the_collection_afterwards(endpoint: Endpoint) -> None:
    driver = ChromaDriver()
    made = prepared(driver, endpoint, operation="insert", distinct=4)
    assert made.keeps is Keeps.NOTHING
    (collection,) = asked(endpoint, "")
    assert asked(endpoint, f"/{collection['id']}/count") == 0
    for request in (*made.requests, made.requests[0]):
        answer = sent(endpoint, request.content)
        assert answer.status < 300
        assert driver.digest(request, answer).items == 40
    assert asked(endpoint, f"/{collection['id']}/count") == 160
    driver.finish()


def test_mixed_requests_are_answered_and_not_judged(endpoint: Endpoint) -> None:
    driver = ChromaDriver()
    made = prepared(driver, endpoint, operation="mixed", query_share=0.75)
    assert Counter(request.operation for request in made.requests) == {"query": 15, "insert": 5}
    digests = [driver.digest(request, sent(endpoint, request.content)) for request in made.requests]
    assert {(digest.cause, digest.quality) for digest in digests} == {(Cause.OK, None)}
    driver.finish()


def test_a_wrong_answer_is_told_by_its_cause(endpoint: Endpoint) -> None:
    driver = ChromaDriver()
    request = prepared(driver, endpoint).requests[0]
    exact = [str(number) for number in request.expected]
    for body, status, cause in (
        ({"ids": [exact[:4]]}, 200, Cause.CONTENT),
        ({"ids": None}, 200, Cause.CONTENT),
        ({"ids": [["a"] * 5]}, 200, Cause.MALFORMED),
        ({"error": "no"}, 500, Cause.STATUS),
    ):
        assert driver.digest(request, reply(json.dumps(body).encode(), status)).cause is cause
    assert driver.digest(request, reply(b'{"ids": [["1"')).cause is Cause.MALFORMED
    other = json.dumps({"ids": [[*exact[:3], "-1", "-2"]]}).encode()
    assert driver.digest(request, reply(other)).quality == pytest.approx(0.6)
    driver.finish()


def test_requests_are_the_same_for_the_same_seed_but_for_the_collections_name(endpoint: Endpoint) -> None:
    driver = ChromaDriver()

    def bodies(requests: Any) -> list[bytes]:
        return [request.content.partition(b"\r\n\r\n")[2] for request in requests]

    one, same = (prepared(driver, endpoint).requests for _ in range(2))
    assert bodies(one) == bodies(same)
    driver.finish()


def test_a_key_that_is_not_there_is_told_before_anybody_is_asked() -> None:
    with pytest.raises(InputError, match="NO_SUCH_KEY"):
        prepared(ChromaDriver(), Endpoint(host="127.0.0.1", port=1), api_key_env="NO_SUCH_KEY")


def test_what_was_never_prepared_needs_no_clearing_up() -> None:
    driver = ChromaDriver()
    driver.finish()
    assert driver.digest(Request(b""), reply(b"")).cause is Cause.OK


def test_a_whole_load_is_answered_and_judged(endpoint: Endpoint, tmp_path: Path) -> None:
    driver = ChromaDriver()
    made, outcome = loaded(driver, endpoint, {"count": 500, "dim": 16, "ef_search": 300}, tmp_path, count=100)
    digests = digested(driver, made, outcome)
    driver.finish()
    assert causes(outcome) == {"OK": 100}
    assert sum(digest.quality or 0 for digest in digests) / 100 > 0.97
