"""The OpenAI embeddings driver: batches of texts and checks of the vectors returned."""

from __future__ import annotations

import base64
import json
from typing import Any

import numpy as np
import pytest
from streams import in_pieces

from prony.plugins.drivers.openai.embeddings import EmbeddingsOptions, OpenAiEmbeddings
from prony.ports.driver import Cause, Digest, Endpoint, Prepared, Prompt, Request, Wants

PROMPTS = [Prompt(({"role": "user", "content": f"text {n}"},)) for n in range(5)]


def prepared(**options: Any) -> Prepared:
    wants = Wants(Endpoint(host="h", port=80), EmbeddingsOptions(model="m", **options), seed=1, prompts=PROMPTS)
    return OpenAiEmbeddings().prepare(wants)


def bodies(made: Prepared) -> list[Any]:
    return [json.loads(request.content.partition(b"\r\n\r\n")[2]) for request in made.requests]


def digest(value: Any, texts: int = 1, dimensions: int | None = None, status: int = 200) -> Digest:
    request = Request(b"", about=texts, expected=dimensions)
    return OpenAiEmbeddings().digest(request, in_pieces([json.dumps(value).encode()], status))


def test_texts_go_in_batches_and_the_last_may_be_smaller() -> None:
    made = prepared(batch=2)
    assert [body["input"] for body in bodies(made)] == [["text 0", "text 1"], ["text 2", "text 3"], ["text 4"]]
    assert [request.about for request in made.requests] == [2, 2, 1]
    assert made.requests[0].content.startswith(b"POST /v1/embeddings HTTP/1.1\r\n")
    assert bodies(made)[0]["encoding_format"] == "float"


def test_dimensions_are_asked_for_where_they_are_given() -> None:
    assert bodies(prepared(dimensions=8))[0]["dimensions"] == 8
    assert "dimensions" not in bodies(prepared())[0]


def test_as_many_vectors_as_texts_is_a_success_that_counts_them_all() -> None:
    value = {"data": [{"embedding": [0.1, 0.2]}, {"embedding": [1, 2]}], "usage": {"prompt_tokens": 9}}
    found = digest(value, texts=2)
    assert (found.cause, found.items, found.input_tokens, found.output_tokens) == (Cause.OK, 2, 9, None)


def test_vectors_may_come_packed() -> None:
    packed = base64.b64encode(np.ones(4, dtype=np.float32).tobytes()).decode()
    assert digest({"data": [{"embedding": packed}]}, dimensions=4).cause is Cause.OK
    assert digest({"data": [{"embedding": "***"}]}).cause is Cause.CONTENT


@pytest.mark.parametrize(
    ("value", "cause"),
    [
        ({"data": [{"embedding": [1]}]}, Cause.CONTENT),
        ({"data": [{"embedding": [1, 2]}, {"embedding": []}]}, Cause.CONTENT),
        ({"data": [{"embedding": [1, 2]}, {"embedding": [1]}]}, Cause.CONTENT),
        ({"data": [{"embedding": [1]}, {"embedding": [1]}]}, Cause.CONTENT),
        ({"data": [{"embedding": [1, None]}, {"embedding": [1, 2]}]}, Cause.CONTENT),
        ({"data": None}, Cause.CONTENT),
        ({"error": {"message": "too long"}}, Cause.STATUS),
        ([], Cause.MALFORMED),
    ],
)
def test_what_is_wrong_with_the_vectors_is_told(value: Any, cause: Cause) -> None:
    found = digest(value, texts=2, dimensions=2)
    assert found.cause is cause
    assert found.detail


def test_a_status_that_says_no_tells_why() -> None:
    found = digest({"error": {"message": "too long"}}, status=400)
    assert (found.cause, found.detail) == (Cause.STATUS, "400: too long")
