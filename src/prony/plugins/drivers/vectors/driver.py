"""Base driver for vector stores: inserts and queries of generated vectors, and the recall of the answers.

Recall is the share of the exact nearest vectors that an answer holds. It exists where the collection stands still: not
where the same load inserts.

Vectors are made in blocks, each from the seed and its number alone, so that a million of them never lie in memory
together. Their numbers have five digits after the point: what is written as JSON is what the answers are computed from.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Protocol

import numpy as np
from pydantic import Field

from prony.load.http import request_bytes
from prony.model.base import Noun
from prony.plugins.drivers.http.session import HttpSession
from prony.plugins.drivers.request_mix import how_many, shared_out
from prony.plugins.drivers.sockets import clean_up_on_failure
from prony.ports.driver import Cause, Digest, Endpoint, Keeps, Prepared, Reply, Request, Wants

Metric = Literal["l2", "cosine", "dot"]
Floats = np.ndarray[Any, np.dtype[np.float64]]
Numbers = np.ndarray[Any, np.dtype[np.int64]]

BLOCK = 4096
_AT_ONCE = 1000
_STORED, _ASKED, _ADDED, _CENTRES = range(4)
_SPREAD = 0.35  # of vectors about their centre, whose own is 1


@dataclass(frozen=True)
class Vectors:
    """`clusters` centres have vectors about them, as embeddings do; none: every vector is on its own."""

    seed: int
    dim: int
    clusters: int

    def stored_block(self, count: int, number: int) -> Floats:
        """Return the block of that number, of a collection of `count`."""
        size = min(BLOCK, count - number * BLOCK)
        return self._drawn(BLOCK, _STORED, number)[:size]

    def query_vectors(self, count: int) -> Floats:
        """Return questions: vectors like those stored, and none of them."""
        return self._drawn(count, _ASKED, 0)

    def insert_batch(self, count: int, number: int) -> Floats:
        """Return the vectors of one batch that is inserted during the load."""
        return self._drawn(count, _ADDED, number)

    def _drawn(self, count: int, kind: int, number: int) -> Floats:
        rng = np.random.default_rng([self.seed, kind, number])
        own = rng.standard_normal((count, self.dim))
        if not self.clusters:
            return own.round(5)
        centres = np.random.default_rng([self.seed, _CENTRES]).standard_normal((self.clusters, self.dim))
        return (centres[rng.integers(0, self.clusters, size=count)] + _SPREAD * own).round(5)


def exact_answers(vectors: Vectors, questions: Floats, *, count: int, top_k: int, metric: Metric) -> Numbers:
    """Return for each question the numbers of its nearest vectors, nearest first, found by looking at every one."""
    parts = [questions[at : at + _AT_ONCE] for at in range(0, len(questions), _AT_ONCE)]
    found = [_nearest(vectors, part, count, top_k, metric) for part in parts]
    return np.concatenate(found) if found else np.zeros((0, top_k), dtype=np.int64)


def _nearest(vectors: Vectors, questions: Floats, count: int, top_k: int, metric: Metric) -> Numbers:
    best = np.zeros((len(questions), 0))
    found: Numbers = np.zeros((len(questions), 0), dtype=np.int64)
    for number in range(-(-count // BLOCK)):
        block = vectors.stored_block(count, number)
        numbers = np.broadcast_to(np.arange(len(block)) + number * BLOCK, (len(questions), len(block)))
        best = np.concatenate([best, nearness(questions, block, metric)], axis=1)
        found = np.concatenate([found, numbers], axis=1)
        if best.shape[1] > top_k:
            kept = np.argpartition(-best, top_k - 1, axis=1)[:, :top_k]
            best, found = np.take_along_axis(best, kept, axis=1), np.take_along_axis(found, kept, axis=1)
    return np.take_along_axis(found, np.argsort(-best, axis=1, kind="stable"), axis=1)


def nearness(questions: Floats, vectors: Floats, metric: Metric) -> Floats:
    """Return how near each vector is to each question: more is nearer, in no unit that means more than that."""
    products: Floats = questions @ vectors.T
    if metric == "dot":
        return products
    squares = (vectors**2).sum(axis=1)
    near: Floats = products / np.sqrt(squares) if metric == "cosine" else 2 * products - squares
    return near


WIRE = "prony.load.http:HttpWire"
_JSON = {"Content-Type": "application/json"}
_NUMBER_BYTES = 10


class VectorOptions(Noun):
    """What is asked of a store of vectors."""

    operation: Literal["insert", "query", "mixed"] = Field(default="query", description="what to do with vectors")
    query_share: float = Field(default=0.9, ge=0, le=1, description="for mixed: share of queries")
    count: int = Field(default=10_000, ge=1, le=100_000_000, description="vectors in the collection before queries")
    dim: int = Field(default=128, ge=1, le=65_536, description="numbers in a vector")
    metric: Metric = Field(default="l2", description="distance metric")
    top_k: int = Field(default=10, ge=1, le=10_000, description="how many nearest vectors a query asks for")
    batch_size: int = Field(default=256, ge=1, le=100_000, description="vectors in one insert")
    clusters: int = Field(
        default=64, ge=0, description="number of clusters of vectors; 0: no clusters, the hardest case"
    )
    api_key_env: str | None = Field(
        default=None, min_length=1, description="NAME of the environment variable with the server's key"
    )
    distinct: int = Field(
        default=1_000,
        ge=1,
        le=1_000_000,
        description="number of different requests to prepare; they repeat after that",
    )


Call = tuple[str, str, Any]  # method, path, document


class VectorStore(Protocol):
    """One collection of a store, in the store's own words."""

    headers: Mapping[str, str]

    def make(self, session: HttpSession) -> str:
        """Make the collection; return the server's version."""

    def settle(self, session: HttpSession) -> None:
        """Wait until what was inserted is indexed."""

    def insert(self, numbers: Sequence[int], vectors: Sequence[Sequence[float]]) -> Call: ...
    def query(self, vector: Sequence[float]) -> Call: ...

    def read_ids(self, document: Any) -> list[int]:
        """Return the numbers of the vectors in an answer; where it is none, whatever its shape raises."""

    def remove(self, session: HttpSession) -> None: ...


class VectorDriver:
    """Collections have a name of their own and are removed at the end; nothing else is touched."""

    schemes: ClassVar[tuple[str, ...]] = ("http", "https", "unix")
    asks: ClassVar[bool] = False
    makes: ClassVar[bool] = True
    Options: ClassVar[type[Any]] = VectorOptions

    def __init__(self, store_for: Callable[[Any], VectorStore]) -> None:
        """`store_for` returns the collection that is to be made, by the driver's options."""
        self._store_for = store_for
        self._endpoint = Endpoint()
        self._store: VectorStore | None = None
        self._answers = 0

    def prepare(self, wants: Wants) -> Prepared:
        options: VectorOptions = wants.options
        self.finish()
        vectors = Vectors(wants.seed, options.dim, options.clusters)
        store = self._store_for(options)
        self._endpoint = wants.endpoint
        filled = 0 if options.operation == "insert" else options.count
        with clean_up_on_failure(self.finish), HttpSession(wants.endpoint, {**_JSON, **store.headers}) as session:
            version = store.make(session)
            self._store = store
            for number in range(-(-filled // BLOCK)):
                _fill(session, store, vectors.stored_block(filled, number).tolist(), number * BLOCK, options.batch_size)
            store.settle(session)
        self._answers = min(options.top_k, filled)
        return Prepared(
            requests=_Making(wants, options, store, vectors).requests(),
            wire=WIRE,
            keeps=Keeps.NOTHING if options.operation == "insert" else Keeps.REPLY,
            notes={
                "server": version,
                "vectors": f"{filled} of {options.dim} numbers, {options.metric}, {options.clusters} clusters",
                "quality": "recall against exact answers" if options.operation == "query" else "not judged",
            },
        )

    def digest(self, request: Request, reply: Reply) -> Digest:
        if reply.status >= 400:
            return Digest(cause=Cause.STATUS, detail=f"{reply.status}: {reply.body[:300].decode(errors='replace')}")
        if request.operation != "query" or self._store is None:
            return Digest(items=request.items)
        try:
            found = self._store.read_ids(json.loads(reply.body))
        except (ValueError, RecursionError):
            return Digest(cause=Cause.MALFORMED, detail="the answer is not JSON, or an id in it is not a number")
        except (KeyError, TypeError, IndexError, AttributeError):
            return Digest(cause=Cause.CONTENT, detail="the answer has no list of vectors")
        return _judge_answer(found, request.expected, self._answers)

    def finish(self) -> None:
        if self._store is not None:
            with HttpSession(self._endpoint, {**_JSON, **self._store.headers}) as session:
                self._store.remove(session)
            self._store = None


def _judge_answer(found: list[int], expected: Sequence[int] | None, count: int) -> Digest:
    if len(found) < count:
        return Digest(cause=Cause.CONTENT, detail=f"{len(found)} vectors instead of {count}")
    if not expected:
        return Digest()
    return Digest(quality=len(set(expected).intersection(found)) / len(expected))


def _fill(session: HttpSession, store: VectorStore, block: list[list[float]], first: int, batch_size: int) -> None:
    for at in range(0, len(block), batch_size):
        part = block[at : at + batch_size]
        method, path, document = store.insert(range(first + at, first + at + len(part)), part)
        session.ask(method, path, _text(document))


def _text(document: Any) -> bytes:
    return json.dumps(document, separators=(",", ":")).encode()


class _Making:
    """Makes the requests of a load."""

    def __init__(self, wants: Wants, options: VectorOptions, store: VectorStore, vectors: Vectors) -> None:
        self._wants = wants
        self._options = options
        self._store = store
        self._vectors = vectors

    def requests(self) -> list[Request]:
        options = self._options
        each = options.dim * _NUMBER_BYTES * (1 if options.operation == "query" else options.batch_size)
        count = how_many(self._wants, options.distinct, bytes_each=each)
        rng = np.random.default_rng([self._wants.seed, 9])
        shares = {"query": options.query_share, "insert": 1 - options.query_share}
        operations = shared_out(rng, shares if options.operation == "mixed" else {options.operation: 1.0}, count)
        queries = iter(self._queries(operations.count("query")))
        inserts = iter(self._inserts(operations.count("insert")))
        return [next(queries if operation == "query" else inserts) for operation in operations]

    def _queries(self, count: int) -> Iterable[Request]:
        options = self._options
        questions = self._vectors.query_vectors(count)
        answers: Sequence[Sequence[int] | None] = [None] * count
        if options.operation == "query":
            answers = exact_answers(
                self._vectors, questions, count=options.count, top_k=options.top_k, metric=options.metric
            ).tolist()
        for question, answer in zip(questions.tolist(), answers, strict=True):
            yield Request(self._content(self._store.query(question)), operation="query", expected=answer)

    def _inserts(self, count: int) -> Iterable[Request]:
        size = self._options.batch_size
        for number in range(count):
            first = self._options.count + number * size
            added = self._vectors.insert_batch(size, number).tolist()
            content = self._content(self._store.insert(range(first, first + size), added))
            yield Request(content, operation="insert", items=size)

    def _content(self, call: Call) -> bytes:
        method, path, document = call
        return request_bytes(method, path, self._wants.endpoint, {**_JSON, **self._store.headers}, _text(document))
