"""Blocking HTTP session for what drivers do before and after a load."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from prony.errors import SutError, TransportError
from prony.load.http import target_of
from prony.plugins.drivers.http.probe import endpoint_url, transport_to
from prony.plugins.drivers.sockets import show_endpoint
from prony.ports.driver import Endpoint

if TYPE_CHECKING:
    import httpx

_TIMEOUT_S = 120.0


class HttpSession:
    """Connections that are kept; threads may share it. Leaving the block closes them. No proxy is asked."""

    def __init__(self, endpoint: Endpoint, headers: Mapping[str, str] | None = None) -> None:
        import httpx

        self._endpoint = endpoint
        self._client = httpx.Client(
            base_url=endpoint_url(endpoint),
            transport=transport_to(endpoint),
            trust_env=False,
            timeout=_TIMEOUT_S,
            headers=headers,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._client.close()

    def ask(self, method: str, path: str, content: bytes = b"", *, good: tuple[int, ...] = ()) -> httpx.Response:
        """Ask once; a SutError tells what the server said where that is neither below 400 nor among the good."""
        import httpx

        try:
            answer = self._client.request(method, target_of(self._endpoint, path), content=content or None)
        except httpx.HTTPError as exc:
            raise TransportError(
                f"{show_endpoint(self._endpoint)} cannot be reached: {exc}",
                hint="check that the server runs and that the address is right",
            ) from exc
        if answer.status_code >= 400 and answer.status_code not in good:
            said = " ".join(answer.text.split())[:300]
            raise SutError(
                f"{show_endpoint(self._endpoint)} answered {answer.status_code} to {method} {_bare(path)}: {said}",
                hint="check the address, the access rights, and the server's log",
            )
        return answer

    def ask_json(self, method: str, path: str, content: bytes = b"", *, good: tuple[int, ...] = ()) -> Any:
        """Ask once, and return the document that came."""
        answer = self.ask(method, path, content, good=good)
        try:
            return answer.json()
        except ValueError as exc:
            raise SutError(
                f"{show_endpoint(self._endpoint)} did not answer {method} {_bare(path)} with JSON",
                hint="check that the address is that of a server of this kind",
            ) from exc


def _bare(path: str) -> str:
    """Return a path without its query, which may hold who asks."""
    return path.partition("?")[0]
