"""Driver for OpenAI's `/v1/embeddings`."""

from __future__ import annotations

import base64
import binascii
from typing import Any, ClassVar, Literal

from pydantic import Field

from prony.plugins.drivers.answer import LONGEST_DETAIL, complaint, digest_refusal, parse_object, read_count
from prony.plugins.drivers.http.probe import check_version, request_to, wire_of
from prony.plugins.drivers.openai.requests import OpenAiOptions, headers_of, model_of, under_v1
from prony.plugins.drivers.prompt_requests import encode_body, require_prompts
from prony.ports.driver import Cause, Digest, Keeps, Prepared, Reply, Request, Wants
from prony.ports.llm import join_messages


class EmbeddingsOptions(OpenAiOptions):
    """What is asked in one request, and how vectors come back."""

    batch: int = Field(default=1, ge=1, le=10_000, description="texts in one request")
    dimensions: int | None = Field(
        default=None, ge=1, description="request and expect vectors of this length; default: the model's own"
    )
    encoding: Literal["float", "base64"] = Field(default="float", description="encoding of the numbers")


class OpenAiEmbeddings:
    """Embeddings of any server that speaks as OpenAI's does."""

    name: ClassVar[str] = "openai-embeddings"
    schemes: ClassVar[tuple[str, ...]] = ("http", "https", "unix")
    asks: ClassVar[bool] = True
    makes: ClassVar[bool] = False
    Options: ClassVar[type[Any]] = EmbeddingsOptions

    def prepare(self, wants: Wants) -> Prepared:
        options: EmbeddingsOptions = wants.options
        prompts = require_prompts(wants.prompts, self.name)
        model = model_of(options, wants.endpoint)
        path, headers = under_v1(wants.endpoint, "/embeddings"), headers_of(options, wants.endpoint)
        check_version(wants.endpoint, options.http)
        fields: dict[str, Any] = {"model": model, "encoding_format": options.encoding}
        if options.dimensions is not None:
            fields["dimensions"] = options.dimensions
        requests = []
        for begin in range(0, len(prompts), options.batch):
            asked = prompts[begin : begin + options.batch]
            texts = [join_messages(prompt.messages) for prompt in asked]
            body = encode_body({**fields, "input": texts} | options.extra)
            content = request_to(wants.endpoint, "POST", path, headers, body, options.http)
            salts = [salt for prompt in asked for salt in prompt.salts]
            requests.append(
                Request(content, operation="embed", expected=options.dimensions, about=len(texts), salts=salts)
            )
        notes = {"model": model, "requests": str(len(requests)), "texts in a request": str(options.batch)}
        return Prepared(requests, wire_of(options.http), keeps=Keeps.REPLY, notes=notes)

    def digest(self, request: Request, reply: Reply) -> Digest:
        if reply.status >= 400:
            return digest_refusal(reply)
        value = parse_object(reply.body)
        if value is None:
            return Digest(Cause.MALFORMED, "the reply is not a JSON object")
        error = complaint(value)
        if error is not None:
            return Digest(Cause.STATUS, error[:LONGEST_DETAIL])
        wanted = request.about if isinstance(request.about, int) else 1
        wrong = _wrong(value.get("data"), wanted, request.expected)
        usage = value.get("usage")
        tokens = read_count(usage.get("prompt_tokens")) if isinstance(usage, dict) else None
        cause = Cause.CONTENT if wrong else Cause.OK
        return Digest(cause, wrong, input_tokens=tokens or None, items=wanted)

    def finish(self) -> None:
        """Nothing was made at the endpoint."""


def _wrong(data: Any, wanted: int, dimensions: Any) -> str:
    """Return what is wrong with the vectors of a reply, or nothing."""
    if not isinstance(data, list) or len(data) != wanted:
        found = len(data) if isinstance(data, list) else "no list of"
        return f"{found} vectors for {wanted} texts"
    sizes = {_size(one.get("embedding") if isinstance(one, dict) else None) for one in data}
    if 0 in sizes:
        return "a vector is empty or missing"
    if len(sizes) > 1 or (dimensions is not None and sizes != {dimensions}):
        return f"vectors have {', '.join(map(str, sorted(sizes)))} numbers, not {dimensions or 'the same count'}"
    return ""


def _size(vector: Any) -> int:
    """Return how many numbers a vector has; 0 where it is none."""
    if isinstance(vector, str):
        try:
            return len(base64.b64decode(vector, validate=True)) // 4
        except (binascii.Error, ValueError):
            return 0
    return len(vector) if isinstance(vector, list) and all(isinstance(one, int | float) for one in vector) else 0
