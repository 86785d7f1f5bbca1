"""Download a URL to a file with resume, retries and limits."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from prony.errors import InputError, NotFoundError, TransportError
from prony.model.loopback import is_loopback
from prony.plugins.models.addresses import Address, is_own, private_host_error, resolve_host
from prony.ports.models import policy_error

if TYPE_CHECKING:
    import httpx

# Tries in a row that bring nothing new before giving up.
ATTEMPTS = 4
_REDIRECTS = 5
_FIRST_PAUSE_S = 0.5
# Answers that may be better next time.
_PASSING_STATUS = (408, 425, 429, 500, 502, 503, 504)
_GONE_STATUS = (404, 410)


class BrokenError(Exception):
    """A transfer ended before its time; trying again may help."""


@dataclass(frozen=True)
class TransferLimits:
    """`max_bytes` is for this file; `done` reports how much of it lies on disk and how much there is.

    `is_checked` says that a checksum will tell whether all of it came, should the server not. `allowed_bytes` is what
    the policy allows of it. `may_reach` says which addresses may be connected to; None: whatever the system chooses.
    `may_be_plain`: it may come by plain http; `is_plain_within`: it may where it comes out of a private network.
    `headers` are those that a request to an address needs.
    """

    max_bytes: int
    timeout_s: float
    done: Callable[[int, int | None], None]
    pause: Callable[[float], None] = time.sleep
    is_checked: bool = False
    allowed_bytes: int | None = None
    may_reach: Callable[[Address], bool] | None = None
    may_be_plain: bool = False
    is_plain_within: bool = False
    headers: Callable[[str], Mapping[str, str]] = lambda _: {}


@dataclass(frozen=True)
class Validators:
    """What names this very version of the content."""

    etag: str = ""
    modified: str = ""

    @property
    def strong(self) -> str:
        """What a server may continue a transfer by; a weak etag only promises the same meaning, not the same bytes."""
        return self.etag if self.etag and not self.etag.startswith("W/") else self.modified

    def unless_same(self) -> dict[str, str]:
        """Return the headers that ask for the content only if it is another than this."""
        headers = {"If-None-Match": self.etag, "If-Modified-Since": self.modified}
        return {name: value for name, value in headers.items() if value}


def check_download_url(url: str, *, may_be_plain: bool = False) -> None:
    """Refuse all but https, and http to this very machine or where it may be plain."""
    import httpx

    try:
        parsed = httpx.URL(url)
    except (httpx.InvalidURL, ValueError) as exc:
        raise InputError(f"{url!r} is not a URL: {exc}", hint="write https://host/path/model.onnx") from exc
    if parsed.scheme == "https" and parsed.host:
        return
    if parsed.scheme == "http" and parsed.host and (may_be_plain or is_loopback(parsed.host)):
        return
    raise InputError(
        f"{url} was not fetched: models need https, which protects them against changes on the way",
        hint="use https://; for a server in a private network, the owner of this machine can allow plain http: "
        "`prony agent start --model-private plain`, or PRONY_MODEL_PRIVATE=plain",
        code="insecure_url",
    )


def show_url(url: str) -> str:
    """Return a URL as it may be shown: without who asks."""
    return re.sub(r"//[^/@]*@", "//", url)


def download(url: str, part: Path, limits: TransferLimits, known: Validators | None = None) -> Validators | None:
    """Bring the content of `url` to `part`, going on from what an earlier try left there.

    With `known`, return None when the content is still the one that bears these validators.
    """
    return persistently(_attempt, url, part, limits, known)


# A URL, where its bytes go, where it is noted which version they are of, the limits and what is known of it.
Attempt = Callable[[str, Path, Path, TransferLimits, Validators], Validators | None]


def persistently(
    attempt: Attempt, url: str, part: Path, limits: TransferLimits, known: Validators | None
) -> Validators | None:
    """Try again what breaks, until several tries in a row bring nothing new."""
    note = part.with_name(f"{part.name}.json")
    failures, best = 0, -1
    while True:
        try:
            found = attempt(url, part, note, limits, known or Validators())
        except BrokenError as exc:
            arrived = part.stat().st_size if part.exists() else 0
            failures = 1 if arrived > best else failures + 1
            best = max(best, arrived)
            if failures >= ATTEMPTS:
                raise TransportError(
                    f"{show_url(url)} could not be fetched in {failures} tries: {exc}",
                    hint="check the network; the next run continues where this one stopped",
                    code="broken_transfer",
                ) from exc
            limits.pause(_FIRST_PAUSE_S * 2 ** (failures - 1))
        else:
            note.unlink(missing_ok=True)
            return found


def _attempt(url: str, part: Path, note: Path, limits: TransferLimits, known: Validators) -> Validators | None:
    """Make one request and write what it brings."""
    begun = read_note(note)
    offset = part.stat().st_size if part.exists() and begun.strong else 0
    headers = {"Range": f"bytes={offset}-", "If-Range": begun.strong} if offset else known.unless_same()
    with _answer(url, headers | {"Accept-Encoding": "identity"}, limits) as response:
        if response.status_code == 304 and not offset:
            return None
        if response.status_code == 416:
            part.unlink(missing_ok=True)
            raise BrokenError("the file changed since the first part was fetched")
        _check_status(url, response)
        offset = _begin(response, offset)
        found = Validators(response.headers.get("ETag", ""), response.headers.get("Last-Modified", ""))
        write_note(note, found)
        _write(url, response, part, offset, limits)
        return found


def write_note(note: Path, found: Validators) -> None:
    """Keep which version a part is of."""
    note.write_text(json.dumps({"etag": found.etag, "modified": found.modified}))


def read_note(note: Path) -> Validators:
    """Return which version a part is of; an empty one where nobody noted it."""
    try:
        return Validators(**json.loads(note.read_text()))
    except (FileNotFoundError, ValueError, TypeError):
        return Validators()


@contextmanager
def _answer(url: str, headers: dict[str, str], limits: TransferLimits) -> Iterator[httpx.Response]:
    """Send a request, follow redirects by the same rules as the first URL, and translate what goes wrong."""
    import httpx

    try:
        for _ in range(_REDIRECTS + 1):
            check_download_url(url, may_be_plain=limits.may_be_plain or limits.is_plain_within)
            asked = httpx.URL(url)
            with _send(asked, headers | dict(limits.headers(url)), limits) as response:
                if not response.has_redirect_location:
                    yield response
                    return
                url = str(asked.join(response.headers["Location"]))
    except httpx.TimeoutException as exc:
        raise BrokenError(f"no answer within {limits.timeout_s:g} s") from exc
    except httpx.ConnectError as exc:
        raise BrokenError(f"no connection to {httpx.URL(url).host}: {exc}") from exc
    except (httpx.TransportError, httpx.InvalidURL) as exc:
        raise BrokenError(str(exc) or type(exc).__name__) from exc
    raise TransportError(f"{url} has more than {_REDIRECTS} redirects", hint="use the final URL", code="redirects")


@contextmanager
def _send(url: httpx.URL, headers: dict[str, str], limits: TransferLimits) -> Iterator[httpx.Response]:
    """Ask one server, without following where it sends us."""
    import httpx

    is_tls = url.scheme == "https"  # reading the certificates of the world takes longer than most requests
    is_within = url.scheme == "http" and limits.is_plain_within and not limits.may_be_plain
    if limits.may_reach is None and not is_within:
        # A proxy has no business between this machine and itself.
        with (
            httpx.Client(verify=is_tls, timeout=limits.timeout_s, trust_env=not is_loopback(url.host)) as client,
            client.stream("GET", url, headers=headers) as response,
        ):
            yield response
        return
    addresses = _private_addresses(url) if is_within else _reachable(url, limits.may_reach or (lambda _: True))
    # No proxy: it would look the name up again, and go where that leads. Certificates of the owner's choice still hold.
    verify = httpx.create_ssl_context() if is_tls else False
    with httpx.Client(timeout=limits.timeout_s, trust_env=False, verify=verify) as client:
        response = _first_answer(client, url, headers, addresses)
        try:
            yield response
        finally:
            response.close()


def _reachable(url: httpx.URL, may_reach: Callable[[Address], bool]) -> tuple[Address, ...]:
    """Return the addresses of a URL's host, all of which may be connected to."""
    addresses = _addresses(url)
    if not all(map(may_reach, addresses)):
        raise private_host_error(url.host)
    return addresses


def _private_addresses(url: httpx.URL) -> tuple[Address, ...]:
    """Return the addresses of a host that is asked by plain http, all of them in a private network: on the way to
    any other one, somebody could change what comes."""
    addresses = _addresses(url)
    if not all(map(is_own, addresses)):
        raise InputError(
            f"plain http to {url.host} is refused: it is not in a private network, so data could be changed on the way",
            hint="use https://; plain http is for addresses such as 10.0.0.5 or 192.168.0.5",
            code="insecure_url",
        )
    return addresses


def _addresses(url: httpx.URL) -> tuple[Address, ...]:
    try:
        return resolve_host(url.raw_host.decode("ascii"), url.port or (443 if url.scheme == "https" else 80))
    except (OSError, ValueError) as exc:  # ValueError: a name that cannot be one, or an address of an unknown form
        raise BrokenError(f"no connection to {url.host}: {exc}") from exc


def _first_answer(
    client: httpx.Client, url: httpx.URL, headers: dict[str, str], addresses: tuple[Address, ...]
) -> httpx.Response:
    """Ask at the very addresses that were checked, so that the name cannot mean another one by now."""
    import httpx

    extensions = {"sni_hostname": url.raw_host.decode("ascii")}  # the certificate is still held against the name
    named = headers | {"Host": url.netloc.decode("ascii")}
    failure: httpx.TransportError = httpx.ConnectError("the host has no address")
    for address in addresses:
        request = client.build_request("GET", url.copy_with(host=str(address)), headers=named, extensions=extensions)
        try:
            return client.send(request, stream=True)
        except (httpx.ConnectError, httpx.ConnectTimeout) as exc:  # a machine without IPv6 is still told of it
            failure = exc
    raise failure


def _check_status(url: str, response: httpx.Response) -> None:
    status = response.status_code
    if status in (200, 206):
        if response.headers.get("Content-Encoding", "identity") != "identity":
            raise TransportError(f"{url} was sent compressed, which was not requested", hint="use another mirror")
        return
    if status in _GONE_STATUS:
        raise NotFoundError(f"{url} does not exist ({status})", hint="check the URL in a browser", code="unknown_model")
    if status in (401, 403):
        raise InputError(
            f"{url} needs an account ({status})",
            hint="download it yourself and use its path",
            code="no_access",
        )
    if status in _PASSING_STATUS:
        raise BrokenError(f"the server answered {status}")
    raise TransportError(f"{url} answered {status}", hint="check the URL in a browser", code="bad_status")


def _begin(response: httpx.Response, offset: int) -> int:
    """Return where this answer's bytes belong: a server may ignore the range and send all."""
    if response.status_code == 200:
        return 0
    match = re.match(r"bytes (\d+)-", response.headers.get("Content-Range", ""))
    if match is None or int(match[1]) != offset:
        raise BrokenError("the server sent another range than requested")
    return offset


def _write(url: str, response: httpx.Response, part: Path, offset: int, limits: TransferLimits) -> None:
    length = response.headers.get("Content-Length", "")
    total = offset + int(length) if length.isdigit() else None
    if total is None and not limits.is_checked and "Transfer-Encoding" not in response.headers:
        raise TransportError(
            f"{url} does not report its size, so an incomplete download could not be detected",
            hint="set its `checksum` in the recipe",
            code="unknown_length",
        )
    check_size(url, total or 0, limits)
    with part.open("r+b" if offset else "wb") as stream:
        stream.seek(offset)
        stream.truncate()
        # As they come, not gathered into larger blocks: what waits in a buffer is lost when the transfer breaks.
        for block in response.iter_raw():
            offset += len(block)
            check_size(url, offset, limits)
            stream.write(block)
            limits.done(offset, total)
    if total is not None and offset != total:
        raise BrokenError(f"{offset} of {total} bytes arrived")


def check_size(url: str, size: int, limits: TransferLimits) -> None:
    """Refuse what is larger than is allowed, or than the limit."""
    if limits.allowed_bytes is not None and size > limits.allowed_bytes:
        raise policy_error(f"{url} is larger than allowed on this machine", "--model-max-bytes")
    if size > limits.max_bytes:
        raise InputError(
            f"{url} is larger than the limit of {limits.max_bytes} bytes",
            hint="download it yourself and use its path",
            code="too_big",
        )
