"""Driver for Ollama's `/api/chat` and `/api/generate`."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import Field

from prony.model.base import Noun
from prony.plugins.drivers.answer import Answer, Counts, Said, complaint, digest_refusal, parse_object, read_count
from prony.plugins.drivers.http.probe import ask_json, only_model, whose
from prony.plugins.drivers.openai.chunks import said_in
from prony.plugins.drivers.prompt_requests import Call, build_requests, counting, require_prompts
from prony.ports.driver import Cause, Digest, Endpoint, Prepared, Prompt, Reply, Request, Wants
from prony.ports.llm import join_messages


class OllamaOptions(Noun):
    """What is asked of an Ollama server."""

    api: Literal["chat", "generate"] = Field(default="chat", description="which of its two APIs to use")
    model: str | None = Field(
        default=None, min_length=1, description="the model's name; default: the server's only model"
    )
    stream: bool = Field(default=True, description="request a streamed answer; false: a single reply")
    think: bool | None = Field(default=None, description="turn reasoning on or off; default: the model's own")
    keep_alive: str | None = Field(
        default=None, min_length=1, description="how long the model stays in memory; default: the server's own"
    )
    parameters: dict[str, Any] = Field(
        default={}, description="options of the model: num_ctx, temperature, ...; passed on unchanged"
    )
    api_key_env: str | None = Field(
        default=None, min_length=1, description="NAME of the environment variable with the key"
    )
    headers: dict[str, str] = Field(default={}, description="extra headers of every request")
    tokenizer: str | None = Field(
        default=None,
        min_length=1,
        description="a tokenizer.json to count tokens if the server does not",
        json_schema_extra={"path": True},
    )


class Ollama:
    """Ollama's own API: lines of JSON, the last of which says `done`."""

    name: ClassVar[str] = "ollama"
    schemes: ClassVar[tuple[str, ...]] = ("http", "https", "unix")
    asks: ClassVar[bool] = True
    makes: ClassVar[bool] = False
    Options: ClassVar[type[Any]] = OllamaOptions

    def __init__(self) -> None:
        self._count: Counts | None = None

    def prepare(self, wants: Wants) -> Prepared:
        options: OllamaOptions = wants.options
        self._count = counting(options.tokenizer, wants)
        require_prompts(wants.prompts, self.name)
        who = whose(wants.endpoint, options.api_key_env)
        headers = {"Content-Type": "application/json", **who, **options.headers}
        model = options.model or _only_model(wants.endpoint, headers)
        call = Call(f"/api/{options.api}", headers, model, options.api, streamed=options.stream)
        return build_requests(wants, call, lambda prompt: _body(prompt, model, options))

    def digest(self, request: Request, reply: Reply) -> Digest:
        if reply.status >= 400:
            return digest_refusal(reply)
        return _read(reply.body).digest(request, reply, self._count)

    def finish(self) -> None:
        """Nothing was made at the endpoint."""


def _only_model(endpoint: Endpoint, headers: dict[str, str]) -> str:
    answer = ask_json(endpoint, "/api/tags", headers)
    listed = answer.get("models") if isinstance(answer, dict) else None
    known = [one.get("name") for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
    return only_model([name for name in known if isinstance(name, str)], "the server")


def _body(prompt: Prompt, model: str, options: OllamaOptions) -> dict[str, Any]:
    body: dict[str, Any] = {"model": model, "stream": options.stream}
    if options.api == "chat":
        body["messages"] = [dict(message) for message in prompt.messages]
    else:
        body["prompt"] = join_messages(prompt.messages)
    # Ollama has no way to go on past the end of an answer: a limit is all that can be asked for.
    limit = {} if prompt.max_tokens is None else {"num_predict": prompt.max_tokens}
    if limit or options.parameters:
        body["options"] = limit | options.parameters
    if options.think is not None:
        body["think"] = options.think
    if options.keep_alive is not None:
        body["keep_alive"] = options.keep_alive
    return body


def _read(body: bytes) -> Answer:
    """Read lines of JSON up to the one that says `done`; an answer in one piece is one such line."""
    answer = Answer()
    end = 0
    lines = body.split(b"\n")
    for number, line in enumerate(lines, start=1):
        end += len(line) + 1
        if not line.strip():
            continue
        value = parse_object(line)
        if value is not None:
            _take(answer, value, min(end, len(body)))
        elif number < len(lines):
            answer.fail(Cause.MALFORMED, f"a line is not a JSON object: {line[:100].decode('utf-8', 'replace')}")
        elif not line.lstrip().startswith(b"{"):
            answer.fail(Cause.MALFORMED, "the reply is not a line of JSON")
        if answer.is_whole or answer.cause is not Cause.OK:
            break
    return answer


def _take(answer: Answer, value: dict[str, Any], end: int) -> None:
    error = complaint(value)
    if error is not None:
        answer.fail(Cause.STATUS, error)
        return
    answer.hear(_read_line(value), end)
    if value.get("done") is True:
        answer.is_whole = True
        answer.finish = str(value.get("done_reason") or "")
        answer.input_tokens = read_count(value.get("prompt_eval_count"))
        answer.output_tokens = read_count(value.get("eval_count"))


def _read_line(value: dict[str, Any]) -> Said:
    """Return what a line says: `/api/chat` has a message, `/api/generate` the text itself."""
    if "message" in value:
        return said_in(value["message"])
    return said_in({"content": value.get("response"), "thinking": value.get("thinking")})
