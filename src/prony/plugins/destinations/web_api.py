"""Ask another program's HTTP API, and tell trouble that may pass from a refusal that stays."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Self
from urllib.parse import unquote, urlsplit, urlunsplit

import httpx

from prony.errors import InputError, TransportError
from prony.model.loopback import is_loopback_url

_TIMEOUT_S = 60.0
_LONGEST_QUOTE = 300
# The same request may succeed later: too much to do, no way through, not allowed yet, on its way up or down.
PASSING_STATUS = frozenset({401, 403, 408, 413, 425, 429, 500, 502, 503, 504})


class WebApi:
    """Open it as a block. A user alone before the host is an API key of the scheme `key_scheme`."""

    def __init__(self, url: str, title: str, *, key_scheme: str) -> None:
        parts = urlsplit(check_destination_url(url, title))
        self.title = title
        self.base = _without_user(url).rstrip("/")
        user, password = unquote(parts.username or ""), parts.password
        self._client = httpx.Client(
            auth=None if password is None else (user, unquote(password)),
            headers={"Authorization": f"{key_scheme} {user}"} if user and password is None else {},
            # Reading the certificates of the world takes longer than most requests.
            verify=not self.base.startswith("http:"),
            timeout=_TIMEOUT_S,
            trust_env=not is_loopback_url(self.base),
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._client.close()

    def ask(self, method: str, path: str, *, expected: frozenset[int] = frozenset(), **rest: Any) -> httpx.Response:
        """Return a good answer, or one with a status that was expected."""
        try:
            response = self._client.request(method, f"{self.base}/{path}", **rest)
        except httpx.HTTPError as exc:
            why = str(exc) or type(exc).__name__
            raise TransportError(
                f"{self.title} at {self.base} does not answer: {why}",
                hint="check that it runs, and that the address is right",
            ) from exc
        if response.is_success or response.status_code in expected:
            return response
        said = f"{self.title} at {self.base} answered {response.status_code}: {response.text[:_LONGEST_QUOTE]}"
        if response.status_code in PASSING_STATUS:
            raise TransportError(said, hint="check its log, and the user and password in the address")
        raise InputError(said, hint="check the address and the version of the program there")


def check_destination_url(url: str, title: str) -> str:
    """Return a URL that has all that it needs.

    Raises:
        InputError: It has no host, or is of another scheme.
    """
    parts = urlsplit(url)
    if parts.scheme in ("http", "https") and parts.hostname:
        return url
    hint = "an address looks like NAME+http://HOST:PORT"
    raise InputError(f"{_without_user(url)!r} is not an address of {title}", hint=hint)


def _without_user(url: str) -> str:
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment=""))
