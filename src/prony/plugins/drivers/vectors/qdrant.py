"""Driver for Qdrant's HTTP API: inserts and queries."""

from __future__ import annotations

import json
import re
import secrets
import time
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from pydantic import Field

from prony.errors import SutError
from prony.plugins.drivers.http.probe import key_header
from prony.plugins.drivers.http.session import HttpSession
from prony.plugins.drivers.vectors.driver import Call, VectorDriver, VectorOptions

_DISTANCES = {"l2": "Euclid", "cosine": "Cosine", "dot": "Dot"}
_UNIVERSAL = (1, 10)  # the version from which one path answers every kind of query
_PAUSE_S = 0.1


class QdrantOptions(VectorOptions):
    """What is asked of a Qdrant."""

    wait: bool = Field(default=True, description="answer an insert only after it is applied, not when it is logged")
    exact: bool = Field(default=False, description="queries scan all vectors instead of the index")
    ef_search: int | None = Field(default=None, ge=1, description="for queries: hnsw_ef; default: the server's")
    ef_construction: int | None = Field(default=None, ge=4, description="for the index: ef_construct")
    max_neighbors: int | None = Field(default=None, ge=0, description="for the index: m")
    indexing_threshold: int | None = Field(
        default=None, ge=0, description="KiB of vectors from which a segment gets an index; below, queries are exact"
    )
    settle_s: float = Field(default=300.0, gt=0, description="most seconds to wait for indexing before the load")


class QdrantDriver(VectorDriver):
    """The load begins when the collection is green: everything that will be indexed is."""

    name: ClassVar[str] = "qdrant"
    Options: ClassVar[type[Any]] = QdrantOptions

    def __init__(self) -> None:
        super().__init__(_Collection)


class _Collection:
    def __init__(self, options: QdrantOptions) -> None:
        self._options = options
        self._root = f"/collections/prony_{secrets.token_hex(6)}"
        self._has_universal = True
        self.headers: Mapping[str, str] = key_header("api-key", options.api_key_env)

    def make(self, session: HttpSession) -> str:
        version = str(session.ask_json("GET", "/").get("version", "unknown"))
        numbers = tuple(int(number) for number in re.findall(r"\d+", version)[:2])
        self._has_universal = not numbers or numbers >= _UNIVERSAL
        session.ask("PUT", self._root, json.dumps(self._config()).encode())
        return f"qdrant {version}"

    def _config(self) -> dict[str, Any]:
        options = self._options
        index = _drop_unset({"m": options.max_neighbors, "ef_construct": options.ef_construction})
        optimizers = _drop_unset({"indexing_threshold": options.indexing_threshold})
        wanted: dict[str, Any] = {"vectors": {"size": options.dim, "distance": _DISTANCES[options.metric]}}
        if index:
            wanted["hnsw_config"] = index
        if optimizers:
            wanted["optimizers_config"] = optimizers
        return wanted

    def settle(self, session: HttpSession) -> None:
        deadline = time.monotonic() + self._options.settle_s
        while True:
            status = session.ask_json("GET", self._root)["result"]["status"]
            if status == "green":
                return
            if status == "red" or time.monotonic() > deadline:
                raise SutError(f"the collection is {status}, not green", hint="raise settle_s")
            time.sleep(_PAUSE_S)

    def insert(self, numbers: Sequence[int], vectors: Sequence[Sequence[float]]) -> Call:
        path = f"{self._root}/points?wait={'true' if self._options.wait else 'false'}"
        return "PUT", path, {"batch": {"ids": list(numbers), "vectors": vectors}}

    def query(self, vector: Sequence[float]) -> Call:
        options = self._options
        params = _drop_unset({"hnsw_ef": options.ef_search, "exact": options.exact or None})
        rest = {"limit": options.top_k} | ({"params": params} if params else {})
        if self._has_universal:
            return "POST", f"{self._root}/points/query", {"query": vector, **rest}
        return "POST", f"{self._root}/points/search", {"vector": vector, **rest}

    def read_ids(self, document: Any) -> list[int]:
        result = document["result"]
        return [int(point["id"]) for point in (result["points"] if isinstance(result, dict) else result)]

    def remove(self, session: HttpSession) -> None:
        session.ask("DELETE", self._root, good=(404,))


def _drop_unset(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}
