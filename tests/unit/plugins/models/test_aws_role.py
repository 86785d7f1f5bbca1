"""Keys that are lent to a container or an instance, from a metadata server of the test."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import pytest

from prony.errors import InputError, TransportError
from prony.plugins.models.aws_role import RoleKeys, read_aws_role
from prony.plugins.models.s3 import S3Store
from servers.answering import answering

ROLES = "/latest/meta-data/iam/security-credentials/"
LENT = {"Code": "Success", "AccessKeyId": "lent", "SecretAccessKey": "hidden", "Token": "session"}
KEYS = RoleKeys("lent", "hidden", "session")


class Metadata(BaseHTTPRequestHandler):
    """Answers as an instance does that insists on tokens, and as the endpoint of a container."""

    pages: ClassVar[dict[str, str]] = {}
    log: ClassVar[list[str]] = []

    def do_PUT(self) -> None:
        has_lifetime = self.headers["X-aws-ec2-metadata-token-ttl-seconds"] is not None
        self._answer("token" if self.path == "/latest/api/token" and has_lifetime else None)

    def do_GET(self) -> None:
        is_known = self.headers["X-aws-ec2-metadata-token"] == "token" or self.headers["Authorization"] == "mine"
        self._answer(self.pages.get(self.path) if is_known else None)

    def _answer(self, text: str | None) -> None:
        self.log.append(f"{self.command} {self.path}")
        self.send_response(404 if text is None else 200)
        self.send_header("Content-Length", str(len(text or "")))
        self.end_headers()
        self.wfile.write((text or "").encode())

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def metadata() -> Iterator[str]:
    Metadata.pages = {ROLES: "bench\n", f"{ROLES}bench": json.dumps(LENT), "/keys": json.dumps(LENT), "/bad": "{}"}
    Metadata.log.clear()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Metadata)
    with answering(server):
        yield f"http://127.0.0.1:{server.server_port}"


def test_an_instance_lends_its_keys_for_a_token(metadata: str) -> None:
    environment = {"AWS_EC2_METADATA_SERVICE_ENDPOINT": f"{metadata}/"}
    assert read_aws_role(environment, is_amazon=True) == KEYS
    assert Metadata.log == ["PUT /latest/api/token", f"GET {ROLES}", f"GET {ROLES}bench"]
    store = S3Store.of(environment).with_role(environment)
    assert (store.access_key, store.secret_key, store.session) == ("lent", "hidden", "session")
    signed = store.headers("https://data.s3.us-east-1.amazonaws.com/a.bin")
    assert signed["x-amz-security-token"] == "session"


def test_an_instance_is_not_asked_for_another_store_or_where_keys_are_given_or_it_is_turned_off(metadata: str) -> None:
    there = {"AWS_EC2_METADATA_SERVICE_ENDPOINT": metadata}
    own = there | {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"}
    elsewhere = there | {"AWS_ENDPOINT_URL": "https://store.example"}
    assert S3Store.of(own).with_role(own).access_key == "a"
    assert S3Store.of(elsewhere).with_role(elsewhere).access_key == ""
    assert read_aws_role(there | {"AWS_EC2_METADATA_DISABLED": "true"}, is_amazon=True) is None
    assert Metadata.log == []


def test_without_a_role_or_an_instance_nobody_asks_in_particular(metadata: str) -> None:
    environment = {"AWS_EC2_METADATA_SERVICE_ENDPOINT": metadata}
    del Metadata.pages[ROLES]
    assert read_aws_role(environment, is_amazon=True) is None
    nobody = {"AWS_EC2_METADATA_SERVICE_ENDPOINT": "http://127.0.0.1:1"}
    assert read_aws_role(nobody, is_amazon=True) is None


def test_a_container_lends_its_keys_for_its_token(metadata: str, tmp_path: Path) -> None:
    environment = {"AWS_CONTAINER_CREDENTIALS_FULL_URI": f"{metadata}/keys"}
    assert read_aws_role(environment | {"AWS_CONTAINER_AUTHORIZATION_TOKEN": "mine"}, is_amazon=False) == KEYS
    (tmp_path / "token").write_text("mine\n")
    in_file = {"AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": str(tmp_path / "token")}
    assert read_aws_role(environment | in_file, is_amazon=False) == KEYS


def test_a_container_whose_endpoint_gives_no_keys_is_an_error(metadata: str, tmp_path: Path) -> None:
    token = {"AWS_CONTAINER_AUTHORIZATION_TOKEN": "mine"}
    for path, said in (("/none", "status 404"), ("/bad", "returned no keys")):
        with pytest.raises(TransportError, match=said):
            read_aws_role(token | {"AWS_CONTAINER_CREDENTIALS_FULL_URI": metadata + path}, is_amazon=True)
    with pytest.raises(InputError, match="unencrypted"):
        read_aws_role({"AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://keys.example/x"}, is_amazon=True)
    with pytest.raises(TransportError):  # asked, as every address of loopback may be, and not there
        read_aws_role({"AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://127.0.0.2:1/x"}, is_amazon=True)
    missing = {"AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": str(tmp_path / "none")}
    with pytest.raises(InputError, match="cannot be read"):
        read_aws_role(missing | {"AWS_CONTAINER_CREDENTIALS_FULL_URI": f"{metadata}/keys"}, is_amazon=True)
