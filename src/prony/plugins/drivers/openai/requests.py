"""Options, requests and base class that the drivers of OpenAI's API share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from pydantic import Field

from prony.errors import MeasurementError
from prony.model.base import Noun
from prony.plugins.drivers.answer import Asked, Counts, Said, digest_refusal
from prony.plugins.drivers.http.probe import HTTP_HELP, HttpVersion, ask_json, only_model, whose
from prony.plugins.drivers.openai.chunks import digest_likelihoods, read_stream, whole
from prony.plugins.drivers.openai.prefix_cache import ServerCache
from prony.plugins.drivers.prompt_requests import Call, build_requests, counting, require_prompts
from prony.ports.driver import CacheCounts, Digest, Endpoint, Prepared, Prompt, Reply, Request, Wants


class OpenAiOptions(Noun):
    """What every driver of this API takes."""

    model: str | None = Field(
        default=None, min_length=1, description="the model's name; default: the server's only model"
    )
    api_key_env: str | None = Field(
        default=None, min_length=1, description="NAME of the environment variable with the key"
    )
    headers: dict[str, str] = Field(default={}, description="extra headers of every request")
    http: HttpVersion = Field(default=1, description=HTTP_HELP)
    extra: dict[str, Any] = Field(default={}, description="extra fields of every request's body")


class TextOptions(OpenAiOptions):
    """What the drivers that generate text take."""

    stream: bool = Field(default=True, description="request a streamed answer; false: a single reply")
    usage: bool = Field(default=True, description="ask the server to report token counts at the end of a stream")
    temperature: float | None = Field(default=None, ge=0, description="sampling temperature; default: the server's own")
    max_tokens_field: Literal["max_tokens", "max_completion_tokens"] = Field(
        default="max_tokens", description="name of the field that limits the answer's length"
    )
    extensions: bool = Field(
        default=True,
        description="if a task needs answers of an exact length, send ignore_eos and min_tokens; "
        "false for a server that rejects fields unknown to OpenAI",
    )
    tokenizer: str | None = Field(
        default=None,
        min_length=1,
        description="a tokenizer.json to count tokens if the server does not",
        json_schema_extra={"path": True},
    )


def headers_of(options: OpenAiOptions, endpoint: Endpoint) -> dict[str, str]:
    return {"Content-Type": "application/json", **whose(endpoint, options.api_key_env), **options.headers}


def under_v1(endpoint: Endpoint, path: str) -> str:
    """Return the path with `/v1` before it, unless the endpoint's own address ends in a version."""
    last = endpoint.base.rstrip("/").rpartition("/")[2]
    return path if last[:1] == "v" and last[1:2].isdigit() else f"/v1{path}"


def model_of(options: OpenAiOptions, endpoint: Endpoint) -> str:
    """Return the model that is named, or ask the server which one it has."""
    if options.model is not None:
        return options.model
    answer = ask_json(endpoint, under_v1(endpoint, "/models"), headers_of(options, endpoint), options.http)
    listed = answer.get("data") if isinstance(answer, dict) else None
    known = [one.get("id") for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
    return only_model([name for name in known if isinstance(name, str)], "the server")


@dataclass(frozen=True)
class TextApi:
    """One way to ask for text: where the prompt goes in, and where the text comes out.

    `content` returns the fields that carry the prompt, `says` what one choice of a chunk, or of a whole reply, says;
    `text_key` is the name of the text in chunks.
    """

    path: str
    operation: str
    text_key: str
    content: Callable[[Prompt], dict[str, Any]]
    says: Callable[[dict[str, Any]], Said]


class OpenAiText:
    """What the drivers that generate text have in common."""

    schemes: ClassVar[tuple[str, ...]] = ("http", "https", "unix")
    asks: ClassVar[bool] = True
    makes: ClassVar[bool] = False
    Options: ClassVar[type[Any]] = TextOptions
    name: ClassVar[str]

    def __init__(self, api: TextApi) -> None:
        self._api = api
        self._count: Counts | None = None
        self._cache: ServerCache | None = None

    def prepare(self, wants: Wants) -> Prepared:
        options: TextOptions = wants.options
        self._cache = ServerCache(wants.endpoint, headers_of(options, wants.endpoint))
        self._count = counting(options.tokenizer, wants)
        require_prompts(wants.prompts, self.name)
        call = Call(
            under_v1(wants.endpoint, self._api.path),
            headers_of(options, wants.endpoint),
            model_of(options, wants.endpoint),
            self._api.operation,
            streamed=options.stream and not any(prompt.window for prompt in wants.prompts),
            version=options.http,
        )
        return build_requests(wants, call, lambda prompt: self._body(prompt, call.model, options))

    def digest(self, request: Request, reply: Reply) -> Digest:
        if reply.status >= 400:
            return digest_refusal(reply)
        about = request.about if isinstance(request.about, Asked) else Asked()
        if about.text_bytes:
            return digest_likelihoods(reply.body, about.text_bytes)
        says = self._api.says
        read = read_stream(reply.body, says, self._api.text_key) if about.streamed else whole(reply.body, says)
        return read.digest(request, reply, self._count)

    def finish(self) -> None:
        """Nothing was made at the endpoint."""

    def reset_cache(self) -> str:
        if self._cache is None:
            raise MeasurementError("the load was not prepared")
        return self._cache.reset()

    def read_cache_counts(self) -> CacheCounts | None:
        return None if self._cache is None else self._cache.read_counts()

    def _body(self, prompt: Prompt, model: str, options: TextOptions) -> dict[str, Any]:
        body: dict[str, Any] = {"model": model, **self._api.content(prompt)}
        if prompt.window:
            return body | {"max_tokens": 0, "echo": True, "logprobs": 1} | options.extra
        if prompt.max_tokens is not None:
            body[options.max_tokens_field] = prompt.max_tokens
            if prompt.exact_tokens and options.extensions:
                body |= {"ignore_eos": True, "min_tokens": prompt.max_tokens}
        if options.temperature is not None:
            body["temperature"] = options.temperature
        if options.stream:
            body["stream"] = True
            if options.usage:
                body["stream_options"] = {"include_usage": True}
        return body | options.extra
