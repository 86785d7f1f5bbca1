"""Send notifications by signed webhook or through apprise.

Addresses hold secrets: what is said of a failure never repeats one.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import re
import time
from dataclasses import dataclass
from threading import Lock
from typing import Any
from urllib.parse import unquote, urlsplit

from prony import __version__
from prony.errors import CapacityError, InputError
from prony.model.alarm import Message, Severity
from prony.model.loopback import is_loopback_url

WEBHOOK = ("webhook+https", "webhook+http")
DELIVERY = "Prony-Delivery"
TIMESTAMP = "Prony-Timestamp"
SIGNATURE = "Prony-Signature"
TIMEOUT_S = 10.0
# Everything else that is no success may be better the next time.
_LATER = frozenset({408, 425, 429})
_HINT = "write webhook+https://HOST/PATH, or an address of apprise such as slack://..., mailto://... or json://HOST"
_TALKATIVE = ("httpx", "httpcore", "requests", "urllib3")  # they log whole addresses
_one_at_a_time = Lock()  # what apprise says of a failure it says to one log for all


@dataclass(frozen=True)
class Notification:
    """A message on its way: `id` is the same for every try."""

    id: str
    message: Message
    address: str
    secret: str


@dataclass(frozen=True)
class DeliveryOutcome:
    """`is_final`: to try again would be of no use."""

    ok: bool
    said: str
    is_final: bool = False


def mask_address(address: str) -> str:
    """Return an address as it may be shown: of a webhook its host, of any other only what kind it is."""
    scheme = address.partition("://")[0].lower()
    if scheme not in WEBHOOK:
        return f"{scheme}://***"
    parts = urlsplit(address)
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    port = f":{parts.port}" if parts.port else ""
    return f"{scheme}://{host}{port}{'/***' if parts.path.strip('/') or parts.query else ''}"


def check_address(address: str) -> None:
    """Refuse an address that nothing could be sent to."""
    scheme = address.partition("://")[0].lower()
    if scheme in WEBHOOK:
        try:
            parts = urlsplit(address)
            good = bool(parts.hostname) and parts.port != 0 and not parts.username
        except ValueError:
            good = False
        if not good:
            raise InputError(
                f"a {scheme} address needs a host, and may not have a user", hint=_HINT, code="bad_address"
            )
        return
    if scheme in ("http", "https"):
        raise InputError(
            f"{scheme}:// is not an address for alarms", hint=f"write webhook+{scheme}://", code="bad_address"
        )
    if not _is_known(address):
        raise InputError(f"unknown or incomplete {scheme}:// address", hint=_HINT, code="bad_address")


def _is_known(address: str) -> bool:
    try:
        return _apprise().Apprise.instantiate(address) is not None
    except CapacityError:
        raise
    except Exception:  # noqa: BLE001 - its hundred services fail at odd addresses in a hundred ways
        return False


def signature(secret: str, timestamp: str, body: bytes) -> str:
    """Return what proves that a message is ours, and how old it is."""
    return "v1=" + hmac.new(secret.encode(), timestamp.encode() + b"." + body, hashlib.sha256).hexdigest()


def send(notification: Notification) -> DeliveryOutcome:
    """Try once. It blocks, for as long as the other side takes and no longer than a while."""
    for name in _TALKATIVE:
        logging.getLogger(name).setLevel(logging.CRITICAL)
    if notification.address.partition("://")[0].lower() in WEBHOOK:
        return _post(notification)
    return _notify(notification)


def _post(notification: Notification) -> DeliveryOutcome:
    import httpx

    url = notification.address.partition("+")[2]
    body, now = notification.message.model_dump_json().encode(), str(int(time.time()))
    headers = {
        "Content-Type": "application/json",
        "User-Agent": f"prony/{__version__}",
        DELIVERY: notification.id,
        TIMESTAMP: now,
        SIGNATURE: signature(notification.secret, now, body),
    }
    try:
        with (
            httpx.Client(
                # Reading the certificates of the world takes longer than most requests.
                verify=not url.startswith("http:"),
                timeout=TIMEOUT_S,
                follow_redirects=False,
                trust_env=not is_loopback_url(url),
            ) as client,
            client.stream("POST", url, content=body, headers=headers) as response,  # whatever it says is not read
        ):
            status = response.status_code
    except httpx.HTTPError as exc:
        return DeliveryOutcome(False, f"it could not be reached: {_why(exc)}")
    except (httpx.InvalidURL, UnicodeError, ValueError):
        return DeliveryOutcome(False, "this address is not valid", is_final=True)
    if 300 <= status < 400:
        return DeliveryOutcome(False, f"it answered {status}: redirects are not followed", is_final=True)
    is_final = 400 <= status < 500 and status not in _LATER
    return DeliveryOutcome(200 <= status < 300, f"it answered {status}", is_final=is_final)


def _why(exc: Exception) -> str:
    """Return the system's word for what went wrong, where it has one; nothing of the address is in it."""
    found: BaseException | None = exc
    while found is not None:
        if isinstance(found, OSError) and found.strerror:
            return found.strerror.lower()
        found = found.__cause__ or found.__context__
    return f"no answer within {TIMEOUT_S:g} s" if "Timeout" in type(exc).__name__ else type(exc).__name__


def _notify(notification: Notification) -> DeliveryOutcome:
    """Send through apprise, which logs why it could not, and returns only that."""
    apprise = _apprise()
    message = notification.message
    kinds = {Severity.INFO: "info", Severity.WARNING: "warning", Severity.CRITICAL: "failure"}
    kind = "success" if message.kind == "resolved" else kinds[message.severity]
    title, _, text = message.text.partition("\n")
    with _one_at_a_time, apprise.LogCapture(level=logging.WARNING, fmt="%(message)s") as said:
        sender = apprise.Apprise()
        try:
            ok = sender.add(notification.address) and sender.notify(body=text or title, title=title, notify_type=kind)
        except Exception as exc:  # noqa: BLE001 - whatever a service's own code raises is that it was not told
            return DeliveryOutcome(False, f"it could not be sent: {type(exc).__name__}")
        why = said.getvalue().strip().splitlines()
    if ok:
        return DeliveryOutcome(True, "it was accepted")
    return DeliveryOutcome(False, _scrub(why[-1], notification.address)[:200] if why else "it was not accepted")


def _scrub(text: str, address: str) -> str:
    """Return what was said without any part of the address that could be a secret."""
    parts = urlsplit(address.replace(" ", ""))
    secrets = re.split(r"[/:@&=?]", f"{parts.netloc}/{parts.path}?{parts.query}")
    for secret in sorted({one for part in secrets for one in (part, unquote(part)) if len(one) > 3}, key=len)[::-1]:
        text = text.replace(secret, "***")
    return text


def _apprise() -> Any:
    """Return the module, which has no types."""
    try:
        import apprise
    except ModuleNotFoundError as exc:
        raise CapacityError(
            "addresses other than webhooks need the package apprise",
            hint="pip install 'prony[server]'",
            code="missing_package",
        ) from exc
    logging.getLogger("apprise").propagate = False  # its lines may hold addresses
    return apprise
