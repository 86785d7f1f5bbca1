"""Read the keys that AWS lends to a container or to an instance for its role."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, ProxyHandler, Request, build_opener

from prony.errors import InputError, TransportError
from prony.model.loopback import is_loopback

_INSTANCE = "http://169.254.169.254"
_CONTAINER = "http://169.254.170.2"
# Where keys may be asked for without encryption, beside the machine itself: the addresses of ECS and EKS on it.
_PLAIN_HOSTS = ("169.254.170.2", "169.254.170.23", "fd00:ec2::23")
_INSTANCE_S, _CONTAINER_S = 1.0, 5.0  # off the cloud nobody answers, and every fetch without keys would wait
_LARGEST_BYTES = 100_000
_HINT = "give this container or instance a role that may read the bucket, or set AWS_PROFILE or AWS_ACCESS_KEY_ID"
_ROLES = "/latest/meta-data/iam/security-credentials/"


@dataclass(frozen=True)
class RoleKeys:
    """Keys that hold for some hours."""

    access_key: str
    secret_key: str
    session: str


class _NoRedirect(HTTPRedirectHandler):
    """Go nowhere else: the answer would be somebody else's."""

    def redirect_request(self, *_: object) -> None:
        return None


def read_aws_role(environment: Mapping[str, str], *, is_amazon: bool) -> RoleKeys | None:
    """Return the keys of this container's role, or else of this instance's; None without a role.

    `is_amazon`: the store is Amazon's. An instance's role says nothing to another.

    Raises:
        InputError: the variables of the container cannot be followed.
        TransportError: the endpoint that they name, or a role that the instance names, gives no keys.
    """
    address = _container_address(environment)
    if address:
        headers = _container_headers(environment)
        return _parse_keys(_ask(address, headers, _CONTAINER_S), address)
    if not is_amazon or environment.get("AWS_EC2_METADATA_DISABLED", "").lower() == "true":
        return None
    return _read_instance_role((environment.get("AWS_EC2_METADATA_SERVICE_ENDPOINT") or _INSTANCE).rstrip("/"))


def _container_address(environment: Mapping[str, str]) -> str:
    if relative := environment.get("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"):
        return _CONTAINER + relative
    full = environment.get("AWS_CONTAINER_CREDENTIALS_FULL_URI", "")
    parts = urlsplit(full)
    host = parts.hostname or ""
    may_be_plain = parts.scheme == "http" and (is_loopback(host) or host in _PLAIN_HOSTS)
    if full and parts.scheme != "https" and not may_be_plain:
        raise InputError(
            f"AWS_CONTAINER_CREDENTIALS_FULL_URI is {full}, where keys would travel unencrypted",
            hint="use https, or an address of this machine",
            code="aws_role",
        )
    return full


def _container_headers(environment: Mapping[str, str]) -> dict[str, str]:
    token = environment.get("AWS_CONTAINER_AUTHORIZATION_TOKEN", "")
    if file := environment.get("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"):
        try:
            token = Path(file).read_text(encoding="ascii").strip()
        except (OSError, UnicodeDecodeError) as exc:
            raise InputError(
                f"the token in {file} cannot be read", hint="check AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
                code="aws_role",
            ) from exc  # fmt: skip
    return {"Authorization": token} if token else {}


def _read_instance_role(endpoint: str) -> RoleKeys | None:
    """Ask with a token first (IMDSv2), which a request that was forged through a server cannot get."""
    lifetime = {"X-aws-ec2-metadata-token-ttl-seconds": "300"}
    try:
        token = _ask(f"{endpoint}/latest/api/token", lifetime, _INSTANCE_S, method="PUT").decode("ascii")
        headers = {"X-aws-ec2-metadata-token": token}
        role = _ask(endpoint + _ROLES, headers, _INSTANCE_S).decode("ascii").strip()
    except (TransportError, UnicodeDecodeError):
        return None  # not an instance, or one without a role
    address = f"{endpoint}{_ROLES}{role.splitlines()[0]}" if role else ""
    return _parse_keys(_ask(address, headers, _INSTANCE_S), address) if role else None


def _ask(address: str, headers: Mapping[str, str], timeout_s: float, *, method: str = "GET") -> bytes:
    """Ask without a proxy: what answers is on this machine or beside it."""
    opener = build_opener(ProxyHandler({}), _NoRedirect())
    try:
        with opener.open(Request(address, headers=dict(headers), method=method), timeout=timeout_s) as reply:
            content: bytes = reply.read(_LARGEST_BYTES)
            return content
    except (OSError, HTTPException, ValueError) as exc:
        status = f"status {exc.code}" if isinstance(exc, HTTPError) else str(exc)
        raise TransportError(f"no keys for s3 from {address}: {status}", hint=_HINT, code="aws_role") from exc


def _parse_keys(content: bytes, address: str) -> RoleKeys:
    try:
        told = json.loads(content)
        return RoleKeys(str(told["AccessKeyId"]), str(told["SecretAccessKey"]), str(told["Token"]))
    except (ValueError, KeyError, TypeError) as exc:
        raise TransportError(
            f"{address} returned no keys",
            hint=_HINT,
            code="aws_role",
        ) from exc
