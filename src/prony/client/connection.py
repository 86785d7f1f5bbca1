"""HTTP connection to a server: time-outs, retries of safe requests, complete or no downloads, and requests of nouns."""

from __future__ import annotations

import hmac
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from prony.client import wire
from prony.errors import PronyError, StoreError, TransportError
from prony.model.base import Noun
from prony.model.loopback import is_loopback_url
from prony.store.owner_token import CHALLENGE, PROOF, prove

if TYPE_CHECKING:
    import httpx

N = TypeVar("N", bound=Noun)
T = TypeVar("T")
Asked = str | int | float | bool | None
Content = bytes | Iterable[bytes]

_CONNECT_S = 10.0
_TOKEN_HINT = (
    "set PRONY_TOKEN, or put the token into a file for --token-file; `prony tokens add` on the server makes one"
)


@dataclass(frozen=True)
class ApiCall:
    """One request. `wait_s` is how long the server may hold it; `is_safe`: doing it twice is doing it once."""

    method: str
    parts: tuple[str, ...]
    query: Mapping[str, Asked] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    content: Content | None = None
    wait_s: float = 0.0
    is_safe: bool = False
    # Answers that are no error although their status says so.
    expected: frozenset[int] = frozenset()


class ApiConnection:
    """Speaks to one server. Threads may share it."""

    def __init__(
        self,
        url: str,
        token: str | None = None,
        *,
        timeout_s: float = 30.0,
        attempts: int = 4,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.base = wire.base_of(url)
        self.sleep = sleep
        self._headers = wire.headers(token)
        self._timeout_s = timeout_s
        self._attempts = attempts

    def close(self) -> None:
        """Close what is open; a request opens it again."""
        if "_http" in vars(self):
            self._http.close()

    @cached_property
    def _http(self) -> httpx.Client:
        import httpx

        from prony import __version__

        return httpx.Client(
            headers={"User-Agent": f"prony/{__version__}"} | self._headers,
            # Reading the certificates of the world takes longer than most requests.
            verify=not self.base.startswith("http:"),
            # A proxy does not reach this machine's own loopback.
            trust_env=not is_loopback_url(self.base),
        )

    def send(self, call: ApiCall) -> httpx.Response:
        """Return the whole answer, or raise the error that it stands for."""
        return self._try(call, _whole)

    def read(self, noun: type[N], call: ApiCall) -> N:
        """Return the answer as a noun, or raise the error that it stands for."""
        return wire.read_answer(noun, self.send(call).content, self.base)

    def knows(self, secret: str, *, nonce: str) -> bool:
        """Does whoever answers at this address have the secret? It is not sent: they prove it."""

        def is_proven(response: httpx.Response) -> bool:
            address, port = response.extensions["network_stream"].get_extra_info("server_addr")[:2]
            said = response.headers.get(PROOF, "")
            return hmac.compare_digest(said.encode(), prove(secret, nonce, address, port).encode())

        asked = ApiCall("GET", ("health",), headers={CHALLENGE: nonce}, is_safe=True, expected=frozenset({503}))
        return self._try(asked, is_proven)

    def download(self, call: ApiCall, to: Path) -> Path:
        """Write the answer's body to a file that appears when it is whole; begin again when the connection breaks.

        Raises:
            StoreError: The file cannot be written.
        """
        fresh = to.with_name(f".{to.name}.{uuid.uuid4().hex}.part")

        def write(response: httpx.Response) -> None:
            with fresh.open("wb") as file:
                for piece in response.iter_bytes():
                    file.write(piece)

        try:
            to.parent.mkdir(parents=True, exist_ok=True)
            self._try(call, write)
            fresh.replace(to)
        except OSError as exc:
            raise StoreError(
                f"cannot write {to}: {exc.strerror}", hint="check the free space and the permissions there"
            ) from exc
        finally:
            with suppress(OSError):
                fresh.unlink()
        return to

    def stream(self, call: ApiCall, *, silence_s: float) -> Iterator[bytes]:
        """Yield the answer's body as it arrives, until it ends or is silent for too long."""
        import httpx

        try:
            with self._open(call, silence_s) as response:
                if not response.is_success:
                    raise self._read_refusal(response)
                yield from response.iter_bytes()
        except httpx.RequestError as exc:
            raise self._lost(exc) from exc

    def _try(self, call: ApiCall, consume: Callable[[httpx.Response], T]) -> T:
        """Hand a good answer to `consume`; what is safe to repeat is tried a few times."""
        import httpx

        pauses = wire.delays()
        for left in reversed(range(self._attempts)):
            try:
                with self._open(call, self._timeout_s + call.wait_s) as response:
                    if response.is_success or response.status_code in call.expected:
                        return consume(response)
                    if not (left and call.is_safe and response.status_code in wire.PASSING):
                        raise self._read_refusal(response)
            except httpx.RequestError as exc:
                # Where no connection came about, nothing was done: anything may be tried again.
                unheard = isinstance(exc, httpx.ConnectError | httpx.ConnectTimeout)
                if not (left and (call.is_safe or unheard)):
                    raise self._lost(exc) from exc
            self.sleep(next(pauses))
        raise AssertionError  # the last round returns or raises

    @contextmanager
    def _open(self, call: ApiCall, silence_s: float) -> Iterator[httpx.Response]:
        import httpx

        request = self._http.build_request(
            call.method,
            wire.endpoint(self.base, *call.parts),
            params={key: _text(value) for key, value in call.query.items() if value is not None},
            headers=dict(call.headers),
            content=call.content,
            timeout=httpx.Timeout(silence_s, connect=_CONNECT_S),
        )
        response = self._http.send(request, stream=True)
        try:
            yield response
        finally:
            response.close()

    def _read_refusal(self, response: httpx.Response) -> PronyError:
        body, location = response.read(), response.headers.get("Location", "")
        hint = "" if self._headers else _TOKEN_HINT
        return wire.error_of(response.status_code, body, self.base, location=location, token_hint=hint)

    def _lost(self, error: httpx.RequestError) -> TransportError:
        import httpx

        if isinstance(error, httpx.TimeoutException):
            return wire.unreachable(self.base, "it does not answer in time")
        return wire.unreachable(self.base, str(error))


def _whole(response: httpx.Response) -> httpx.Response:
    response.read()
    return response


def _text(value: Asked) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


class ApiRequests:
    """Makes requests of nouns, over one connection; each part of the client has one."""

    def __init__(self, connection: ApiConnection) -> None:
        self.connection = connection

    def get(self, noun: type[N], *parts: str, **query: Asked) -> N:
        """Ask for a noun; safe to repeat, so it is repeated where the connection breaks."""
        return self.connection.read(noun, ApiCall("GET", parts, query, is_safe=True))

    def create(self, noun: type[N], *parts: str, body: Noun | None = None, key: str | None = None) -> N:
        """Make something once, however often it must be asked for: the server knows the key again."""
        named = wire.headers(None, key=key or uuid.uuid4().hex)
        call = ApiCall("POST", parts, headers={**named, **_type(body)}, content=_content(body), is_safe=True)
        return self.connection.read(noun, call)

    def send(self, noun: type[N], method: str, *parts: str, body: Noun | None = None, wait_s: float = 0.0) -> N:
        """Send a noun, or nothing, and read the noun that is the answer; it is not repeated."""
        call = ApiCall(method, parts, headers=_type(body), content=_content(body), wait_s=wait_s)
        return self.connection.read(noun, call)

    def do(self, method: str, *parts: str, **query: Asked) -> None:
        """Ask for something that has no answer but that it was done."""
        self.connection.send(ApiCall(method, parts, query))

    def fetch(self, to: Path, *parts: str, **query: Asked) -> Path:
        """Write the body of an answer to the file `to`, whole or not at all."""
        return self.connection.download(ApiCall("GET", parts, query, is_safe=True), to)


def _content(body: Noun | None) -> bytes | None:
    return None if body is None else body.model_dump_json().encode()


def _type(body: Noun | None) -> Mapping[str, str]:
    return {} if body is None else {"Content-Type": "application/json"}
