"""The qdrant driver against Qdrant's HTTP API as it is documented."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator

import pytest
from documented_qdrant import Qdrant, documented_qdrant
from driver_http import reply, sent

from prony.errors import InputError, SutError
from prony.plugins.drivers.vectors.qdrant import QdrantDriver, QdrantOptions
from prony.ports.driver import Cause, Endpoint, Keeps, Prepared, Wants


@pytest.fixture
def server() -> Iterator[tuple[Qdrant, Endpoint]]:
    with documented_qdrant() as found:
        yield found


def prepared(driver: QdrantDriver, endpoint: Endpoint, **options: object) -> Prepared:
    chosen = {"count": 300, "dim": 12, "distinct": 20, "top_k": 5, "batch_size": 40, **options}
    return driver.prepare(Wants(endpoint=endpoint, options=QdrantOptions.model_validate(chosen), seed=7))


@pytest.mark.parametrize("version", ["1.12.4", "1.9.0"])
@pytest.mark.parametrize("metric", ["l2", "cosine", "dot"])
def test_queries_are_judged_against_the_exact_answers(
    server: tuple[Qdrant, Endpoint], metric: str, version: str
) -> None:
    store, endpoint = server
    store.version = version
    driver = QdrantDriver()
    made = prepared(driver, endpoint, metric=metric)
    assert made.keeps is Keeps.REPLY
    ((name, wanted),) = store.collections.items()
    assert wanted == {"vectors": {"size": 12, "distance": {"l2": "Euclid", "cosine": "Cosine", "dot": "Dot"}[metric]}}
    assert sorted(store.vectors[name]) == list(range(300))
    assert store.asked.count(f"GET /collections/{name}") == 2  # yellow, and then green
    digests = [driver.digest(request, sent(endpoint, request.content)) for request in made.requests]
    assert {(digest.cause, digest.quality) for digest in digests} == {(Cause.OK, 1.0)}
    path = "query" if version == "1.12.4" else "search"
    assert store.asked[-1] == f"POST /collections/{name}/points/{path}"
    store.vectors[name].pop(made.requests[0].expected[0])
    worse = driver.digest(made.requests[0], sent(endpoint, made.requests[0].content))
    assert worse.quality == pytest.approx(0.8)
    driver.finish()
    assert store.collections == {}


def test_what_is_chosen_is_asked_for(server: tuple[Qdrant, Endpoint]) -> None:
    store, endpoint = server
    driver = QdrantDriver()
    made = prepared(
        driver, endpoint, ef_search=77, exact=True, max_neighbors=8, ef_construction=90, indexing_threshold=1
    )
    (wanted,) = store.collections.values()
    assert wanted["hnsw_config"] == {"m": 8, "ef_construct": 90}
    assert wanted["optimizers_config"] == {"indexing_threshold": 1}
    sent(endpoint, made.requests[0].content)
    assert store.queries[-1]["params"] == {"hnsw_ef": 77, "exact": True}
    driver.finish()


def test_inserts_come_in_batches_after_what_is_there(server: tuple[Qdrant, Endpoint]) -> None:
    store, endpoint = server
    driver = QdrantDriver()
    made = prepared(driver, endpoint, operation="mixed", query_share=0.5, wait=False)
    assert Counter(request.operation for request in made.requests) == {"query": 10, "insert": 10}
    digests = [driver.digest(request, sent(endpoint, request.content)) for request in made.requests]
    assert {digest.cause for digest in digests} == {Cause.OK}
    assert sum(digest.items for digest in digests) == 10 + 400
    ((name, vectors),) = store.vectors.items()
    assert sorted(vectors) == list(range(700))
    assert f"PUT /collections/{name}/points?wait=false" in store.asked
    driver.finish()


def test_a_collection_that_does_not_become_green_is_told(server: tuple[Qdrant, Endpoint]) -> None:
    store, endpoint = server
    driver = QdrantDriver()
    for statuses, settle_s in ((["red"], 60.0), (["yellow"], 0.001)):
        store.statuses = statuses
        with pytest.raises(SutError, match="not green"):
            prepared(driver, endpoint, settle_s=settle_s)
        assert store.collections == {}


def test_a_key_is_taken_from_the_environment_and_a_wrong_one_is_told(
    server: tuple[Qdrant, Endpoint], monkeypatch: pytest.MonkeyPatch
) -> None:
    store, endpoint = server
    store.key = "right"
    with pytest.raises(SutError, match="401"):
        prepared(QdrantDriver(), endpoint)
    with pytest.raises(InputError, match="QDRANT_KEY"):
        prepared(QdrantDriver(), endpoint, api_key_env="QDRANT_KEY")
    monkeypatch.setenv("QDRANT_KEY", "right")
    driver = QdrantDriver()
    made = prepared(driver, endpoint, api_key_env="QDRANT_KEY")
    assert sent(endpoint, made.requests[0].content).status == 200
    driver.finish()


def test_a_wrong_answer_is_told_by_its_cause(server: tuple[Qdrant, Endpoint]) -> None:
    _, endpoint = server
    driver = QdrantDriver()
    request = prepared(driver, endpoint).requests[0]
    for body, cause in (
        ({"result": {"points": []}}, Cause.CONTENT),
        ({"result": [{"score": 1}]}, Cause.CONTENT),
        ({"result": None}, Cause.CONTENT),
        ([], Cause.CONTENT),
    ):
        assert driver.digest(request, reply(json.dumps(body).encode())).cause is cause
    assert driver.digest(request, reply(b"[" * 100_000)).cause is Cause.MALFORMED
    driver.finish()
