"""Driver for Chroma's HTTP API (v2): inserts and queries."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from pydantic import Field

from prony.plugins.drivers.http.probe import key_header
from prony.plugins.drivers.http.session import HttpSession
from prony.plugins.drivers.vectors.driver import Call, VectorDriver, VectorOptions

_SPACES = {"l2": "l2", "cosine": "cosine", "dot": "ip"}


class ChromaOptions(VectorOptions):
    """What is asked of a Chroma."""

    tenant: str = Field(default="default_tenant", min_length=1, description="the tenant of the database")
    database: str = Field(default="default_database", min_length=1, description="the database for the collection")
    ef_construction: int | None = Field(default=None, ge=1, description="setting of the index; default: the server's")
    ef_search: int | None = Field(default=None, ge=1, description="setting of the index; default: the server's")
    max_neighbors: int | None = Field(default=None, ge=1, description="setting of the index; default: the server's")


class ChromaDriver(VectorDriver):
    """Vectors are upserted: what comes again is written again, not passed over."""

    name: ClassVar[str] = "chroma"
    Options: ClassVar[type[Any]] = ChromaOptions

    def __init__(self) -> None:
        super().__init__(_Collection)


class _Collection:
    def __init__(self, options: ChromaOptions) -> None:
        self._options = options
        self._name = f"prony_{secrets.token_hex(6)}"
        self._root = f"/api/v2/tenants/{options.tenant}/databases/{options.database}/collections"
        self._id = ""
        self.headers: Mapping[str, str] = key_header("x-chroma-token", options.api_key_env)

    def make(self, session: HttpSession) -> str:
        options = self._options
        tuning = {name: getattr(options, name) for name in ("ef_construction", "ef_search", "max_neighbors")}
        index = {"space": _SPACES[options.metric]} | {name: value for name, value in tuning.items() if value}
        asked = {"name": self._name, "get_or_create": False, "configuration": {"hnsw": index}}
        version = session.ask_json("GET", "/api/v2/version")
        self._id = str(session.ask_json("POST", self._root, json.dumps(asked).encode())["id"])
        return f"chroma {version}"

    def settle(self, session: HttpSession) -> None:
        """Ask once: the first query has to read the index, which takes a hundred times as long as the next."""
        method, path, document = self.query([1.0] * self._options.dim)
        session.ask(method, path, json.dumps(document).encode())

    def insert(self, numbers: Sequence[int], vectors: Sequence[Sequence[float]]) -> Call:
        document = {"ids": [str(number) for number in numbers], "embeddings": vectors}
        return "POST", f"{self._root}/{self._id}/upsert", document

    def query(self, vector: Sequence[float]) -> Call:
        document = {"query_embeddings": [vector], "n_results": self._options.top_k, "include": ["distances"]}
        return "POST", f"{self._root}/{self._id}/query", document

    def read_ids(self, document: Any) -> list[int]:
        return [int(word) for word in document["ids"][0]]

    def remove(self, session: HttpSession) -> None:
        session.ask("DELETE", f"{self._root}/{self._name}", good=(404,))
